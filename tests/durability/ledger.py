"""A server with the ledger agents, what they wrote down, and what the store's file holds."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.harness import stores
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import Reply, call

AGENTS = Path(__file__).parent / "agents" / "ledger_agents.py"
NOTHING: Mapping[str, str] = MappingProxyType({})
TERMINAL = ("COMPLETED", "FAILED", "CANCELED", "REJECTED")
STATES = (
    *("UNSPECIFIED", "SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED"),
    *("INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"),
)
"""The names of the states by the numbers that the store holds."""


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
        self.store = StoreFile(data / "dragoman.db")

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


class StoreFile:
    """The SQLite file behind a server, looked at from outside."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as connection:
            yield connection

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement selects."""
        with self._open() as connection:
            return connection.execute(statement, values).fetchall()

    def shift_clock(self, seconds: float) -> bool:
        """Move the store's clock forward; false if somebody else is writing just now."""
        with closing(sqlite3.connect(self.path, timeout=0.1, isolation_level=None)) as connection:
            try:
                connection.execute("UPDATE clock SET offset_ms = offset_ms + ?", (int(seconds * 1000),))
            except sqlite3.OperationalError:
                return False
        return True

    def leave_lying(self, pattern: str, text: str, *, state: str = "SUBMITTED", attempt: int = 1) -> str:
        """Add a run that its server holds and knows nothing of, made after the task `pattern`; return its id.

        It reads as if its message had been accepted a while ago.
        """
        made, number = f"left-lying-{uuid.uuid4()}", STATES.index(state)
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            past, future = connection.execute(
                "SELECT now_ms - 60000, now_ms + 60000 FROM store_clock"
            ).fetchone()
            (payload,) = connection.execute(
                "SELECT payload FROM event WHERE task_id = ? AND seq = 1", (pattern,)
            ).fetchone()
            received = json.loads(payload)
            received["message"]["message_id"], received["message"]["parts"][0]["text"] = made, text
            connection.execute(
                "INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq,"
                " created_at, request, epoch, attempt, dispatch, owner, lease_until, deadline_at)"
                " SELECT ?, scope_id, ?, visible, 0, ?, ?, ?, ?, ?, request, 1, ?, 'sent',"
                " (SELECT epoch FROM server), ?, ? FROM task WHERE id = ?",
                (made, made, number, past, number, number, past, attempt, future, future, pattern),
            )
            events = [received, {"c": "status", "state": 2}][:number]
            connection.executemany(
                "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
                [
                    (made, seq, attempt, past, json.dumps(event, separators=(",", ":")).encode())
                    for seq, event in enumerate(events, 1)
                ],
            )
            connection.execute(
                "UPDATE counter SET submitted = submitted + (? = 1), working = working + (? = 2)"
                " WHERE context_id = '' AND scope_id = (SELECT scope_id FROM task WHERE id = ?)",
                (number, number, made),
            )
            connection.execute("COMMIT")
        return made

    def unfinished(self) -> list[str]:
        """The ids of the tasks that are submitted or at work."""
        return [task_id for (task_id,) in self.rows("SELECT id FROM task WHERE state IN (1, 2)")]

    def finished(self) -> set[str]:
        """The ids of the tasks that are finished."""
        return {task_id for (task_id,) in self.rows("SELECT id FROM task WHERE state IN (3, 4, 5, 7)")}

    def states(self) -> dict[str, str]:
        """The state of every task."""
        return {task_id: STATES[state] for task_id, state in self.rows("SELECT id, state FROM task")}

    def check(self) -> None:
        """See that the file is whole: sequences without gaps, one ending a task, rows that agree with their events.

        And counters that agree with the rows, and nothing that hangs on no task. All of it at one moment: a server
        may go on writing.
        """
        with self._open() as connection:
            connection.execute("BEGIN")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            for row in connection.execute(
                "SELECT id, seq, state, status_at, status_seq, attempt FROM task"
            ).fetchall():
                _check_task(connection, *row)
            for table in ("event", "identity", "journal"):
                # What is left of a large task that is being purged is noted in the journal, under no task.
                orphans = (
                    f"SELECT task_id FROM {table} WHERE task_id <> '' AND task_id NOT IN"  # noqa: S608
                    " (SELECT id FROM task UNION ALL SELECT name FROM journal WHERE task_id = '')"
                )
                assert connection.execute(orphans).fetchall() == [], table
            _check_counters(connection)

    def messages(self) -> dict[str, str]:
        """The task of every message identity."""
        return dict(self.rows("SELECT message_id, task_id FROM identity"))


def _check_task(
    connection: sqlite3.Connection,
    task_id: str,
    seq: int,
    state: int,
    status_at: int,
    status_seq: int,
    attempt: int,
) -> None:
    statement = "SELECT seq, at, attempt, payload FROM event WHERE task_id = ? ORDER BY seq"
    events = connection.execute(statement, (task_id,)).fetchall()
    assert [event[0] for event in events] == list(range(1, seq + 1)), task_id
    changes = [json.loads(payload) for *_, payload in events]
    endings = [number for number, change in enumerate(changes, 1) if _ends(change)]
    assert endings == ([seq] if STATES[state] in TERMINAL else []), (task_id, changes)
    assert events[status_seq - 1][1] == status_at, task_id
    assert max(event[2] for event in events) == attempt
    assert changes[0]["c"] == "received"


def _check_counters(connection: sqlite3.Connection) -> None:
    """See that each scope, and each context that has counters, counts its visible tasks by state."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(counter)")][2:]
    assert columns == [name.lower() for name in STATES[1:]]
    counted = ", ".join(f"coalesce(sum(state = {number}), 0)" for number in range(1, len(STATES)))
    for scope, context, *totals in connection.execute("SELECT * FROM counter").fetchall():
        rows = "FROM task WHERE visible AND scope_id = ? AND ? IN ('', context_id)"
        expected = connection.execute(f"SELECT {counted} {rows}", (scope, context)).fetchone()
        assert tuple(totals) == expected, (scope, context)
    uncounted = (
        "SELECT id FROM task WHERE visible AND (NOT EXISTS"
        " (SELECT 1 FROM counter WHERE scope_id = task.scope_id AND context_id = '')"
        " OR (counted AND NOT EXISTS"
        " (SELECT 1 FROM counter WHERE scope_id = task.scope_id AND context_id = task.context_id)))"
    )
    assert connection.execute(uncounted).fetchall() == []


def _ends(change: dict[str, Any]) -> bool:
    return change["c"] == "reply" or (change["c"] == "status" and STATES[change["state"]] in TERMINAL)


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
