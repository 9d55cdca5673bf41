"""Agent cards: what they say, that it is true, and how they are cached."""

import re
from email.utils import parsedate_to_datetime

import pytest

from tests.interaction.answers import NO_AGENT, NOT_ALLOWED, VERSION, Reply, refused
from tests.interaction.callers import READY, HttpCaller, Request
from tests.interaction.following import sent
from tests.interaction.requirements import covers

CARD = "/agents/demo/.well-known/agent-card.json"
AGENTS = ["demo", "digest", "hold", "still", "teller"]


def card(http: HttpCaller, path: str = CARD, **headers: str | None) -> Reply:
    """A card as it came, in its 1.0 form unless `headers` (`_` stands for `-` in their names) say otherwise."""
    return http.deliver(Request("GET", path, READY).with_headers(**headers))


@covers("card.fields")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_card_has_every_required_member_with_content(http: HttpCaller, agent: str) -> None:
    document = card(http, f"/agents/{agent}/.well-known/agent-card.json").json()
    for name in ("name", "description", "version"):
        assert isinstance(document[name], str) and document[name]
    for name in ("defaultInputModes", "defaultOutputModes", "skills", "supportedInterfaces"):
        assert isinstance(document[name], list) and document[name]
    assert all(re.fullmatch(r"[\w*]+/[\w*.+-]+", mode) for mode in document["defaultInputModes"])
    for skill in document["skills"]:
        assert skill["id"] and skill["name"] and skill["description"] and skill["tags"]


@covers("card.capabilities")
@pytest.mark.parametrize(("agent", "streaming"), [("demo", True), ("still", False)])
def test_a_card_declares_exactly_what_is_served(http: HttpCaller, agent: str, streaming: bool) -> None:
    document = card(http, f"/agents/{agent}/.well-known/agent-card.json").json()
    assert document["capabilities"] == {
        "streaming": streaming,
        "pushNotifications": False,
        "extendedAgentCard": False,
    }
    assert "securitySchemes" not in document and "securityRequirements" not in document


@covers("card.pure")
@pytest.mark.parametrize(("agent", "version"), [("demo", "1.0"), ("modern", "1.0"), ("modern", None)])
def test_a_card_is_in_the_form_of_1_0_and_says_so(http: HttpCaller, agent: str, version: str | None) -> None:
    reply = card(http, CARD.replace("demo", agent), a2a_version=version)
    assert (reply.headers["a2a-version"], reply.headers["vary"]) == ("1.0", "A2A-Version, Accept")
    old = {"url", "preferredTransport", "additionalInterfaces", "protocolVersion", "security"}
    assert not old & set(reply.json())


