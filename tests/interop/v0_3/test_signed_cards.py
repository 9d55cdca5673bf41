"""Signed cards and the one SDK of A2A 0.3 that verifies: the Python one, over its own reading of a card."""

from collections.abc import Iterator

import pytest

from tests.interop.signing import NAME, OLD, Rotation, SignedServer, rotate, signed_server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

FORMS = ("unnamed", "0.3")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedServer]:
    """A server with a card in many scripts, whose callers have to show a token."""
    with signed_server(tmp_path_factory.mktemp("signed")) as server:
        yield server


@pytest.fixture(scope="module")
def rotation(signed: SignedServer) -> Rotation:
    """What the SDK saw of a rotation."""
    return rotate(signed, OLD)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("card", "pinned", "good"),
    [
        ("before", "before", True),
        ("during", "before", True),
        ("during", "during", True),
        ("after", "before", False),
        ("after", "during", True),
        ("after", "after", True),
    ],
)
def test_cards_are_good_before_during_and_after_a_rotation(
    rotation: Rotation, form: str, card: str, pinned: str, good: bool
) -> None:
    outcome = rotation.outcome(card, pinned, form)
    assert (outcome == "good") is good, outcome


@pytest.mark.parametrize("form", FORMS)
def test_a_card_that_sends_its_callers_elsewhere_is_refused(rotation: Rotation, form: str) -> None:
    for seen in rotation.seen.values():
        assert (seen[form]["name"], seen[form]["changed"]) == (NAME, "InvalidSignaturesError")


def test_an_extended_card_is_good_over_each_binding(signed: SignedServer) -> None:
    seen = OLD.extended(signed.agent_url, signed.pin("extended.json"))
    assert seen == {"JSONRPC": ["thé", "café"], "HTTP+JSON": ["thé", "café"]}
