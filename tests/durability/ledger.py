"""A server with the ledger agents, and what they wrote down."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.durability.database import StoreDatabase
from tests.durability.ledger_store import TERMINAL, StoreFile, StoreView
from tests.harness import stores
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import Reply, call

AGENTS = Path(__file__).parent / "agents" / "ledger_agents.py"
NOTHING: Mapping[str, str] = MappingProxyType({})


class LedgerServer(ServerProcess):
    """`dragoman serve` with agents that write a ledger. Another one may be made on the same data."""

    def __init__(
        self, data: Path, *, config: str = "", agents: Path = AGENTS, environment: Mapping[str, str] = NOTHING
    ) -> None:
        self.ledger = data.parent / "ledger.jsonl"
        file = data.parent / "dragoman-test.toml"
        if config:
            file.write_text(config, encoding="utf-8")
        super().__init__(
            data,
            agents=[agents],
            config=file if config else None,
            environment={"LEDGER": str(self.ledger), **environment},
        )
        self.store: StoreView = (
            StoreDatabase(data) if stores.is_postgres() else StoreFile(data / "dragoman.db")
        )

    def configured(self, config: str) -> "LedgerServer":
        """The same server with a configuration; to be used instead of this one."""
        return LedgerServer(self.data, config=config)

    def noted(self, *, what: str = "", task: str = "", agent: str = "") -> list[dict[str, Any]]:
        """The lines of the ledger, oldest first: all, or those of one kind, task or agent."""
        if not self.ledger.exists():
            return []
        lines = [json.loads(line) for line in self.ledger.read_text(encoding="utf-8").splitlines()]
        wanted = {"what": what, "task": task, "agent": agent}
        return [line for line in lines if all(line[name] == value for name, value in wanted.items() if value)]

    def await_note(
        self, what: str, *, task: str = "", agent: str = "", seconds: float = 10.0
    ) -> dict[str, Any]:
        """The first line of this kind, once it is there."""
        return until(
            lambda: next(iter(self.noted(what=what, task=task, agent=agent)), None),
            what=f"{what!r} in the ledger",
            seconds=seconds,
        )

    def open_gate(self, name: str) -> None:
        """Let all runs of the agent `crowded` go on that wait for this gate."""
        self.ledger.with_name(f"{self.ledger.name}.{name}").touch()

    def get(self, agent: str, task_id: str) -> Reply:
        """GetTask."""
        return call("GET", f"{self.url}/agents/{agent}/tasks/{task_id}")

    def state(self, agent: str, task_id: str) -> str:
        """The state of a task, without its prefix."""
        reply = self.get(agent, task_id)
        assert reply.status == 200, reply
        name: str = reply.json()["status"]["state"]
        return name.removeprefix("TASK_STATE_")

    def ended(self, agent: str, task_id: str, *, seconds: float = 15.0) -> dict[str, Any]:
        """A task, once it is finished."""
        until(
            lambda: self.state(agent, task_id) in TERMINAL,
            what=f"task {task_id} is finished",
            seconds=seconds,
            every=0.05,
        )
        task: dict[str, Any] = self.get(agent, task_id).json()
        return task

    def exit_code(self, *, seconds: float) -> int:
        """Wait for the process to end by itself. Raises TimeoutError after `seconds`."""
        process = self._process
        assert process is not None
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the server did not end by itself within {seconds} s") from None

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        os.kill(self.pid, signal.SIGINT)

    def continue_if_frozen(self) -> None:
        """Let the process run on, if there is one."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGCONT)

    def printed_errors(self) -> str:
        """Everything on its standard error, all starts together."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")


def dragoman(
    *arguments: str, folder: Path, prefix: Sequence[str] = (), seconds: float = 30.0
) -> subprocess.CompletedProcess[str]:
    """Run `dragoman ARGUMENTS` in `folder` to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    if "--data" in arguments:
        environment |= stores.environment(folder / arguments[arguments.index("--data") + 1])
    return subprocess.run(
        [*prefix, sys.executable, "-m", "dragoman", *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(SOURCE), "LEDGER": str(folder / "ledger.jsonl")},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
