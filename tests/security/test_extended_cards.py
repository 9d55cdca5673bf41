"""The extended card: who is shown it, over which way of asking, and what everybody else is told."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from dragoman.cards.verify import trusted, verify
from tests.harness.server import ServerProcess
from tests.interaction.answers import Reply
from tests.interaction.callers import Request
from tests.security.conftest import FULL, SECRETS, TENANTS, TWIN, WRITE, Sender

SOURCE = """
from dragoman.agents import Agent, Skill

def skill(name):
    return Skill(id=name, name=name, description="It does.", tags=["x"])

plain = Agent(id="plain", skills=[skill("known")])
more = Agent(id="more", skills=[skill("known")], extended_skills=[skill("secret"), skill("naïve 😀")])
for agent in (plain, more):
    @agent.handler
    def answer(run):
        return "hello"
"""

AGENTS = """
[agents.plain]
python = "{0}:plain"
[agents.more]
python = "{0}:more"
[agents.ours]
python = "{0}:more"
tenant = "acme"
[agents.anyones]
python = "{0}:more"
public = true
[agents.empty]
python = "{0}:plain"
extended_card = true
[agents.off]
python = "{0}:more"
extended_card = false
"""

KNOWN, ALL = ["known"], ["known", "secret", "naïve 😀"]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    """A server that wants credentials."""
    yield from _serving(tmp_path_factory.mktemp("extended"), TENANTS)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    """Somebody's own server, without any tenant."""
    yield from _serving(tmp_path_factory.mktemp("local"), "")


def _serving(folder: Any, tenants: str) -> Iterator[Sender]:
    (folder / "agents.py").write_text(SOURCE, encoding="utf-8")
    agents = AGENTS.format(folder / "agents.py")
    if not tenants:
        agents = agents.replace('tenant = "acme"\n', "")
    config = folder / "dragoman.toml"
    config.write_text(tenants + agents, encoding="utf-8")
    with (
        ServerProcess(folder / "data", config=config, environment=SECRETS) as server,
        httpx2.Client(timeout=20, trust_env=False) as client,
    ):
        yield Sender(client, server)


RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "%s"}'
JSON = {"Content-Type": "application/json"}
WAYS = {
    "1.0 HTTP": ("GET", "/extendedAgentCard", {"A2A-Version": "1.0"}, None),
    "1.0 JSON-RPC": ("POST", "/rpc", {"A2A-Version": "1.0", **JSON}, RPC % b"GetExtendedAgentCard"),
    "0.3 JSON-RPC": ("POST", "/rpc", JSON, RPC % b"agent/getAuthenticatedExtendedCard"),
    "0.3 HTTP": ("GET", "/v1/card", {}, None),
    "0.3 HTTP at the base": ("GET", "/card", {}, None),
    "0.3 HTTP official": ("GET", "/v1/v1/card", {}, None),
}
"""How to ask: method, path below the agent, headers and body."""

EACH_WAY = pytest.mark.parametrize("way", WAYS)


def ask(sender: Sender, way: str, agent: str = "more", token: str | None = FULL) -> Reply:
    method, path, headers, body = WAYS[way]
    shown = {} if token is None else {"Authorization": f"Bearer {token}"}
    reply = sender.send(Request(method, f"/agents/{agent}{path}", {**headers, **shown}, body))
    binding = "jsonrpc" if "JSON-RPC" in way else "http"
    return Reply(binding, reply.status, reply.headers, reply.body)


def card(reply: Reply) -> dict[str, Any]:
    """The card in a reply, which must be one."""
    assert reply.status == 200, reply.body
    document = reply.json()
    found: dict[str, Any] = document["result"] if reply.binding == "jsonrpc" else document
    return found


def skills(document: dict[str, Any]) -> list[str]:
    return [skill["id"] for skill in document["skills"]]


def told(reply: Reply, way: str) -> Any:
    """What a refusal is called in the form of its way."""
    document = reply.json()
    if "JSON-RPC" in way:
        return document["error"]["code"]
    return document["reason"] if "0.3" in way else document["error"]["details"][0]["reason"]


@EACH_WAY
def test_who_shows_who_they_are_gets_the_card_with_more_skills_signed_for_its_version(
    closed: Sender, way: str
) -> None:
    document = card(ask(closed, way))
    assert skills(document) == ALL
    version = way[:3]
    assert ("supportedInterfaces" in document, "url" in document) == (version == "1.0", version == "0.3")
    keys = closed.get("/agents/more/.well-known/jwks.json").body
    verdict = verify(document, trusted(keys, time.time()))
    assert (verdict.covered, {one.flaw for one in verdict.signatures}) == ((version,), {""})


