"""One real server for the session, callers of it, and its rows."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.callers import Caller, HttpCaller, RpcCaller
from tests.interaction.events import Stream
from tests.interaction.following import sent, state_of
from tests.interaction.rows import Rows
from tests.interaction.sockets import Socket

BODY_LIMIT = 1024 * 1024
BODY_SECONDS = 2
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
[agents.digest]
python = "dragoman.agents.digest:digest"
[agents.hooked]
python = "dragoman.agents.demo:demo"
push = true
[agents.modern]
python = "dragoman.agents.demo:demo"
versions = ["1.0"]
[agents.dressed]
python = "dragoman.agents.demo:demo"
extensions = ["urn:dragoman:ext:run-facts:v1", {{ uri = "urn:test:own:v1", params = {{ most = 3, of = ["a"] }} }}]
"""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that ties tests to the manifest."""
    config.addinivalue_line("markers", "requirement(*ids): proves these requirements of the manifest")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The demo agents and the agents of these tests, with a small body limit and a short time for bodies."""
    folder = tmp_path_factory.mktemp("interaction")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", agents=[AGENTS], config=config) as running:
        yield running


@pytest.fixture(scope="session")
def client() -> Iterator[httpx2.Client]:
    """One HTTP client with connections that are kept."""
    with httpx2.Client(timeout=20, trust_env=False) as opened:
        yield opened


@pytest.fixture
def http(client: httpx2.Client, server: ServerProcess) -> HttpCaller:
    """A caller of the demo agent over HTTP+JSON."""
    return HttpCaller(client, server.url)


@pytest.fixture
def rpc(client: httpx2.Client, server: ServerProcess) -> RpcCaller:
    """A caller of the demo agent over JSON-RPC."""
    return RpcCaller(client, server.url)


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["http", "jsonrpc"])
def caller(request: pytest.FixtureRequest, client: httpx2.Client, server: ServerProcess) -> Caller:
    """A caller of the demo agent, over each binding in turn."""
    made: Caller = request.param(client, server.url)
    return made


@pytest.fixture
def other(caller: Caller) -> Caller:
    """A caller of the same agent over the other binding."""
    kind = RpcCaller if isinstance(caller, HttpCaller) else HttpCaller
    return kind(caller.client, caller.origin)


@pytest.fixture
def socket(server: ServerProcess) -> Iterator[Socket]:
    """A plain connection to the server."""
    with Socket(server.url) as connected:
        yield connected


@pytest.fixture(scope="session")
def rows(server: ServerProcess) -> Rows:
    """The server's rows."""
    return Rows(server.data)


@pytest.fixture
def nothing_stored(rows: Rows) -> Iterator[None]:
    """Fail the test if it changed the number of rows of any table."""
    with rows.unchanged():
        yield


@pytest.fixture
def holding(caller: Caller) -> Iterator[str]:
    """A task that is WORKING and stays so without further events; it is cancelled afterwards."""
    agent = caller.to("hold")
    task = sent(agent, "wait", wait=False)
    until(lambda: state_of(agent, task["id"]) == "TASK_STATE_WORKING", what="the held task works")
    yield task["id"]
    agent.call("CancelTask", {"id": task["id"]})


@pytest.fixture(scope="session", autouse=True)
def idle_streams(server: ServerProcess) -> Iterator[dict[str, Stream]]:
    """Subscriptions, by binding, to a task in which nothing happens; open for the whole session."""
    with httpx2.Client(timeout=20, trust_env=False) as client, ExitStack() as stack:
        callers = [kind(client, server.url, "hold") for kind in (HttpCaller, RpcCaller)]
        task = sent(callers[0], "wait", wait=False)
        until(lambda: state_of(callers[0], task["id"]) == "TASK_STATE_WORKING", what="the idle task works")
        yield {
            caller.binding: stack.enter_context(caller.open("SubscribeToTask", {"id": task["id"]}))
            for caller in callers
        }
        callers[0].call("CancelTask", {"id": task["id"]})
