"""The interfaces of a card: what answers, best first, and nothing else."""

from msgspec import structs

from dragoman.cards.build import interfaces
from dragoman.model import AgentInterface
from dragoman.protocol.registry import load_versions
from dragoman.protocol.v1_0 import SPEC

URL = "https://a.example/agents/demo"


def test_1_0_answers_over_http_json_at_the_base_and_over_json_rpc_below_it() -> None:
    assert interfaces(URL, [SPEC]) == (
        AgentInterface(url=URL, binding="HTTP+JSON", version="1.0"),
        AgentInterface(url=f"{URL}/rpc", binding="JSONRPC", version="1.0"),
    )


def test_an_agent_that_is_served_in_no_version_has_no_interface() -> None:
    assert interfaces(URL, []) == ()


def test_a_dialect_that_is_not_advertised_is_not_listed() -> None:
    hidden = structs.replace(SPEC.http[0], mount="/v1/v1", advertised=False)
    shown = structs.replace(SPEC.http[0], mount="/v1")
    listed = interfaces(URL, [structs.replace(SPEC, version="0.9", http=(shown, hidden))])
    assert [interface.url for interface in listed] == [f"{URL}/v1", f"{URL}/rpc"]
    assert {interface.version for interface in listed} == {"0.9"}


def test_versions_are_listed_in_the_order_that_they_are_given() -> None:
    older = structs.replace(SPEC, version="0.9")
    assert [interface.version for interface in interfaces(URL, [SPEC, older])] == ["1.0", "1.0", "0.9", "0.9"]


def test_every_version_of_this_build_can_be_listed() -> None:
    versions = load_versions()
    listed = interfaces(URL, versions.values())
    assert list(dict.fromkeys(interface.version for interface in listed)) == list(versions)
    assert all(interface.url.startswith(URL) for interface in listed)
