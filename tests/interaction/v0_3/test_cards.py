"""Discovery: which form of the card stands where, that each is true, and how each is kept."""

import re
from typing import Any

import pytest

from tests.interaction.answers import VERSION, check_negotiated
from tests.interaction.answers import Reply as NewerReply
from tests.interaction.answers import refused as newer_refused
from tests.interaction.callers import HttpCaller, Request
from tests.interaction.v0_3.answers import NO_AGENT, NOT_ALLOWED, Reply, refused
from tests.interaction.v0_3.callers import ALIAS, BASE, PROTO, RPC, Caller, envelope, to_json
from tests.interaction.v0_3.messages import got, send_params
from tests.interaction.v0_3.requirements import covers

CARD = "/.well-known/agent-card.json"
OLD = {"protocolVersion", "url", "preferredTransport", "additionalInterfaces"}
NEW = {"supportedInterfaces"}

PURE_PLACES = ["/v1" + CARD, "/v1/v1" + CARD, "/card", "/v1/card", "/v1/v1/card"]
"""Where the pure 0.3 form stands for whoever names no version."""


def card(base: Caller, path: str = CARD, version: str | None = None, **headers: str) -> Reply:
    """A card as it came; `headers` have `_` for `-` in their names."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if version is not None:
        sent["A2A-Version"] = version
    return base.deliver(Request("GET", base.at(BASE).path(path), sent))


def check_pure(document: dict[str, Any], base: Caller) -> None:
    """A card in the form of 0.3 alone."""
    url = f"{base.origin}/agents/{base.agent}"
    assert set(document) >= OLD | {"name", "description", "version", "capabilities", "skills"}
    assert not NEW & set(document)
    assert document["protocolVersion"] == "0.3"
    assert (document["url"], document["preferredTransport"]) == (f"{url}/rpc", "JSONRPC")
    assert document["additionalInterfaces"] == [
        {"url": f"{url}/rpc", "transport": "JSONRPC"},
        {"url": f"{url}/v1", "transport": "HTTP+JSON"},
    ]
    assert document["defaultInputModes"] and document["defaultOutputModes"]
    for skill in document["skills"]:
        assert skill["id"] and skill["name"] and skill["description"] and skill["tags"]
    assert set(document["capabilities"]) == {"streaming", "pushNotifications"}


@covers("card.hybrid")
@pytest.mark.parametrize("agent", ["demo", "digest", "hold", "asks"])
def test_without_a_version_the_card_is_for_both_generations(base: Caller, agent: str) -> None:
    """Official clients of either generation ask so, and ignore what they do not know."""
    reply = card(base.to(agent))
    check_negotiated(reply.headers, "0.3")
    document = reply.json()
    pure_old, pure_new = (
        card(base.to(agent), version="0.3").json(),
        card(base.to(agent), version="1.0").json(),
    )
    assert set(document) == set(pure_old) | set(pure_new)
    # Each generation has its own, over what it reads.
    made = [[one["protected"] for one in each.pop("signatures")] for each in (document, pure_new, pure_old)]
    assert made[0] == made[1] + made[2] and all(made)
    for pure in (pure_old, pure_new):
        for name, value in pure.items():
            if isinstance(value, dict):
                assert value.items() <= document[name].items(), name
            else:
                assert document[name] == value, name


@covers("card.pure")
def test_with_the_header_the_card_is_of_that_version_alone(base: Caller) -> None:
    old, new = card(base, version="0.3"), card(base, version="1.0")
    check_negotiated(old.headers, "0.3")
    check_negotiated(new.headers, "1.0")
    check_pure(old.json(), base)
    assert set(new.json()) >= NEW and not OLD & set(new.json())


@covers("card.places")
@pytest.mark.parametrize("path", PURE_PLACES)
def test_every_place_of_0_3_has_the_card_in_its_pure_form(base: Caller, path: str) -> None:
    pure = card(base, version="0.3")
    for version in (None, "", "0.3"):
        reply = card(base, path, version)
        check_negotiated(reply.headers, "0.3")
        assert (reply.status, reply.body) == (200, pure.body)
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["etag"] == pure.headers["etag"]


@covers("card.places")
@pytest.mark.parametrize("path", ["/v1" + CARD, "/v1/card", "/v1/v1/card", "/v1/v1" + CARD])
def test_there_is_no_card_of_another_version_at_a_place_of_0_3(base: Caller, path: str) -> None:
    for version in ("1.0", "0.3.0", "2.0"):
        reply = card(base, path, version)
        newer_refused(NewerReply("http", reply.status, reply.headers, reply.body), VERSION)


@covers("card.root")
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
def test_the_card_of_the_default_agent_stands_at_the_root_in_each_form(base: Caller, path: str) -> None:
    for version in (None, "0.3", "1.0"):
        headers = {} if version is None else {"A2A-Version": version}
        root, own = base.deliver(Request("GET", path, headers)), card(base, version=version)
        assert (root.status, root.body, root.headers["etag"]) == (200, own.body, own.headers["etag"])
        assert root.headers["a2a-version"] == own.headers["a2a-version"]


@covers("card.operator")
def test_an_agent_without_the_legacy_card_shows_the_newer_form_unless_0_3_is_asked_for(base: Caller) -> None:
    plain = base.to("plain")
    unnamed, new = card(plain), card(plain, version="1.0")
    assert (unnamed.body, unnamed.headers["a2a-version"]) == (new.body, "1.0")
    assert not OLD & set(unnamed.json())
    check_pure(card(plain, version="0.3").json(), plain)
    check_pure(card(plain, "/v1/card").json(), plain)
    # It still says that 0.3 is served, because it is.
    listed = {(one["protocolBinding"], one["protocolVersion"]) for one in new.json()["supportedInterfaces"]}
    assert listed == {(name, version) for name in ("HTTP+JSON", "JSONRPC") for version in ("1.0", "0.3")}
    reply = plain.call("SendMessage", send_params())
    assert got(plain, reply.value["id"])["status"]["state"] == "completed"


@covers("card.operator")
def test_an_agent_of_one_version_has_the_card_of_that_alone(base: Caller) -> None:
    old, modern = base.to("old"), base.to("modern")
    assert card(old).body == card(old, version="0.3").body == card(old, "/v1/card").body
    check_pure(card(old).json(), old)
    assert card(modern).body == card(modern, version="1.0").body
    assert not OLD & set(card(modern).json())
    for agent, version in ((old, "1.0"), (modern, "0.3")):
        reply = card(agent, version=version)
        newer_refused(NewerReply("http", reply.status, reply.headers, reply.body), VERSION)
    for path in PURE_PLACES:
        assert card(modern, path).status == 400
    versions = {one["protocolVersion"] for one in card(modern).json()["supportedInterfaces"]}
    assert versions == {"1.0"}


@covers("card.interfaces")
@pytest.mark.parametrize("agent", ["demo", "digest", "old", "plain", "v1"])
def test_every_interface_that_a_card_lists_answers_in_its_version(base: Caller, agent: str) -> None:
    """As clients call it: JSON-RPC at the URL itself, seed A's below it, official ones below `/v1` of it."""
    document = card(base.to(agent), version="0.3").json()
    listed = {one["transport"]: one["url"] for one in document["additionalInterfaces"]}
    listed[document["preferredTransport"]] = document["url"]
    named = base.to(agent)
    body = to_json(RPC.dialect.write("SendMessage", send_params()))
    reply = named.client.post(
        listed["JSONRPC"],
        content=envelope("message/send", body),
        headers={"Content-Type": "application/json"},
    )
    assert reply.json()["result"]["kind"] == "task"
    for place, path in ((ALIAS, "/message:send"), (PROTO, "/v1/message:send")):
        body = to_json(place.dialect.write("SendMessage", send_params()))
        headers = {**place.headers, "Content-Type": "application/json"}
        reply = named.client.post(listed["HTTP+JSON"] + path, content=body, headers=headers)
        assert place.dialect.answer(reply.json())["status"]["state"] == "completed"


