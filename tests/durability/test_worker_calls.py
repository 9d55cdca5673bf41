"""Handlers at a worker that call remote agents: the worker holds what that takes, and nothing that callers show."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.durability.delegating import AGENTS, OPENED, SECRET
from tests.durability.test_calls import text_of
from tests.durability.test_shared_delegations import KEY, WRONG_KEY
from tests.harness.rogue import Rogue, reply, task
from tests.harness.server import ServerDidNotStartError, ServerProcess, WorkerProcess
from tests.harness.wire import call

pytestmark = pytest.mark.own_store

CALLER = "a-token-that-the-worker-does-not-see"
CONFIG = """
[store]
url = "{url}"
[engine]
lease = "2s"
sweep = "1s"
runs = "workers"
[vault]
key_env = "SHARED_VAULT_KEY"
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.ann]
tokens = [{{ env = "ANNS_TOKEN", scopes = ["*"] }}]
[agents.caller]
python = "{agents}:caller"
tenant = "acme"
"""


class Fleet(NamedTuple):
    """A server with a tenant's remote agent, and its configuration, which a worker needs too."""

    server: ServerProcess
    config: Path

    def worker(self, key: str) -> WorkerProcess:
        """A worker that is not started: it has a key of the vault, and no token of a caller."""
        return WorkerProcess(
            self.config.parent / "worker",
            config=self.config,
            environment={"SHARED_VAULT_KEY": key},
        )

    def ask(self, path: str, body: object) -> Any:
        """What a call of ann's answers."""
        shown = {"authorization": f"Bearer {CALLER}"}
        answer = call("POST", self.server.url + path, body, headers=shown, timeout=60)
        assert answer.status < 300, answer
        return answer.json()


@pytest.fixture
def fleet(tmp_path: Path, other: Rogue, url: str) -> Iterator[Fleet]:
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.format(url=url, agents=AGENTS) + OPENED, encoding="utf-8")
    shown = {"SHARED_VAULT_KEY": KEY, "ANNS_TOKEN": CALLER}
    with ServerProcess(tmp_path / "server", config=config, environment=shown) as server:
        made = Fleet(server, config)
        made.ask("/v1/a2a/agents", {"name": "helper", "endpoint_url": other.url(), "bearer_token": SECRET})
        yield made


def test_a_handler_at_a_worker_calls_its_tenants_remote_agent(fleet: Fleet, other: Rogue) -> None:
    parts = [{"text": "bonjour"}]
    other.script = lambda asked: reply(task(asked, artifacts=[{"artifactId": "a", "parts": parts}]))
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "0 Hello"}]}
    with fleet.worker(KEY):
        found = fleet.ask("/agents/caller/message:send", {"message": message})["task"]
    assert text_of(found) == "completed|bonjour|remote-1|"
    (sent,) = other.got()
    assert sent.headers["authorization"] == f"Bearer {SECRET}"


def test_a_worker_that_cannot_open_what_is_sealed_does_not_start(fleet: Fleet) -> None:
    worker = fleet.worker(WRONG_KEY)
    with pytest.raises(ServerDidNotStartError, match="SHARED_VAULT_KEY"):
        worker.start()
    worker.close()