@EACH_WAY
def test_the_caller_of_ones_own_server_counts_as_known(local: Sender, way: str) -> None:
    for agent in ("more", "ours", "anyones"):
        assert skills(card(ask(local, way, agent, None))) == ALL


@pytest.mark.parametrize("version", [None, "1.0", "0.3"])
def test_the_public_card_declares_it_and_keeps_quiet_about_what_it_adds(
    closed: Sender, version: str | None
) -> None:
    headers = {} if version is None else {"A2A-Version": version}
    for agent, declared in (("more", True), ("empty", True), ("plain", False), ("off", False)):
        reply = closed.get(f"/agents/{agent}/.well-known/agent-card.json", **headers)
        document = reply.json()
        assert skills(document) == KNOWN
        assert "secret" not in reply.body.decode()
        if version != "0.3":
            assert document["capabilities"]["extendedAgentCard"] is declared
        if version != "1.0":
            assert document.get("supportsAuthenticatedExtendedCard", False) is declared


@EACH_WAY
@pytest.mark.parametrize("agent", ["more", "ours", "anyones"])
@pytest.mark.parametrize("token", [None, "nobody-knows-this-token-at-all"])
def test_who_shows_nothing_good_is_refused_with_a_challenge(
    closed: Sender, way: str, agent: str, token: str | None
) -> None:
    reply = ask(closed, way, agent, token)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith('Bearer realm="dragoman"')
    assert b"secret" not in reply.body
    assert told(reply, way) == (-32000 if "JSON-RPC" in way else "UNAUTHENTICATED")


@EACH_WAY
def test_it_takes_the_scope_for_reading(closed: Sender, way: str) -> None:
    reply = ask(closed, way, token=WRITE)
    assert reply.status == 403
    assert 'scope="a2a:read"' in reply.headers["www-authenticate"]


@EACH_WAY
def test_another_tenants_agent_is_not_there(closed: Sender, way: str) -> None:
    reply = ask(closed, way, "ours", TWIN)
    assert reply.status == 404
    assert b"secret" not in reply.body


@pytest.mark.parametrize("way", [way for way in WAYS if way[:3] == "1.0" or "JSON-RPC" in way])
@pytest.mark.parametrize("agent", ["plain", "off"])
def test_an_agent_that_declares_none_does_not_support_it(closed: Sender, way: str, agent: str) -> None:
    reply = ask(closed, way, agent)
    assert reply.status == (200 if "JSON-RPC" in way else 400)
    assert told(reply, way) == (-32004 if "JSON-RPC" in way else "UNSUPPORTED_OPERATION")


@pytest.mark.parametrize("way", [way for way in WAYS if "0.3 HTTP" in way])
@pytest.mark.parametrize("token", [None, FULL])
def test_where_none_is_declared_the_card_itself_stands_where_0_3_asks_for_it(
    closed: Sender, way: str, token: str | None
) -> None:
    for agent in ("plain", "off"):
        assert skills(card(ask(closed, way, agent, token))) == KNOWN


@EACH_WAY
def test_one_that_is_declared_without_anything_in_it_is_not_configured(closed: Sender, way: str) -> None:
    reply = ask(closed, way, "empty")
    assert reply.status == (200 if "JSON-RPC" in way else 400)
    assert told(reply, way) == (-32007 if "JSON-RPC" in way else "EXTENDED_AGENT_CARD_NOT_CONFIGURED")


@pytest.mark.parametrize("way", [way for way in WAYS if "HTTP" in way])
def test_it_is_for_its_caller_to_keep_and_for_nobody_else(closed: Sender, way: str) -> None:
    whole = ask(closed, way)
    assert whole.headers["cache-control"] == "private, max-age=300"
    method, path, headers, _ = WAYS[way]
    named = {**headers, "If-None-Match": whole.headers["etag"]}
    with_token = {**named, "Authorization": f"Bearer {FULL}"}
    assert closed.send(Request(method, f"/agents/more{path}", with_token)).status == 304
    assert closed.send(Request(method, f"/agents/more{path}", named)).status == 401
    head = closed.send(Request("HEAD", f"/agents/more{path}", with_token))
    assert head.status in (200, 304) and head.body == b""
    for other in ("POST", "PUT", "DELETE"):
        assert closed.send(Request(other, f"/agents/more{path}", with_token)).status == 405
