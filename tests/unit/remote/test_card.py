"""How a remote agent is called by its card, and what our card says of it."""

import json
from typing import Any

import pytest

from dragoman.cards.validate import validate
from dragoman.egress.policy import origin_of
from dragoman.model import Extension, Provider, Skill
from dragoman.protocol.registry import load_clients
from dragoman.remote.card import CardUnusableError, Choice, Wanted, card_urls, choose, drift, mirrored

HERE = "https://agents.example.com"
WANTED = Wanted(origins=[origin_of(HERE)])


def listed(binding: str, version: str, url: str = f"{HERE}/x", **more: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def chosen(card: Any, wanted: Wanted = WANTED) -> Choice:
    return choose(validate(json.dumps(card).encode()), load_clients(), wanted)


def new(*interfaces: Any, **more: Any) -> dict[str, Any]:
    return {"name": "x", "supportedInterfaces": list(interfaces), **more}


def test_the_newest_version_over_what_the_card_prefers_is_taken() -> None:
    for binding in ("HTTP+JSON", "JSONRPC"):
        other = {"HTTP+JSON": "JSONRPC", "JSONRPC": "HTTP+JSON"}[binding]
        choice = chosen(new(listed("GRPC", "1.0"), listed(binding, "1.0"), listed(other, "1.0")))
        assert (choice.version, choice.binding, choice.place.url) == ("1.0", binding, f"{HERE}/x")


def test_a_tenant_and_what_the_card_can_do_are_kept() -> None:
    choice = chosen(new(listed("JSONRPC", "1.0", tenant="north"), capabilities={"streaming": True}))
    assert (choice.place.tenant, choice.streams, choice.idempotent) == ("north", True, False)
    assert not chosen(new(listed("JSONRPC", "1.0"))).streams


def test_the_configuration_may_want_one_version_or_binding_alone() -> None:
    card = new(listed("JSONRPC", "1.0"), listed("HTTP+JSON", "1.0"))
    assert chosen(card, Wanted(origins=WANTED.origins, binding="HTTP+JSON")).binding == "HTTP+JSON"
    with pytest.raises(CardUnusableError, match=r"lists no interface .* \(9\.0\)"):
        chosen(card, Wanted(origins=WANTED.origins, version="9.0"))


def test_a_message_is_the_same_under_its_id_where_somebody_says_so() -> None:
    uri = "urn:dragoman:ext:idempotency:v1"
    declared = chosen(new(listed("JSONRPC", "1.0"), capabilities={"extensions": [{"uri": uri}]}))
    assert (declared.idempotent, declared.activated) == (True, (uri,))
    by_operator = chosen(new(listed("JSONRPC", "1.0")), Wanted(origins=WANTED.origins, idempotent=True))
    assert (by_operator.idempotent, by_operator.activated) == (True, ())


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (new(listed("JSONRPC", "1.0", "https://evil.example/x")), "leads to https://evil.example, which"),
        (new(listed("JSONRPC", "1.0", "http://agents.example.com/x")), "leads to http://agents.example.com"),
        (new(listed("JSONRPC", "1.0", "file:///etc/passwd")), "lists no interface"),
        (new(listed("GRPC", "1.0")), "lists no interface"),
        (new(listed("JSONRPC", "2.0")), "lists no interface"),
        (new(), "lists no interface"),
        ([], "is no card"),
        ("<html>", "is no card"),
    ],
)
def test_a_card_that_leads_nowhere_we_may_go_is_refused(card: Any, words: str) -> None:
    with pytest.raises(CardUnusableError, match=words):
        chosen(card)


def test_a_card_is_at_its_own_url_or_at_the_usual_places_below_the_agents() -> None:
    assert card_urls(f"{HERE}/cards/x.json") == (f"{HERE}/cards/x.json",)
    assert card_urls(f"{HERE}/agents/x/") == (
        f"{HERE}/agents/x/.well-known/agent-card.json",
        f"{HERE}/agents/x/.well-known/agent.json",
    )


def test_our_card_says_what_the_remote_one_says_of_the_agent() -> None:
    found = mirrored(
        {
            "name": "Clerk",
            "description": "Files.",
            "version": "3",
            "skills": [{"id": "file", "name": "File", "description": "Files.", "tags": ["t"], "inputModes": ["text"]}],
            "defaultInputModes": ["text", "image/png", "picture"],
            "defaultOutputModes": ["text/plain"],
            "provider": {"organization": "Acme", "url": "https://acme.example"},
            "documentationUrl": "https://acme.example/docs",
            "capabilities": {
                "extensions": [
                    {"uri": "urn:acme:a", "required": True, "params": {"n": 1}},
                    {"uri": "urn:acme:a"},
                    {"uri": "urn:dragoman:ext:run-facts:v1"},
                    {},
                ]
            },
        }
    )  # fmt: skip
    assert (found.name, found.description, found.version) == ("Clerk", "Files.", "3")
    assert found.input_modes == ("text/plain", "image/png")
    assert found.skills == (
        Skill(id="file", name="File", description="Files.", tags=("t",), input_modes=("text/plain",)),
    )
    assert found.provider == Provider(organization="Acme", url="https://acme.example")
    assert found.documentation_url == "https://acme.example/docs"
    assert found.extensions == (Extension.of("urn:acme:a", required=True, params={"n": 1}),)


def test_a_card_full_of_nonsense_says_nothing() -> None:
    found = mirrored(
        {"name": 3, "skills": "x", "capabilities": [], "provider": {"url": 1}, "defaultInputModes": [1, None]}
    )
    assert (found.name, found.skills, found.input_modes, found.provider, found.extensions) == (
        "",
        (),
        (),
        None,
        (),
    )


def test_cards_differ_in_what_they_say_and_not_in_who_signed_it() -> None:
    before = {"name": "x", "version": "1", "signatures": [1], "iconUrl": "u"}
    assert drift(before, {**before, "signatures": [2]}) == ()
    assert drift(before, {"name": "y", "version": "1", "skills": []}) == ("iconUrl", "name", "skills")
