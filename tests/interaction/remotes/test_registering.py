"""`/v1/a2a/agents`: registrations of remote agents, their tokens, and their cards."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.receiver import Receiver
from tests.harness.rogue import Rogue, reply
from tests.harness.server import ServerProcess
from tests.interaction.remotes.callers import SECRET, Api, field, reason, rows


def test_a_registration_is_made_shown_listed_changed_and_removed(alice: Api) -> None:
    body = {"name": "Translator", "endpoint_url": "https://a.example/rpc", "bearer_token": SECRET}
    made = alice.call("POST", "/agents", body)
    assert made.status_code == 201
    shown = made.json()
    assert set(shown) == {"id", "name", "endpoint_url", "has_credential", "created_at"}
    assert (shown["name"], shown["endpoint_url"], shown["has_credential"]) == (
        "Translator",
        "https://a.example/rpc",
        True,
    )
    place = f"/agents/{shown['id']}"
    assert alice.call("GET", place).json() == shown
    assert shown in alice.by("BOB").call("GET", "/agents?limit=500").json()["agents"], "it is the tenant's"
    assert alice.call("HEAD", place).content == b""
    changed = alice.call("PATCH", place, {"name": "Interpreter"}).json()
    assert changed == shown | {"name": "Interpreter"}
    moved = alice.call("PATCH", place, {"endpoint_url": "https://a.example/other"}).json()
    assert moved["has_credential"] is True, "the origin is the same"
    dropped = alice.call("PATCH", place, {"bearer_token": None}).json()
    assert dropped["has_credential"] is False
    gone = alice.call("DELETE", place)
    assert (gone.status_code, gone.content) == (204, b"")
    assert reason(alice.call("GET", place)) == "REMOTE_NOT_FOUND"


def test_a_listing_comes_in_pages(alice: Api) -> None:
    made = {alice.register("https://a.example/rpc", None, f"n{number}") for number in range(5)}
    found: set[str] = set()
    after = ""
    while True:
        page = alice.call("GET", f"/agents?limit=2&after={after}").json()
        assert len(page["agents"]) <= 2
        found |= {one["id"] for one in page["agents"]}
        after = page["after"]
        if not after:
            break
    assert made <= found
    assert field(alice.call("GET", "/agents?limit=0")) == "limit"


@pytest.mark.parametrize(
    "place",
    [
        "https://b.example/rpc",
        "https://a.example:443/rpc",
        "https://A.example/rpc",
        "http://a.example/rpc",
        "https://a.example:8443/rpc",
        "https://a.example.b.example/rpc",
    ],
)
def test_a_changed_origin_drops_the_token(alice: Api, place: str) -> None:
    agent = alice.register("https://a.example/rpc")
    same = place.lower() in ("https://a.example/rpc", "https://a.example:443/rpc")
    changed = alice.call("PATCH", f"/agents/{agent}", {"endpoint_url": place}).json()
    assert (changed["endpoint_url"], changed["has_credential"]) == (place, same)
    back = alice.call("PATCH", f"/agents/{agent}", {"endpoint_url": "https://a.example/rpc"}).json()
    assert back["has_credential"] is same, "what was dropped does not come back"


def test_the_token_of_an_origin_is_never_sent_to_another(alice: Api, other: Rogue) -> None:
    with Rogue() as new:
        agent = alice.register(other.url())
        assert alice.delegate(agent, "first").json()["status"] == "completed"
        alice.call("PATCH", f"/agents/{agent}", {"endpoint_url": new.url()})
        assert alice.delegate(agent, "second").json()["status"] == "completed"
        alice.call("PATCH", f"/agents/{agent}", {"bearer_token": "another-token-altogether"})
        assert alice.delegate(agent, "third").json()["status"] == "completed"
        assert [one.headers.get("authorization") for one in other.got()] == [f"Bearer {SECRET}"]
        assert [one.headers.get("authorization") for one in new.got()] == [
            None,
            "Bearer another-token-altogether",
        ]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a.example/",
        "https://user:pass@a.example/",
        "https://a.example/#x",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://intranet/",
        "https://a.example\\@b.example/",
        "https://a.example/\r\nX: y",
        "https://ä.example/",
        "https://a.example/" + "x" * 3000,
        "not a url",
        7,
    ],
)
def test_a_refused_endpoint_is_refused_when_it_is_registered(alice: Api, url: Any) -> None:
    before = rows(alice.server, "remote_agent")
    answer = alice.call("POST", "/agents", {"name": "x", "endpoint_url": url})
    assert (answer.status_code, field(answer)) == (400, "endpoint_url")
    agent = alice.register("https://a.example/rpc", None)
    answer = alice.call("PATCH", f"/agents/{agent}", {"endpoint_url": url})
    assert (answer.status_code, field(answer)) == (400, "endpoint_url")
    assert rows(alice.server, "remote_agent") == before + 1


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": 7}, "name"),
        ({"bearer_token": ""}, "bearer_token"),
        ({"bearer_token": "a\r\nX: y"}, "bearer_token"),
        ({"bearer_token": "sécret"}, "bearer_token"),
        ({"bearer_token": "a b"}, "bearer_token"),
        ({"bearer_token": "x" * 8193}, "bearer_token"),
        ({"bearerToken": "x"}, "bearerToken"),
        ({"id": "mine"}, "id"),
    ],
)
def test_what_is_wrong_with_a_registration_is_named_and_no_token_is_repeated(
    alice: Api, change: dict[str, Any], wrong: str
) -> None:
    body = {"name": "x", "endpoint_url": "https://a.example/rpc"} | change
    agent = alice.register("https://a.example/rpc", None)
    for answer in (alice.call("POST", "/agents", body), alice.call("PATCH", f"/agents/{agent}", change)):
        assert (answer.status_code, field(answer)) == (400, wrong)
        token = str(change.get("bearer_token", ""))
        assert len(token) < 4 or token not in answer.text


def test_a_registration_is_checked_on_a_server_that_opens_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as running:
        mine = Api(running, None)
        for url in ("http://a.example/", "https://127.0.0.1/", "https://a.example:8443/"):
            answer = mine.call("POST", "/agents", {"name": "x", "endpoint_url": url})
            assert (answer.status_code, field(answer)) == (400, "endpoint_url")
        made = mine.call("POST", "/agents", {"name": "x", "endpoint_url": "https://a.example/rpc"})
        assert made.status_code == 201


# --------------------------------------------------------------------------------------------------------- discovering


def test_a_card_is_shown_judged_and_installs_nothing(alice: Api, home: ServerProcess) -> None:
    agent = alice.register(f"{home.url}/agents/demo/rpc")
    before = alice.call("GET", "/agents?limit=500").json()
    found = alice.call("POST", f"/agents/{agent}:discover").json()
    assert found["url"] == f"{home.url}/agents/demo/.well-known/agent-card.json"
    assert (found["valid"], found["findings"], found["signature"]) == (True, [], "good")
    assert found["card"]["name"] == "Demo"
    assert {one["binding"] for one in found["interfaces"]} == {"HTTP+JSON", "JSONRPC"}
    assert alice.call("GET", "/agents?limit=500").json() == before


def test_a_card_is_asked_for_without_the_token_until_one_is_wanted(alice: Api, other: Rogue) -> None:
    agent = alice.register(other.url("/a/rpc"))
    other.until = "head"
    card = json.dumps({"name": "x"}).encode()
    other.script = lambda asked: reply(card) if "authorization" in asked.headers else reply(b"", 401)
    found = alice.call("POST", f"/agents/{agent}:discover").json()
    assert (found["card"], found["valid"], found["signature"]) == ({"name": "x"}, False, "absent")
    assert [one.path for one in other.got()] == ["/a/.well-known/agent-card.json"] * 2
    other.script = lambda asked: reply(card)
    alice.call("POST", f"/agents/{agent}:discover")
    assert "authorization" not in other.got()[-1].headers


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"name":"%s"}' % SECRET.encode(), b"{" * 70_000])
def test_what_is_no_card_is_told_without_a_word_of_it(alice: Api, other: Rogue, body: bytes) -> None:
    agent = alice.register(other.url())
    other.until = "head"
    other.script = lambda asked: reply(body) if "authorization" in asked.headers else reply(b"", 401)
    answer = alice.call("POST", f"/agents/{agent}:discover")
    assert (answer.status_code, reason(answer)) == (503, "UNAVAILABLE")
    assert SECRET not in answer.text


def test_a_card_is_not_looked_for_where_it_is_redirected_to(alice: Api, other: Rogue) -> None:
    with Receiver() as elsewhere:
        agent = alice.register(other.url())
        other.until = "head"
        other.script = lambda asked: reply(b"", 302, f"Location: {elsewhere.url('/')}")
        assert alice.call("POST", f"/agents/{agent}:discover").status_code == 503
        assert elsewhere.connections == 0
