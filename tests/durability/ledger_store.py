"""What a server's store holds, looked at from outside."""

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

TERMINAL = ("COMPLETED", "FAILED", "CANCELED", "REJECTED")
STATES = (
    *("UNSPECIFIED", "SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED"),
    *("INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"),
)
"""The names of the states by the numbers that the store holds."""


class StoreView(Protocol):
    """The store behind a server, looked at from outside."""

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement selects."""
        ...

    def shift_clock(self, seconds: float) -> bool:
        """Move the store's clock forward; false if somebody else is writing just now."""
        ...

    def leave_lying(self, pattern: str, text: str, *, state: str = "SUBMITTED", attempt: int = 1) -> str:
        """Add a run that its server holds and knows nothing of, made after the task `pattern`; return its id.

        It reads as if its message had been accepted a while ago.
        """
        ...

    def leases(self) -> list[int]:
        """How many milliseconds the lease of each running task has left."""
        ...

    def check(self) -> None:
        """See that the store is whole: sequences without gaps, one ending a task, rows that agree with their events.

        And counters that agree with the rows, and nothing that hangs on no task. All of it at one moment: a server
        may go on writing.
        """
        ...

    def messages(self) -> dict[str, str]:
        """The task of every message identity."""
        ...

    def unfinished(self) -> list[str]:
        """The ids of the tasks that are submitted or at work."""
        return [task_id for (task_id,) in self.rows("SELECT id FROM task WHERE state IN (1, 2)")]

    def finished(self) -> set[str]:
        """The ids of the tasks that are finished."""
        return {task_id for (task_id,) in self.rows("SELECT id FROM task WHERE state IN (3, 4, 5, 7)")}

    def states(self) -> dict[str, str]:
        """The state of every task."""
        return {task_id: STATES[state] for task_id, state in self.rows("SELECT id, state FROM task")}


class StoreFile(StoreView):
    """A SQLite file, and what tests do to it behind its server's back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as connection:
            yield connection

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._open() as connection:
            return connection.execute(statement, values).fetchall()

    def shift_clock(self, seconds: float) -> bool:
        with closing(sqlite3.connect(self.path, timeout=0.1, isolation_level=None)) as connection:
            try:
                connection.execute("UPDATE clock SET offset_ms = offset_ms + ?", (int(seconds * 1000),))
            except sqlite3.OperationalError:
                return False
        return True

    def leave_lying(self, pattern: str, text: str, *, state: str = "SUBMITTED", attempt: int = 1) -> str:
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

    def leases(self) -> list[int]:
        found = self.rows("SELECT lease_until - now_ms FROM task, store_clock WHERE state IN (1, 2)")
        return [left for (left,) in found]

    def check(self) -> None:
        with self._open() as connection:
            connection.execute("BEGIN")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            for row in connection.execute(
                "SELECT id, seq, state, status_at, status_seq, attempt FROM task"
            ).fetchall():
                statement = "SELECT seq, at, attempt, payload FROM event WHERE task_id = ? ORDER BY seq"
                check_task(connection.execute(statement, row[:1]).fetchall(), *row)
            for table in ("event", "identity", "journal"):
                # What is left of a large task that is being purged is noted in the journal, under no task.
                orphans = (
                    f"SELECT task_id FROM {table} WHERE task_id <> '' AND task_id NOT IN"  # noqa: S608
                    " (SELECT id FROM task UNION ALL SELECT name FROM journal WHERE task_id = '')"
                )
                assert connection.execute(orphans).fetchall() == [], table
            _check_counters(connection)

    def messages(self) -> dict[str, str]:
        return dict(self.rows("SELECT message_id, task_id FROM identity"))


def check_task(
    events: Sequence[Sequence[Any]],
    task_id: str,
    seq: int,
    state: int,
    status_at: int,
    status_seq: int,
    attempt: int,
) -> None:
    """See that a task's row agrees with its events: their numbers, times, attempts and payloads."""
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
