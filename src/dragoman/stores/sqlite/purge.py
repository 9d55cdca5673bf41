"""Purging: what ended long enough ago is deleted, a few milliseconds at a time.

What is to go is found through the index by scope and state: a look for each scope and state, and from there only at
what has ended long enough ago. Runs that were answered with a bare message are in no index. A thorough round meets
them by going through all tasks in the order of their ids, which is that of their creation, up to the first that is
too young; it deletes what it meets of the others too, because what was written together is deleted with the least
writing.

Ordinary tasks go many at a time: few statements, each of which gives other threads the interpreter. A task with many
events, with large ones or with a journal goes by itself, row and counters first: from then on it is not found. If its
events take too long, the rest of them is noted as remains (in the journal, under the task id '' that no task has)
and deleted by the steps that follow, whoever takes them: a server that is killed leaves nothing lying.
"""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, json

from dragoman.gateway.ports import Purged
from dragoman.model import Scope, TaskState
from dragoman.model.errors import TaskNotFound, UnsupportedOperation
from dragoman.stores.operating import Wanted
from dragoman.stores.records import RECEIVED
from dragoman.stores.sqlite.rows import scope_id
from dragoman.stores.sqlite.writer import Transaction

STEP_SECONDS = 0.001
"""How long a step goes on deleting; it overruns by a few tasks, or by one slice of a large one."""

SLICE_ROWS = 64
SLICE_BYTES = 512 * 1024
"""What is deleted between two looks at the clock: so many tasks that have no more than this, or so much of one that has
more, or a single row that is larger."""

_TASKS = 16
_SCOPES = 200
_ROWS = 256

_COLUMNS = "t.id, t.scope_id, t.context_id, t.visible, t.counted, t.state, t.seq"

# A list of ids in JSON: one statement for however many there are. For our own ids only: json_each cuts U+0000.
_IDS = "(SELECT value FROM json_each(?))"

# The agent's name is '' where every agent is meant.
_ENDED = (
    f"SELECT {_COLUMNS} FROM scope s CROSS JOIN task t INDEXED BY task_newest_by_state ON t.scope_id = s.id"
    " WHERE s.id > ? AND s.id <= ? AND ? IN ('', s.agent) AND t.visible AND t.state = ? AND t.status_at < ? LIMIT ?"
)
_IN_ORDER = (
    f"SELECT {_COLUMNS}, t.status_at, t.created_at, ? IN ('', s.agent) FROM task t"
    " CROSS JOIN scope s ON s.id = t.scope_id WHERE t.id > ? ORDER BY t.id LIMIT ?"
)
_FORGET_CONTEXT = (
    "DELETE FROM counter WHERE scope_id = ? AND context_id = ? AND "
    f"{' + '.join(state.name.lower() for state in TaskState)} = 0"
)


_Row = tuple[Any, ...]


class _Identified(Struct):
    message_id: str


class _Sent(Struct):
    message: _Identified


_decode_sent = json.Decoder(_Sent).decode


def purge(tx: Transaction, ages: Mapping[TaskState, int], place: str, thorough: bool) -> Purged:
    """See `TaskStore.purge`."""
    return step(tx, Wanted({state: tx.now - age for state, age in ages.items()}), place, thorough)


def _ids(tasks: Sequence[str]) -> str:
    return json.encode(tasks).decode()


def step(tx: Transaction, wanted: Wanted, place: str, thorough: bool) -> Purged:
    """Take the next step of a round from `place` on, as `TaskStore.purge` does."""
    work = _Step(tx)
    part, _, at = (place or ("task/" if thorough else "scope/0")).partition("/")
    part, at = work.go(wanted, part, at)
    work.finish()
    return Purged(work.tasks, f"{part}/{at}" if part else "")


def purge_task(tx: Transaction, scope: Scope, task_id: str) -> None:
    """Delete one finished task, whatever its age.

    Raises:
        TaskNotFound: there is none.
        UnsupportedOperation: it is not finished.
    """
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM task t WHERE t.id = ? AND t.scope_id = ?", (task_id, scope_id(tx, scope))
    ).fetchone()
    if row is None:
        raise TaskNotFound(task_id)
    state = TaskState(row[5])
    if not state.is_terminal:
        raise UnsupportedOperation(f"Task {task_id} is {state.name}; only a finished one can be purged")
    work = _Step(tx)
    work.purge([row])
    work.finish()


