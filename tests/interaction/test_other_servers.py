"""Servers with another configuration: one agent, a default agent, a public address, the usual limits."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from dragoman.conformance import CONFORMANCE_AGENTS
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.interaction.callers import HttpCaller, Request, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers

ONE_AGENT = """
from dragoman.agents import Agent

only = Agent.from_function(lambda text: text.upper(), id="only", name="Only", description="Shouts.")
"""

DEMOS = """
[agents.demo]
python = "dragoman.agents.demo:demo"
{demo}
[agents.digest]
python = "dragoman.agents.digest:digest"
"""


@contextmanager
def serving(
    folder: Path, config: str = "", agents: tuple[Path, ...] = (), arguments: tuple[str, ...] = ()
) -> Iterator[HttpCaller]:
    """A caller of a server of its own."""
    file = folder / "dragoman.toml"
    file.write_text(config, encoding="utf-8")
    with (
        ServerProcess(folder / "data", agents=agents, config=file, arguments=arguments) as server,
        httpx2.Client(timeout=20, trust_env=False) as client,
    ):
        yield HttpCaller(client, server.url)


@covers("card.root")
def test_the_card_of_an_only_agent_stands_at_the_root_too(tmp_path: Path) -> None:
    file = tmp_path / "only.py"
    file.write_text(ONE_AGENT, encoding="utf-8")
    with serving(tmp_path, agents=(file,)) as http:
        own = http.deliver(Request("GET", "/agents/only/.well-known/agent-card.json"))
        assert own.json()["name"] == "Only"
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            root = http.deliver(Request("GET", path))
            assert (root.status, root.body, root.headers["etag"]) == (200, own.body, own.headers["etag"])
            assert http.deliver(Request("HEAD", path)).status == 200
            assert (
                http.deliver(Request("GET", path, {"A2A-Version": "2.0"})).reason == "VERSION_NOT_SUPPORTED"
            )


@covers("card.root")
def test_the_card_of_the_default_agent_stands_at_the_root_too(tmp_path: Path) -> None:
    with serving(tmp_path, DEMOS.format(demo="default = true")) as http:
        own = http.deliver(Request("GET", "/agents/demo/.well-known/agent-card.json"))
        root = http.deliver(Request("GET", "/.well-known/agent-card.json"))
        assert (root.status, root.body) == (200, own.body)


@covers("card.root", "agents.conformance")
def test_conformance_agents_are_served_where_they_are_asked_for_and_the_default_agent_stays(
    tmp_path: Path,
) -> None:
    file = tmp_path / "only.py"
    file.write_text(ONE_AGENT, encoding="utf-8")
    for arguments, status in (((), 404), (("--conformance",), 200)):
        with serving(tmp_path, agents=(file,), arguments=arguments) as http:
            root = http.deliver(Request("GET", "/.well-known/agent-card.json"))
            assert (root.status, root.json()["name"]) == (200, "Only")
            for agent in CONFORMANCE_AGENTS:
                card = http.deliver(Request("GET", f"/agents/{agent}/.well-known/agent-card.json"))
                assert card.status == status


@covers("card.root", "agents.conformance")
def test_a_conformance_agent_can_be_the_default_one(tmp_path: Path) -> None:
    for agent, python in CONFORMANCE_AGENTS.items():
        folder = tmp_path / agent
        folder.mkdir()
        config = f'[agents.{agent}]\npython = "{python}"\ndefault = true\n' + DEMOS.format(demo="")
        with serving(folder, config, arguments=("--conformance",)) as http:
            own = http.deliver(Request("GET", f"/agents/{agent}/.well-known/agent-card.json"))
            root = http.deliver(Request("GET", "/.well-known/agent-card.json"))
            assert (root.status, root.body) == (200, own.body)


@covers("agents.conformance-table")
@pytest.mark.parametrize(
    ("table", "status"), [((), 400), (("--tck-table", "1.0.1"), 400), (("--tck-table", "1.0.0"), 409)]
)
def test_conformance_agents_alone_answer_with_the_statuses_of_the_table(
    tmp_path: Path, table: tuple[str, ...], status: int
) -> None:
    config = '[agents.tck]\npython = "dragoman.agents.tck:tck"\ndefault = true\n' + DEMOS.format(demo="")
    with serving(tmp_path, config, arguments=("--conformance", *table)) as http:
        for agent in ("tck", "tck-min", "demo"):
            task = http.to(agent).call("SendMessage", send_params()).task
            reply = http.to(agent).call("CancelTask", {"id": task["id"]})
            assert reply.reason == "TASK_NOT_CANCELABLE"
            assert reply.status == reply.json()["error"]["code"] == (400 if agent == "demo" else status)
            by_rpc = RpcCaller(http.client, http.origin, agent).call("CancelTask", {"id": task["id"]})
            assert (by_rpc.status, by_rpc.json()["error"]["code"]) == (200, -32002)


@covers("agents.conformance-table")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--conformance", "--tck-table", "1.1"),
            "--tck-table 1.1: there is no such table; there is 1.0.1, 1.0.0",
        ),
        (("--tck-table", "1.0.0"), "write --conformance as well"),
    ],
)
def test_a_table_that_is_not_there_or_not_wanted_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ServerDidNotStartError, match=re.escape(said)), serving(tmp_path, arguments=arguments):
        pass


@covers("card.public-url", "voice.69")
def test_cards_name_the_public_address_and_the_base_path_and_nothing_else(tmp_path: Path) -> None:
    config = '[server]\npublic_url = "https://agents.example.com"\nbase_path = "/a/b"\n' + DEMOS.format(
        demo=""
    )
    with serving(tmp_path, config) as http:
        path = "/a/b/agents/demo/.well-known/agent-card.json"
        lies = {"Host": "evil.localhost", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"}
        card = http.deliver(Request("GET", path, {**lies, "A2A-Version": "1.0"})).json()
        assert [entry["url"] for entry in card["supportedInterfaces"][:2]] == [
            "https://agents.example.com/a/b/agents/demo",
            "https://agents.example.com/a/b/agents/demo/rpc",
        ]
        known = http.deliver(Request("GET", path, lies)).body.decode()
        assert "evil" not in known and http.origin not in known
        assert http.deliver(Request("GET", path.removeprefix("/a/b"))).status == 404
        inside = Request("GET", "/a/b/agents/demo/tasks", {"A2A-Version": "1.0"})
        assert http.deliver(inside).result["tasks"] == []
        for path in ("/healthz", "/a/b/healthz"):
            assert http.deliver(Request("GET", path)).status == (200 if path.startswith("/a") else 404)


LARGE = {
    "objects and an escape": lambda size: '["\\u0041",' + '{"a":0},' * (size // 8) + "0]",
    "large numbers": lambda size: "[" + ("9" * 4000 + ",") * (size // 4001) + "0]",
}


@covers("body.large")
@pytest.mark.alone
def test_a_body_of_the_usual_limit_does_not_keep_everybody_waiting(tmp_path: Path) -> None:
    """Four mebibytes from one caller; meanwhile every other caller, stream and probe waits for the same loop."""
    waits: dict[str, tuple[float, float]] = {}
    with serving(tmp_path, agents=(AGENTS,)) as http, ThreadPoolExecutor(1) as pool:
        for name, data in LARGE.items():
            params = json.dumps(send_params()).replace('{"text": "hello"}', '{"data":%s}')
            body = (params % data(4 * 1024 * 1024 - 1000)).encode()
            began, slowest = time.perf_counter(), 0.0
            sending = pool.submit(http.to("loud").call, "SendMessage", body)
            while not sending.done():
                slowest = max(slowest, http.client.get(f"{http.origin}/healthz").elapsed.total_seconds())
            assert sending.result().task["status"]["state"] == "TASK_STATE_FAILED"
            waits[name] = (slowest, time.perf_counter() - began)
    # A loop that stands still for it keeps the others waiting for about as long as the large body itself takes.
    assert all(slowest < max(0.25, took / 3) for slowest, took in waits.values()), waits


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpCaller]:
    """A server whose operator named the version to serve."""
    with serving(tmp_path_factory.mktemp("versions"), DEMOS.format(demo='versions = ["1.0"]')) as http:
        yield http


@covers("version.operator")
def test_an_agent_of_1_0_alone_lists_and_serves_that(versions: HttpCaller) -> None:
    card = versions.deliver(Request("GET", "/agents/demo/.well-known/agent-card.json")).json()
    assert {entry["protocolVersion"] for entry in card["supportedInterfaces"]} == {"1.0"}
    assert versions.call("ListTasks").result["totalSize"] == 0
