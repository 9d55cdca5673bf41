"""Where notifications may go: those of conformance agents to this machine as well, all others as usual."""

import pytest

from dragoman.conformance import CONFORMANCE_AGENTS, Conformance
from dragoman.egress import EgressPolicy, Refused
from dragoman.egress.client import Egress
from dragoman.outbound.ways import Ways


def ways() -> Ways:
    """As a server has them that serves conformance agents."""
    usual = EgressPolicy()
    opened = Conformance().policy(usual)
    return Ways(Egress(usual, user_agent="t"), Egress(opened, user_agent="t"), CONFORMANCE_AGENTS)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9999/hook", "http://localhost:8000/", "https://[::1]/x"])
def test_this_machine_is_open_to_conformance_agents_alone(url: str) -> None:
    for agent in CONFORMANCE_AGENTS:
        assert url.startswith(ways().place_of(url, agent))
    for agent in ("demo", "tck2", ""):
        with pytest.raises(Refused):
            ways().place_of(url, agent)


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "https://10.0.0.1/", "ftp://127.0.0.1/"])
def test_what_else_is_special_stays_closed_to_them_too(url: str) -> None:
    for agent in CONFORMANCE_AGENTS:
        with pytest.raises(Refused):
            ways().place_of(url, agent)


def test_without_a_kit_no_agent_is_another() -> None:
    for agent in CONFORMANCE_AGENTS:
        with pytest.raises(Refused):
            Ways(Egress(EgressPolicy(), user_agent="t"), None, CONFORMANCE_AGENTS).place_of(
                "http://127.0.0.1/", agent
            )