def count(connection: sqlite3.Connection, wanted: Wanted) -> int:
    """Return how many tasks a thorough round would delete now; looks at every task there is."""
    ended = " OR ".join(["t.state = ? AND t.status_at < ?"] * len(wanted.before))
    found: int = connection.execute(
        "SELECT count(*) FROM task t JOIN scope s ON s.id = t.scope_id"
        f" WHERE ? IN ('', s.agent) AND ({ended})",
        (wanted.agent, *(value for pair in wanted.before.items() for value in pair)),
    ).fetchone()[0]
    return found


class _Step:
    """One step: it works until its time is over, and can then say where it stands."""

    def __init__(self, tx: Transaction) -> None:
        self.tasks = 0
        self._tx = tx
        self._until = time.perf_counter() + STEP_SECONDS
        self._contexts: set[tuple[int, str]] = set()

    def go(self, wanted: Wanted, part: str, at: str) -> tuple[str, str]:
        """Go on with a round at a place, and return the place that was reached."""
        if not self._clear_remains():
            return part, at
        if not wanted.before:
            return "", ""
        while part:
            part, at = self._scopes(wanted, int(at)) if part == "scope" else self._in_order(wanted, at)
            if self._is_late():
                break
        return part, at

    def purge(self, rows: Sequence[_Row]) -> int:
        """Delete the tasks of rows (of `_COLUMNS`), in order, until it is late; return how many are gone."""
        done = 0
        while done < len(rows):
            few = self._ordinary(rows[done : done + _TASKS])
            if few:
                self._purge_ordinary(few)
            else:
                self._purge_large(rows[done])
            done += len(few) or 1
            if self._is_late():
                break
        self.tasks += done
        return done

    def _ordinary(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """Return those at the beginning of `rows` that can be deleted together."""
        ids = _ids([row[0] for row in rows if row[6] <= SLICE_ROWS])
        weights = dict(
            self._tx.execute(
                f"SELECT task_id, sum(length(payload)) FROM event WHERE task_id IN {_IDS} GROUP BY task_id",
                (ids,),
            )
        )
        journaled = {
            task_id
            for (task_id,) in self._tx.execute(
                f"SELECT DISTINCT task_id FROM journal WHERE task_id IN {_IDS}", (ids,)
            )
        }
        weight = 0
        for count, (task_id, *_) in enumerate(rows):
            weight += weights.get(task_id, SLICE_BYTES)
            if weight >= SLICE_BYTES or task_id in journaled:
                return rows[:count]
        return rows

    def _purge_ordinary(self, rows: Sequence[_Row]) -> None:
        self._forget(rows)
        ids = _ids([row[0] for row in rows])
        scopes = {row[0]: row[1] for row in rows}
        received = self._tx.execute(
            f"SELECT task_id, payload FROM event WHERE task_id IN {_IDS} AND substr(payload, 1, ?) = ?",
            (ids, len(RECEIVED), RECEIVED),
        )
        self._forget_messages(ids, ((scopes[task_id], payload) for task_id, payload in received))
        self._tx.execute(f"DELETE FROM event WHERE task_id IN {_IDS}", (ids,))

    def _purge_large(self, row: _Row) -> None:
        self._forget([row])
        task_id, scope, *_ = row
        if not self._clear(scope, task_id):
            self._tx.execute(
                "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result)"
                " SELECT '', coalesce(max(ordinal), 0) + 1, 'purge', ?, 0, 0, ?"
                " FROM journal WHERE task_id = ''",
                (task_id, json.encode(scope)),
            )

    def _forget(self, rows: Sequence[_Row]) -> None:
        """Delete the rows of tasks, and take them out of the totals."""
        ids = _ids([row[0] for row in rows])
        self._tx.execute(f"DELETE FROM task WHERE id IN {_IDS}", (ids,))
        for _, scope, context_id, visible, counted, state, _ in rows:
            if visible:
                self._tx.count(scope, context_id if counted else "", TaskState(state), -1)
            if counted:
                self._contexts.add((scope, context_id))

    def _forget_messages(self, ids: str, received: Iterable[tuple[int, bytes]]) -> None:
        """Delete the identities of messages of these tasks: of each its scope, and the stored form of its event."""
        by_scope: defaultdict[int, list[str]] = defaultdict(list)
        for scope, payload in received:
            by_scope[scope].append(_decode_sent(payload).message.message_id)
        for scope, messages in by_scope.items():
            self._tx.execute(
                f"DELETE FROM identity WHERE scope_id = ? AND message_id IN ({', '.join('?' * len(messages))})"
                f" AND task_id IN {_IDS}",
                (scope, *messages, ids),
            )

    def finish(self) -> None:
        """Write the counters, and delete those of contexts that have no task any more."""
        if self._contexts:
            self._tx.write_counts()
            self._tx.executemany(_FORGET_CONTEXT, self._contexts)

    def _is_late(self) -> bool:
        return time.perf_counter() >= self._until

    def _scopes(self, wanted: Wanted, after: int) -> tuple[str, str]:
        """Purge tasks of the next scopes."""
        upto = after + _SCOPES
        for state, before in wanted.before.items():
            bound = (after, upto, wanted.agent, state, before, _TASKS)
            rows = self._tx.execute(_ENDED, bound).fetchall()
            if self.purge(rows) < len(rows) or len(rows) == _TASKS:
                return "scope", str(after)
        last: int | None = self._tx.execute("SELECT max(id) FROM scope").fetchone()[0]
        return ("scope", str(upto)) if upto < (last or 0) else ("", "")

    def _in_order(self, wanted: Wanted, after: str) -> tuple[str, str]:
        """Purge tasks in the order of their ids, the hidden ones too."""
        latest = max(wanted.before.values())
        rows = self._tx.execute(_IN_ORDER, (wanted.agent, after, _ROWS)).fetchall()
        old = []
        for *row, status_at, created_at, is_agents in rows:
            if created_at >= latest:
                rows = []
                break
            if is_agents and status_at < wanted.before.get(row[5], 0):
                old.append(tuple(row))
        done = self.purge(old)
        if done < len(old):
            return "task", old[done - 1][0]
        return ("task", rows[-1][0]) if len(rows) == _ROWS else ("scope", "0")

    def _clear_remains(self) -> bool:
        """Delete what is left of large tasks; false if there is more than there was time for."""
        while not self._is_late():
            row = self._tx.execute(
                "SELECT ordinal, name, result FROM journal WHERE task_id = '' ORDER BY ordinal LIMIT 1"
            ).fetchone()
            if row is None:
                return True
            ordinal, task_id, scope = row
            if not self._clear(json.decode(scope), task_id):
                return False
            self._tx.execute("DELETE FROM journal WHERE task_id = '' AND ordinal = ?", (ordinal,))
        return False

    def _clear(self, scope: int, task_id: str) -> bool:
        """Delete all that hangs on a task; false if there is more than there was time for."""
        return self._clear_events(scope, task_id) and self._clear_journal(task_id)

    def _clear_events(self, scope: int, task_id: str) -> bool:
        """Delete events, and with them the identities of the messages that they tell of."""
        more = True
        while more:
            upto, more = self._slice(
                "SELECT seq, length(payload) FROM event WHERE task_id = ? ORDER BY seq", task_id
            )
            received = self._tx.execute(
                "SELECT payload FROM event WHERE task_id = ? AND seq <= ? AND substr(payload, 1, ?) = ?",
                (task_id, upto, len(RECEIVED), RECEIVED),
            )
            self._forget_messages(_ids([task_id]), ((scope, payload) for (payload,) in received))
            self._tx.execute("DELETE FROM event WHERE task_id = ? AND seq <= ?", (task_id, upto))
            if more and self._is_late():
                return False
        return True

    def _clear_journal(self, task_id: str) -> bool:
        more = True
        while more:
            upto, more = self._slice(
                "SELECT ordinal, length(result) FROM journal WHERE task_id = ? ORDER BY ordinal", task_id
            )
            self._tx.execute("DELETE FROM journal WHERE task_id = ? AND ordinal <= ?", (task_id, upto))
            if more and self._is_late():
                return False
        return True

    def _slice(self, sizes: str, task_id: str) -> tuple[int, bool]:
        """Return the number of the last row that the next slice takes, and whether there are more after it."""
        rows = self._tx.execute(f"{sizes} LIMIT ?", (task_id, SLICE_ROWS + 1)).fetchall()
        upto, size = 0, 0
        for number, length in rows[:SLICE_ROWS]:
            size += length or 0
            if upto and size > SLICE_BYTES:
                break
            upto = number
        return upto, bool(rows) and upto < rows[-1][0]
