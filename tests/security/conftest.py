"""Servers that want credentials, and what sends requests to them."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from dragoman.gateway.tenants import Token
from dragoman.identity import hash_token
from dragoman.storage import administer
from tests.harness import stores
from tests.harness.server import ServerProcess
from tests.interaction.answers import Reply
from tests.interaction.callers import HttpCaller, Request
from tests.interaction.messages import send_params
from tests.interaction.rows import Rows
from tests.security.surfaces import SURFACES, Surface

FULL = "alice-full-Zm9vYmFyLXNlY3JldA"
READ = "alice-read-Zm9vYmFyLXNlY3JldA"
WRITE = "alice-write-Zm9vYmFyLXNlY3JldA"
MUTE = "alice-mute-Zm9vYmFyLXNlY3JldA"
LIKE = "alice-like-Zm9vYmFyLXNlY3JldA"
ADMIN = "alice-admin-Zm9vYmFyLXNlY3JldA"
BOB = "bob-of-acme-Zm9vYmFyLXNlY3JldA"
CAROL = "carol-of-beta-Zm9vYmFyLXNlY3JldA"
TWIN = "alice-of-beta-Zm9vYmFyLXNlY3JldA"

SECRETS = {
    "ALICE_FULL": FULL,
    "ALICE_READ": READ,
    "ALICE_WRITE": WRITE,
    "ALICE_MUTE": MUTE,
    "ALICE_ADMIN": ADMIN,
    "BOB": BOB,
    "CAROL": CAROL,
    "TWIN": TWIN,
}

TENANTS = """
[tenants.acme.principals.alice]
tokens = [
    { env = "ALICE_FULL", scopes = ["ai:*", "a2a:*"] },
    { env = "ALICE_READ", scopes = ["ai:answer", "a2a:read"] },
    { env = "ALICE_WRITE", scopes = ["ai:answer", "a2a:delegate"] },
    { env = "ALICE_MUTE", scopes = ["a2a:*"] },
    { env = "ALICE_ADMIN", scopes = ["admin:*"] },
]
[tenants.acme.principals.bob]
tokens = [{ env = "BOB", scopes = ["*"] }]
[tenants.beta.principals.carol]
tokens = [{ env = "CAROL", scopes = ["*"] }]
[tenants.beta.principals.alice]
tokens = [{ env = "TWIN", scopes = ["*"] }]
"""

AGENTS = """
[agents.demo]
python = "dragoman.agents.demo:demo"
[agents.ours]
python = "dragoman.agents.demo:demo"
tenant = "acme"
[agents.theirs]
python = "dragoman.agents.demo:demo"
tenant = "beta"
[agents.anyones]
python = "dragoman.agents.demo:demo"
public = true
[agents.ours-and-anyones]
python = "dragoman.agents.demo:demo"
tenant = "acme"
public = true
"""

APP = "https://app.example.com"
SERVER = f"""
[server]
cors_origins = ["{APP}"]
[limits]
failed_auth = 1000000
"""


class Sender:
    """Sends requests to one server as they are."""

    def __init__(self, client: httpx2.Client, server: ServerProcess) -> None:
        self.server = server
        self.rows = Rows(server.data)
        self._client = client

    def send(self, request: Request, surface: Surface | None = None) -> Reply:
        """Send a request and give the reply, whatever its status."""
        answer = self._client.request(
            request.method,
            self.server.url + request.target,
            content=request.body,
            headers=dict(request.headers),
        )
        binding = surface.binding if surface is not None else "http"
        return Reply(binding, answer.status_code, dict(answer.headers), answer.content)

    def get(self, path: str, **headers: str) -> Reply:
        """Read a path of the server."""
        return self.send(Request("GET", path, headers))

    def task(self, token: str, text: str = "hello", agent: str = "demo", *, wait: bool = True) -> str:
        """The id of a task that a token's principal began, by default of one that is finished."""
        caller = HttpCaller(self._client, self.server.url, agent)
        params = send_params(text, configuration={"returnImmediately": not wait})
        return str(
            caller.call("SendMessage", params, headers={"Authorization": f"Bearer {token}"}).task["id"]
        )


@pytest.fixture(scope="session")
def client() -> Iterator[httpx2.Client]:
    """One HTTP client with connections that are kept."""
    with httpx2.Client(timeout=20, trust_env=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of two tenants, with as many failures as anybody likes."""
    folder = tmp_path_factory.mktemp("security")
    made = started(folder, SERVER + AGENTS + TENANTS)
    add_look_alikes(made)
    with made as running:
        yield running


def add_look_alikes(server: ServerProcess) -> None:
    """Give alice a token with scopes that are none: refused where tokens are made, but a store could hold them."""
    scopes = ("ai:answer", "a2a:readx", "A2A:READ", "*:*", "a2a", "a2a:delegate\t")
    like = Token(id="like", tenant="acme", principal="alice", scopes=scopes, note="", created_at=1)
    administer(stores.place_of(server.data), lambda book: book.add_token(like, hash_token(LIKE)))


def started(folder: Path, config: str) -> ServerProcess:
    """A server with a configuration, and the tokens that it names; not started yet."""
    file = folder / "dragoman.toml"
    file.write_text(config, encoding="utf-8")
    return ServerProcess(folder / "data", config=file, environment=SECRETS)


@pytest.fixture(scope="session")
def sender(client: httpx2.Client, server: ServerProcess) -> Sender:
    """What sends requests to that server."""
    return Sender(client, server)


@pytest.fixture(params=SURFACES, ids=lambda surface: surface.name)
def surface(request: pytest.FixtureRequest) -> Surface:
    """Every way in, in turn."""
    way: Surface = request.param
    return way


@pytest.fixture
def nothing_stored(sender: Sender) -> Iterator[None]:
    """Fail the test if it changed the number of rows of any table."""
    with sender.rows.unchanged():
        yield
