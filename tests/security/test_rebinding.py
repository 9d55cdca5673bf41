"""Pages that give a local server another name: what they send is refused before anything is looked at."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.harness.server import ServerProcess
from tests.interaction.callers import Request
from tests.interaction.sockets import Socket
from tests.security.conftest import AGENTS, APP, FULL, TENANTS, Sender, started
from tests.security.surfaces import MISDIRECTED, SURFACES, Surface, reason, refused

AGENT = '[agents.demo]\npython = "dragoman.agents.demo:demo"\n'
SERVER = f"""
[server]
public_url = "https://agents.example.com:8443"
hosts = ["box.internal", "10.1.2.3"]
cors_origins = ["{APP}"]
"""
FOREIGN = [
    "rebound.example",
    "rebound.example:8080",
    "localhost.rebound.example",
    "127.0.0.1.rebound.example",
    "agents.example.com.rebound.example",
    "sub.agents.example.com",
    "192.168.0.7:8080",
    "0.0.0.0",
    "localhost, rebound.example",
    "",
]
OWN = [
    "localhost",
    "LOCALHOST:1",
    "anything.localhost:8080",
    "127.0.0.1",
    "127.1.2.3:80",
    "[::1]:8080",
    "agents.example.com",
    "agents.example.com:8443",
    "box.internal:9",
    "10.1.2.3",
]
PATHS = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/.well-known/agent-card.json",
    "/agents/demo/.well-known/agent-card.json",
    "/agents/demo/v1/card",
    "/v1/a2a/approvals",
    "/v1/admin/tenants",
    "/nowhere",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks nobody who they are."""
    with started(tmp_path_factory.mktemp("open"), SERVER + AGENT) as running:
        yield running


@pytest.fixture
def sender(client: httpx2.Client, server: ServerProcess) -> Sender:
    return Sender(client, server)


@pytest.mark.parametrize("host", FOREIGN)
def test_an_operation_under_another_name_is_refused_in_its_own_form_and_nothing_done(
    sender: Sender, surface: Surface, host: str
) -> None:
    with sender.rows.unchanged():
        for operation in surface.operations:
            asked = surface.ask(operation).with_headers(host=host)
            refused(surface, sender.send(asked, surface), MISDIRECTED)


@pytest.mark.parametrize("path", PATHS)
def test_everything_else_is_refused_too(sender: Sender, path: str) -> None:
    for host in FOREIGN:
        version = "0.3" if path.endswith("/card") else "1.0"
        reply = sender.get(path, host=host, **{"a2a-version": version})
        if version == "0.3":
            assert (reply.status, reply.json()["reason"]) == (421, "MISDIRECTED_REQUEST"), (path, host)
            continue
        assert (reply.status, reply.reason) == (421, "MISDIRECTED_REQUEST"), (path, host)
        assert host == "" or host not in reply.body.decode(), "what a caller says is not said back"


@pytest.mark.parametrize("host", OWN)
def test_names_of_the_machine_and_of_the_operator_are_served(sender: Sender, host: str) -> None:
    for path in ("/healthz", "/metrics", "/agents/demo/.well-known/agent-card.json"):
        assert sender.get(path, host=host).status == 200
    asked = SURFACES[0].ask("GetTask").with_headers(host=host)
    assert reason(SURFACES[0], sender.send(asked)) == "TASK_NOT_FOUND"


def test_a_page_of_an_allowed_origin_is_refused_under_another_name(sender: Sender) -> None:
    reply = sender.get("/metrics", host="rebound.example", origin=APP)
    assert reply.status == 421


def test_a_program_that_says_no_host_is_no_browser(server: ServerProcess) -> None:
    with Socket(server.url) as socket:
        socket.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert socket.reply().status == 200


def test_of_two_hosts_both_must_be_ours(server: ServerProcess) -> None:
    with Socket(server.url) as socket:
        socket.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example\r\n\r\n")
        assert socket.reply().status == 421


def test_where_callers_show_who_they_are_any_name_will_do(
    client: httpx2.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with started(tmp_path_factory.mktemp("closed"), AGENTS + TENANTS) as server:
        sender = Sender(client, server)
        asked = SURFACES[0].ask("GetTask", token=FULL).with_headers(host="anything.example")
        assert reason(SURFACES[0], sender.send(asked)) == "TASK_NOT_FOUND"
        assert sender.get("/healthz", host="anything.example").status == 200
        assert sender.send(Request("GET", "/metrics", {"host": "anything.example"})).status == 200
