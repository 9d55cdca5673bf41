"""One real server for the session, callers of it at every place, and its rows.

Fixtures of the folder above that have to do with its server are replaced by those of the server here.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.conftest import AGENTS as SHARED_AGENTS
from tests.interaction.conftest import BODY_LIMIT, BODY_SECONDS
from tests.interaction.rows import Rows
from tests.interaction.v0_3.callers import (
    BASE,
    FORMS,
    FORMS_WITH_KINDS,
    KINDS,
    OFFICIAL,
    PLACES,
    PROTO,
    RPC,
    SEED_A,
    WEB,
    Caller,
)
from tests.interaction.v0_3.events import Stream
from tests.interaction.v0_3.messages import sent, state_of

AGENTS = Path(__file__).with_name("probe_agents.py")

CONFIG = f"""
[limits]
body = {BODY_LIMIT}
body_time = "{BODY_SECONDS}s"
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
retry = "200ms"
[agents.demo]
python = "dragoman.agents.demo:demo"
default = true
[agents.hooked]
python = "dragoman.agents.demo:demo"
push = true
[agents.digest]
python = "dragoman.agents.digest:digest"
[agents.modern]
python = "dragoman.agents.demo:demo"
versions = ["1.0"]
[agents.old]
python = "dragoman.agents.demo:demo"
versions = ["0.3"]
[agents.plain]
python = "dragoman.agents.demo:demo"
legacy_card = false
[agents.v1]
python = "dragoman.agents.demo:demo"
[agents.rpc]
python = "dragoman.agents.demo:demo"
[agents.tasks]
python = "dragoman.agents.demo:demo"
[agents.narrow]
python = "{SHARED_AGENTS}:hold"
max_runs = 1
max_waiting = 0
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Agents of every configuration that 0.3 has to do with, and the agents of these tests."""
    folder = tmp_path_factory.mktemp("interaction-0.3")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", agents=[SHARED_AGENTS, AGENTS], config=config) as running:
        yield running


@pytest.fixture(scope="session")
def rows(server: ServerProcess) -> Rows:
    """The server's rows."""
    return Rows(server.data)


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def caller(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller of the demo agent, at each place in turn."""
    return Caller(request.param, client, server.url)


@pytest.fixture
def all_places(client: httpx2.Client, server: ServerProcess) -> list[Caller]:
    """Callers of the demo agent at every place."""
    return [Caller(place, client, server.url) for place in PLACES]


@pytest.fixture(params=WEB, ids=lambda place: place.name)
def web(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller over HTTP+JSON, at each place in turn."""
    return Caller(request.param, client, server.url)


@pytest.fixture(params=FORMS, ids=lambda place: place.name)
def form(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller in each form over each binding once: for what hangs on how things are spelt, not on where."""
    return Caller(request.param, client, server.url)


@pytest.fixture(params=FORMS_WITH_KINDS, ids=lambda place: place.name)
def form_with_kinds(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller in the JSON with kinds over each binding once."""
    return Caller(request.param, client, server.url)


@pytest.fixture
def form_in_proto(client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller in ProtoJSON."""
    return Caller(PROTO, client, server.url)


@pytest.fixture(params=SEED_A, ids=lambda place: place.name)
def seed_a(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller at each of seed A's places in turn: headerless and with the header on the base, and at the alias."""
    return Caller(request.param, client, server.url)


@pytest.fixture(params=KINDS, ids=lambda place: place.name)
def kinds(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller in the JSON with kinds, at each place in turn."""
    return Caller(request.param, client, server.url)


@pytest.fixture(params=OFFICIAL, ids=lambda place: place.name)
def official(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller at the place of official HTTP+JSON clients, as each kind of them."""
    return Caller(request.param, client, server.url)


@pytest.fixture
def base(client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller without a version header at the agent's base."""
    return Caller(BASE, client, server.url)


@pytest.fixture
def rpc(client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller over JSON-RPC."""
    return Caller(RPC, client, server.url)


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["1.0 http", "1.0 jsonrpc"])
def newer(
    request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess
) -> HttpCaller | RpcCaller:
    """A caller of A2A 1.0, over each binding in turn."""
    made: HttpCaller | RpcCaller = request.param(client, server.url)
    return made


@pytest.fixture
def http(client: httpx2.Client, server: ServerProcess) -> HttpCaller:
    """A caller of A2A 1.0 over HTTP+JSON."""
    return HttpCaller(client, server.url)


@pytest.fixture
def holding(client: httpx2.Client, server: ServerProcess) -> Iterator[str]:
    """A task that is working and stays so without further events; it is cancelled afterwards."""
    agent = Caller(BASE, client, server.url, "hold")
    task_id = sent(agent, "wait", wait=False)["id"]
    _await_work(agent, task_id)
    yield task_id
    agent.call("CancelTask", {"id": task_id})


@dataclass(frozen=True)
class IdleStream:
    """A subscription to a task in which nothing happens until `caller` cancels it."""

    caller: Caller
    task_id: str
    stream: Stream


@pytest.fixture(scope="session", autouse=True)
def idle_streams(server: ServerProcess) -> Iterator[dict[str, IdleStream]]:
    """Subscriptions to a task of their own each, by place; open for the whole session."""
    with httpx2.Client(timeout=20, trust_env=False) as client, ExitStack() as stack:
        found = {}
        for place in PLACES:
            caller = Caller(place, client, server.url, "hold")
            task_id = sent(caller, "wait", wait=False)["id"]
            _await_work(caller, task_id)
            stream = stack.enter_context(caller.open("SubscribeToTask", {"id": task_id}))
            found[place.name] = IdleStream(caller, task_id, stream)
        yield found


def _await_work(caller: Caller, task_id: str) -> None:
    until(lambda: state_of(caller, task_id) == "working", what="the held task works")