@covers("card.interfaces")
@pytest.mark.parametrize(("agent", "streaming"), [("demo", True), ("still", False)])
def test_capabilities_are_what_is_served(base: Caller, agent: str, streaming: bool) -> None:
    document = card(base.to(agent), version="0.3").json()
    assert document["capabilities"] == {"streaming": streaming, "pushNotifications": False}
    assert "supportsAuthenticatedExtendedCard" not in document
    assert not {"security", "securitySchemes"} & set(document)


@covers("card.interfaces", "difference.card-interfaces")
def test_the_pure_0_3_card_hides_interfaces_of_1_0_and_the_one_for_both_does_not(base: Caller) -> None:
    text = card(base, version="0.3").body.decode()
    assert '"1.0"' not in text.replace('"version":"1.0.0"', "")
    versions = [one["protocolVersion"] for one in card(base).json()["supportedInterfaces"]]
    assert versions == ["1.0", "1.0", "0.3", "0.3"]


@covers("card.interfaces")
def test_an_extension_is_declared_in_every_form(base: Caller) -> None:
    declared = [{"uri": "urn:dragoman:ext:idempotency:v1"}]
    for version in (None, "0.3", "1.0"):
        shown = card(base.to("loose"), version=version).json()["capabilities"]["extensions"]
        assert [{"uri": one["uri"]} for one in shown] == declared
        assert not shown[0].get("required")


