"""One real server with the hosted profile for the session, and its callers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.gateway.tenants import Token
from dragoman.identity import hash_token
from dragoman.storage import administer
from tests.harness import stores
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.following import sent, state_of
from tests.interaction.hosted.callers import TOKENS, Hosted
from tests.interaction.rows import Rows

PROBES = Path(__file__).with_name("probe_agents.py")

SHORT = '[server]\ndrain = "1s"\n[engine]\nsweep = "200ms"\n'
"""What servers of these tests have in common, beside the profile."""

AGENTS = f"""
[agents.demo]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
[agents.second]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
[agents.probe]
python = "{PROBES}:probe"
tenant = "acme"
workspace = "lab"
[agents.bare]
python = "{PROBES}:bare"
tenant = "acme"
workspace = "lab"
[agents.mixed]
python = "{PROBES}:mixed"
tenant = "acme"
workspace = "lab"
[agents.vault]
python = "{PROBES}:probe"
tenant = "acme"
workspace = "vault"
[agents.nowhere]
python = "dragoman.agents.demo:demo"
tenant = "acme"
[agents.theirs]
python = "dragoman.agents.demo:demo"
tenant = "globex"
workspace = "office"
[agents.plain]
python = "dragoman.agents.demo:demo"
tenant = "plainfolk"
workspace = "barn"
"""

FULL = '["ai:answer", "a2a:read", "a2a:delegate"]'

TENANTS = f"""
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.alice]
workspaces = ["lab", "vault"]
sources = ["wiki", "crm"]
tokens = [
    {{ env = "ALICE", scopes = {FULL} }},
    {{ env = "ALICE_READ", scopes = ["ai:answer", "a2a:read"] }},
    {{ env = "ALICE_WRITE", scopes = ["ai:answer", "a2a:delegate"] }},
    {{ env = "ALICE_MUTE", scopes = ["a2a:read", "a2a:delegate", "a2a:approve"] }},
    {{ env = "ALICE_STAR", scopes = ["*"] }},
    {{ env = "ALICE_STARS", scopes = ["ai:*", "a2a:*"] }},
    {{ env = "ALICE_ADMIN", scopes = ["ai:answer", "admin:*"] }},
    {{ env = "ALICE_NOTHING", scopes = [] }},
]
[tenants.acme.principals.bob]
workspaces = ["lab"]
tokens = [{{ env = "BOB", scopes = ["*"] }}]
[tenants.acme.principals.carol]
workspaces = ["lab"]
sources = ["wiki"]
tokens = [{{ env = "CAROL", scopes = ["ai:answer", "a2a:approve"] }}]
[tenants.acme.principals.dora]
tokens = [{{ env = "DORA", scopes = ["*"] }}]
[tenants.acme.principals.erin]
workspaces = ["lab"]
tokens = [{{ env = "ERIN", scopes = ["*"] }}]
[tenants.acme.principals.faye]
workspaces = ["lab"]
tokens = [{{ env = "FAYE", scopes = ["*"] }}]
[tenants.acme.principals.hugo]
workspaces = ["lab"]
tokens = [{{ env = "HUGO", scopes = ["*"] }}]
[tenants.globex]
features = ["agent_api"]
[tenants.globex.principals.gina]
workspaces = ["office", "lab"]
sources = ["wiki"]
tokens = [{{ env = "GINA", scopes = ["*"] }}]
[tenants.globex.principals.alice]
workspaces = ["lab", "office"]
tokens = [{{ env = "TWIN", scopes = ["*"] }}]
[tenants.plainfolk.principals.pat]
workspaces = ["barn"]
tokens = [{{ env = "PAT", scopes = ["*"] }}]
"""

HOSTED = "[hosted]\nenabled = true\n"


def prepared(folder: Path, config: str) -> ServerProcess:
    """A server of its own with this configuration, and the tokens that it may name; not started yet."""
    file = folder / "dragoman.toml"
    file.write_text(config, encoding="utf-8")
    return ServerProcess(folder / "data", config=file, environment=TOKENS)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of three tenants, with the usual bounds."""
    made = prepared(tmp_path_factory.mktemp("hosted"), SHORT + HOSTED + AGENTS + TENANTS)
    # Scopes that are none are refused where tokens are made, but a store could hold them.
    like = Token(
        id="like",
        tenant="acme",
        principal="alice",
        scopes=("ai:answer", "a2a:readx", "A2A:READ", "*:*", "a2a"),
        note="",
        created_at=1,
    )
    administer(
        stores.place_of(made.data), lambda book: book.add_token(like, hash_token(TOKENS["ALICE_LIKE"]))
    )
    with made as running:
        yield running


@pytest.fixture
def alice(client: httpx2.Client, server: ServerProcess) -> Hosted:
    """A caller of the hosted demo agent, with all it takes to call."""
    return Hosted(client, server.url)


@pytest.fixture
def probe(alice: Hosted) -> Hosted:
    """A caller of the agent of these tests."""
    return alice.to("probe")


@pytest.fixture(scope="session")
def rows(server: ServerProcess) -> Rows:
    """The server's rows."""
    return Rows(server.data)


@pytest.fixture(scope="session", autouse=True)
def idle_streams() -> None:
    """No stream of the folder above is needed here."""


@pytest.fixture
def held(probe: Hosted) -> Iterator[str]:
    """A task that goes on without further events; it is cancelled afterwards."""
    task_id = sent(probe, "hold", wait=False)["id"]
    until(lambda: state_of(probe, task_id) == "TASK_STATE_WORKING", what="the held task works")
    yield task_id
    probe.call("CancelTask", {"id": task_id})


@pytest.fixture
def write(server: ServerProcess) -> Callable[..., None]:
    """Writes to the server's store behind its back."""

    def execute(statement: str, *values: Any) -> None:
        assert stores.execute(server.data, statement, *values) > 0

    return execute
