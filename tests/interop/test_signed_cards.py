"""Signed cards between Dragoman and the official SDKs of A2A 1.0: theirs verify ours, and ours verifies theirs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.server import ServerProcess
from tests.interop.signing import (
    NAME,
    SIGNERS,
    Rotation,
    SignedServer,
    Verifier,
    dragoman,
    keys,
    rotate,
    serving,
    signed_server,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

FORMS = ("unnamed", "1.0")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedServer]:
    """A server with a card in many scripts, whose callers have to show a token."""
    with signed_server(tmp_path_factory.mktemp("signed")) as server:
        yield server


@pytest.fixture(scope="module", params=SIGNERS, ids=str)
def verifier(request: pytest.FixtureRequest) -> Verifier:
    """Each of the SDKs."""
    made: Verifier = request.param
    return made


@pytest.fixture(scope="module")
def rotation(signed: SignedServer, verifier: Verifier) -> Rotation:
    """What the SDK saw of a rotation."""
    return rotate(signed, verifier)


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
def test_the_sdk_read_the_card_and_refuses_one_that_was_changed(
    rotation: Rotation, form: str, signed: SignedServer
) -> None:
    for seen in rotation.seen.values():
        assert seen[form]["name"] == NAME
        assert seen[form]["changed"] != "good"
        assert seen["jku"] == [f"{signed.agent_url}/.well-known/jwks.json"]


def test_what_the_javascript_resolver_gives_is_verified_unless_it_lost_the_security_schemes(
    rotation: Rotation, verifier: Verifier
) -> None:
    """It reads a card of pure 1.0 into a form of its own, out of which its verifier then reads no schemes."""
    if verifier.environment != "a2a-js-sdk-1.3.0":
        assert "resolved" not in rotation.seen["before", "before"]["1.0"]
        return
    seen = rotation.seen["before", "before"]
    assert (seen["unnamed"]["resolved"], seen["1.0"]["resolved"]) == (
        "good",
        "No valid signatures found on agent card.",
    )


@pytest.mark.parametrize("agent", ["demo", "digest"])
def test_cards_of_a_server_that_anybody_may_call_are_good(
    server: ServerProcess, verifier: Verifier, agent: str, tmp_path: Path
) -> None:
    open_server = SignedServer(server, tmp_path)
    seen = verifier.verify(f"{server.url}/agents/{agent}", open_server_pin(open_server, agent))
    assert {seen[form]["as it came"] for form in FORMS} == {"good"}
    assert {seen[form].get("resolved", "good") for form in FORMS} == {"good"}


def open_server_pin(server: SignedServer, agent: str) -> Path:
    """The keys that stand beside an agent's card."""
    server.agent_url = f"{server.server.url}/agents/{agent}"
    return server.pin("jwks.json")


@pytest.mark.parametrize("python", SIGNERS[:2], ids=str)
def test_an_extended_card_is_good_over_each_binding(signed: SignedServer, python: Verifier) -> None:
    """To the Python SDKs; the JavaScript one gives it in the form that its verifier cannot read."""
    seen = python.extended(signed.agent_url, signed.pin("extended.json"))
    assert seen == {"JSONRPC": ["thé", "café"], "HTTP+JSON": ["thé", "café"]}


def own_card(signed: SignedServer) -> dict[str, Any]:
    """Our card in its 1.0 form without signatures, with numbers and nested data besides."""
    card: dict[str, Any] = json.loads(signed.fetch("/.well-known/agent-card.json", **{"A2A-Version": "1.0"}))
    del card["signatures"]
    params = {"n": 1, "big": 1e21, "small": 1e-7, "half": 0.5, "é": ["😀", True, {"deep": "ﬡ"}]}
    card["capabilities"]["extensions"].append({"uri": "urn:x", "params": params})
    return card


def test_a_card_that_the_sdk_signs_is_good_to_us(
    signed: SignedServer, verifier: Verifier, tmp_path: Path
) -> None:
    keys(tmp_path, "create")
    (key,) = json.loads((tmp_path / "signing-keys.json").read_text())["keys"]
    (tmp_path / "key.json").write_text(json.dumps(key))
    (tmp_path / "card.json").write_text(json.dumps(own_card(signed)), encoding="utf-8")
    (tmp_path / "jwks.json").write_text(keys(tmp_path, "public"))
    made = verifier.sign(tmp_path / "card.json", tmp_path / "key.json")
    assert [set(one) >= {"protected", "signature"} for one in made["signatures"]] == [True]
    document, code = checked(made, tmp_path)
    assert (code, document["signature"], document["covered"]) == (0, "good", ["1.0"])
    changed = {**made, "name": made["name"] + "!"}
    document, code = checked(changed, tmp_path)
    assert (code, document["signature"], document["covered"]) == (1, "bad", [])


def checked(card: dict[str, Any], folder: Path) -> tuple[dict[str, Any], int]:
    """What `dragoman card` says of a card that a web server hands out, and how it ends."""
    with serving(json.dumps(card).encode()) as url:
        done = dragoman("card", url, "--jwks", str(folder / "jwks.json"), "--json")
    return json.loads(done.stdout), done.returncode


def test_a_card_that_we_sign_without_a_server_is_good_to_the_sdk(
    signed: SignedServer, verifier: Verifier, tmp_path: Path
) -> None:
    keys(tmp_path, "create", "--alg", "EdDSA")
    (tmp_path / "card.json").write_text(json.dumps(own_card(signed)), encoding="utf-8")
    made = keys(tmp_path, "sign", str(tmp_path / "card.json"))
    (tmp_path / "jwks.json").write_text(keys(tmp_path, "public"))
    with serving(made.encode()) as url:
        seen = verifier.verify(url, tmp_path / "jwks.json")
    assert {seen[form]["as it came"] for form in FORMS} == {"good"}
    assert {seen[form]["changed"] == "good" for form in FORMS} == {False}