@covers("card.kept")
def test_each_form_has_a_tag_of_its_own_and_304_for_whoever_has_it(base: Caller) -> None:
    forms = {version: card(base, version=version) for version in (None, "0.3", "1.0")}
    assert len({reply.headers["etag"] for reply in forms.values()}) == 3
    for version, whole in forms.items():
        tag = whole.headers["etag"]
        assert re.fullmatch(r'"[0-9a-f]{16,}"', tag)
        assert re.fullmatch(r"public, max-age=\d+", whole.headers["cache-control"])
        again = card(base, version=version, If_None_Match=tag)
        assert (again.status, again.body) == (304, b"")
        for name in ("etag", "cache-control", "vary", "last-modified", "a2a-version"):
            assert again.headers[name] == whole.headers[name]
        others = [reply.headers["etag"] for other, reply in forms.items() if other != version]
        assert card(base, version=version, If_None_Match=", ".join(others)).body == whole.body


@covers("card.kept")
@pytest.mark.parametrize("path", PURE_PLACES)
def test_the_card_of_a_place_is_kept_alike(base: Caller, path: str) -> None:
    whole = card(base, path)
    assert card(base, path, If_None_Match=whole.headers["etag"]).status == 304
    stamp = whole.headers["last-modified"]
    assert card(base, path, If_Modified_Since=stamp).status == 304
    head = base.deliver(Request("HEAD", base.path(path)))
    assert (head.status, head.body) == (200, b"")
    for name in ("content-type", "content-length", "etag", "a2a-version", "vary"):
        assert head.headers[name] == whole.headers[name]


@covers("card.kept")
@pytest.mark.parametrize("accept", ["application/a2a+json", "*/*", "text/html", "application/json"])
def test_a_0_3_card_is_json_whatever_is_accepted(base: Caller, accept: str) -> None:
    for path in ("/v1/card", CARD):
        reply = card(base, path, "0.3", Accept=accept)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")


@covers("card.refused")
@pytest.mark.parametrize("path", PURE_PLACES)
def test_a_card_is_for_reading_only_and_of_agents_that_are_here(base: Caller, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        reply = base.deliver(Request(method, base.path(path)))
        assert reply.headers["allow"] == "GET, HEAD"
        refused(reply, NOT_ALLOWED)
    refused(card(base.to("nobody"), path), NO_AGENT)


@covers("card.hybrid")
def test_a_card_of_nobody_without_a_version_is_refused_as_0_3_has_it(base: Caller) -> None:
    refused(card(base.to("nobody")), NO_AGENT)


@covers("card.hybrid")
def test_the_newer_caller_reads_its_interfaces_from_the_card_for_both(base: Caller, http: HttpCaller) -> None:
    listed = card(base).json()["supportedInterfaces"]
    urls = [one["url"] for one in listed if one["protocolVersion"] == "1.0"]
    base_url = f"{base.origin}/agents/demo"
    assert urls == [base_url, f"{base_url}/rpc"]
    reply = http.client.get(f"{urls[0]}/tasks?contextId=none", headers={"A2A-Version": "1.0"})
    assert reply.json()["totalSize"] == 0