@covers("card.interfaces", "voice.69", "voice.77")
@pytest.mark.parametrize("agent", AGENTS)
def test_every_interface_that_a_card_lists_answers(http: HttpCaller, agent: str) -> None:
    base = f"{http.origin}/agents/{agent}"
    listed = card(http, f"/agents/{agent}/.well-known/agent-card.json").json()["supportedInterfaces"]
    assert [entry for entry in listed if entry["protocolVersion"] == "1.0"] == [
        {"url": base, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": f"{base}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ]
    headers = {"A2A-Version": listed[0]["protocolVersion"]}
    assert http.client.get(f"{listed[0]['url']}/tasks", headers=headers).json()["pageSize"] == 50
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
    headers = {"A2A-Version": listed[1]["protocolVersion"]}
    assert http.client.post(listed[1]["url"], json=call, headers=headers).json()["result"]["pageSize"] == 50


@covers("card.caching")
def test_a_card_may_be_kept_and_says_for_how_long(http: HttpCaller) -> None:
    reply = card(http)
    assert reply.headers["content-type"] == "application/json"
    age = re.fullmatch(r"public, max-age=(\d+)", reply.headers["cache-control"])
    assert age is not None and int(age[1]) > 0
    assert re.fullmatch(r'"[0-9a-f]{16,}"', reply.headers["etag"])
    parsedate_to_datetime(reply.headers["last-modified"])


@covers("card.conditional")
@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', '"other",W/{}', "*"])
def test_a_card_that_the_asker_has_is_not_sent_again(http: HttpCaller, form: str) -> None:
    whole = card(http)
    reply = card(http, if_none_match=form.format(whole.headers["etag"]))
    assert (reply.status, reply.body) == (304, b"")
    for name in ("etag", "cache-control", "vary", "last-modified", "a2a-version"):
        assert reply.headers[name] == whole.headers[name]
    assert reply.headers["x-request-id"]


@covers("card.conditional")
@pytest.mark.parametrize("tag", ['"other"', "", "garbage", "é", '"'])
def test_a_card_that_the_asker_has_not_is_sent(http: HttpCaller, tag: str) -> None:
    answer = http.client.get(
        http.origin + CARD, headers={"A2A-Version": "1.0", "If-None-Match": tag.encode()}
    )
    assert (answer.status_code, answer.content) == (200, card(http).body)


@covers("card.conditional")
@pytest.mark.parametrize(
    ("since", "status"),
    [
        ("{}", 304),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 304),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 200),
        ("garbage", 200),
        ("99999999999999999999", 200),
        ("Thu, 01 Jan 99999 00:00:00 GMT", 200),
    ],
)
def test_a_card_is_sent_again_only_if_it_changed_since(http: HttpCaller, since: str, status: int) -> None:
    stamp = card(http).headers["last-modified"]
    assert card(http, if_modified_since=since.format(stamp)).status == status
    # An entity tag decides alone where one is sent (RFC 9110 §13.1.3).
    assert card(http, if_modified_since=since.format(stamp), if_none_match='"other"').status == 200


@covers("card.forms")
def test_a_card_is_in_a2a_json_if_the_asker_names_that(http: HttpCaller) -> None:
    reply = card(http, accept="application/a2a+json")
    assert reply.headers["content-type"] == "application/a2a+json"
    assert reply.json() == card(http).json()


@covers("card.forms")
def test_the_query_may_name_the_version_of_a_card(http: HttpCaller) -> None:
    assert card(http, f"{CARD}?A2A-Version=1.0").body == card(http).body
    assert card(http, f"{CARD}?A2A-Version=1.0", a2a_version=None).body == card(http).body
    refused(card(http, f"{CARD}?A2A-Version=0.2", a2a_version=None), VERSION)
    refused(card(http, a2a_version="0.2"), VERSION)


@covers("card.head", "voice.70")
def test_head_of_a_card_has_the_headers_of_get_and_no_body(http: HttpCaller) -> None:
    whole = card(http)
    head = http.deliver(Request("HEAD", CARD, READY))
    assert (head.status, head.body) == (200, b"")
    for name in (
        "content-type",
        "content-length",
        "etag",
        "cache-control",
        "vary",
        "last-modified",
        "a2a-version",
    ):
        assert head.headers[name] == whole.headers[name]
    assert (
        http.deliver(Request("HEAD", CARD, {**READY, "If-None-Match": whole.headers["etag"]})).status == 304
    )


@covers("card.refused")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_a_card_is_for_reading_only(http: HttpCaller, method: str) -> None:
    reply = http.deliver(Request(method, CARD, READY))
    assert reply.headers["allow"] == "GET, HEAD"
    refused(reply, NOT_ALLOWED)


@covers("card.refused")
def test_an_agent_that_is_not_here_has_no_card(http: HttpCaller) -> None:
    refused(card(http, "/agents/nobody/.well-known/agent-card.json", a2a_version="1.0"), NO_AGENT)


@covers("card.root")
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
def test_the_root_has_no_card_where_no_agent_is_the_only_or_the_default_one(
    http: HttpCaller, path: str
) -> None:
    reply = card(http, path)
    assert (reply.status, reply.reason) == (404, "AGENT_NOT_FOUND")


@covers("card.stable")
def test_a_card_does_not_change_while_the_server_works(http: HttpCaller) -> None:
    before = card(http)
    for text in ("hello", "crash", "message x"):
        if text != "message x":
            sent(http, text)
    after = card(http)
    assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])
