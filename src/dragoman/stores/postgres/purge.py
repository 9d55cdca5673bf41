"""Purging: what ended long enough ago is deleted, a few milliseconds at a time.

As in the SQLite store: what shows is found through the index by scope and state; runs that were answered with a bare
message are in no index, and a thorough round meets them by going through all tasks in the order of their ids, which is
that of their creation. A task with many events, with large ones or with a journal goes by itself, row and counters
first; if its events take too long, the rest is noted as remains (in the journal, under the task id '' that no task has)
and deleted by the steps that follow, whoever takes them.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, json

from dragoman.gateway.ports import Purged
from dragoman.model import Scope, TaskState
from dragoman.model.errors import TaskNotFound, UnsupportedOperation
from dragoman.stores.operating import Wanted
from dragoman.stores.postgres import writes
from dragoman.stores.postgres.connection import Database
from dragoman.stores.postgres.rows import COLUMNS, HeldRow
from dragoman.stores.postgres.transaction import Transaction
from dragoman.stores.records import RECEIVED

STEP_SECONDS = 0.005
"""How long a step goes on deleting; it overruns by a few tasks, or by one slice of a large one."""

SLICE_ROWS = 64
SLICE_BYTES = 512 * 1024
"""What is deleted between two looks at the clock: so many tasks that have no more than this, or so much of one that has
more, or a single row that is larger."""

_TASKS = 32
_SCOPES = 200
_ROWS = 256

_OF_TASK = ", ".join(f"t.{name.strip()}" for name in COLUMNS.split(","))
_WEIGHTS = (
    "SELECT k.id, coalesce(sum(length(e.payload)), 0)::bigint,"
    " EXISTS (SELECT 1 FROM journal j WHERE j.task_id = k.id)"
    " FROM unnest($1::text[]) k (id) LEFT JOIN event e ON e.task_id = k.id GROUP BY k.id"
)
_TABLES = (("task", "id"), ("run_source", "task_id"), ("approval", "task_id"), ("push_config", "task_id"))
_RECEIVED = (
    "SELECT payload FROM event WHERE task_id = ANY($1::text[])"
    " AND substring(payload FROM 1 FOR $2) = $3 AND seq <= $4"
)
_FORGET_MESSAGES = (
    "DELETE FROM identity i USING unnest($1::bigint[], $2::bytea[]) k (scope_id, name)"
    " WHERE i.scope_id = k.scope_id AND i.message_id = k.name AND i.task_id = ANY($3::text[])"
)
_OF_AGENT = "scope_id IN (SELECT s.id FROM scope s WHERE s.agent = $5)"
_ANY_SEQ = 2**31 - 1


class _Identified(Struct):
    message_id: str


class _Sent(Struct):
    message: _Identified


_decode_sent = json.Decoder(_Sent).decode


async def purge(tx: Transaction, ages: Mapping[TaskState, int], place: str, thorough: bool) -> Purged:
    """See `TaskStore.purge`."""
    wanted = Wanted({state: tx.now - age for state, age in ages.items()})
    return await step(tx, wanted, place, thorough)


async def step(tx: Transaction, wanted: Wanted, place: str, thorough: bool) -> Purged:
    """Take the next step of a round from `place` on, as `TaskStore.purge` does."""
    await tx.flush()
    work = _Step(tx, wanted)
    part, _, at = (place or ("task/" if thorough else "scope/0")).partition("/")
    part, at = await work.go(part, at)
    return Purged(work.tasks, f"{part}/{at}" if part else "")


async def purge_task(tx: Transaction, scope: Scope, task_id: str) -> None:
    """Delete one finished task, whatever its age.

    Raises:
        TaskNotFound: there is none.
        UnsupportedOperation: it is not finished.
    """
    row = tx.find(tx.scope_id(scope), task_id, hidden=True)
    if row is None:
        raise TaskNotFound(task_id)
    if not row.state.is_terminal:
        raise UnsupportedOperation(f"Task {task_id} is {row.state.name}; only a finished one can be purged")
    await _Step(tx, Wanted({})).purge([row])


async def count(db: Database, wanted: Wanted) -> int:
    """Return how many tasks a thorough round would delete now; looks at every task there is."""
    found: int = await db.fetchval(
        "SELECT count(*) FROM task t JOIN scope s ON s.id = t.scope_id"
        " JOIN unnest($1::smallint[], $2::bigint[]) k (state, before) ON t.state = k.state AND t.status_at < k.before"
        " WHERE $3 IN ('', s.agent)",
        [int(state) for state in wanted.before],
        list(wanted.before.values()),
        wanted.agent,
    )
    return found


class _Step:
    """One step: it works until its time is over, and can then say where it stands."""

    def __init__(self, tx: Transaction, wanted: Wanted) -> None:
        self.tasks = 0
        self._tx = tx
        self._before = wanted.before
        self._agent = wanted.agent
        self._until = time.perf_counter() + STEP_SECONDS

    async def go(self, part: str, at: str) -> tuple[str, str]:
        """Go on with a round at a place, and return the place that was reached."""
        if not await self._clear_remains():
            return part, at
        if not self._before:
            return "", ""
        while part:
            part, at = await (self._scopes(int(at)) if part == "scope" else self._in_order(at))
            if self._is_late():
                break
        return part, at

    def _is_late(self) -> bool:
        return time.perf_counter() >= self._until

    async def _scopes(self, after: int) -> tuple[str, str]:
        """Purge tasks of the next scopes."""
        upto = after + _SCOPES
        for state, before in self._before.items():
            rows = await self._tx.select(
                "scope_id > $1 AND scope_id <= $2 AND visible AND state = $3 AND status_at < $4"
                f" AND ($5 = '' OR {_OF_AGENT}) ORDER BY scope_id LIMIT {_TASKS}",
                after,
                upto,
                int(state),
                before,
                self._agent,
            )
            if await self.purge(rows) < len(rows) or len(rows) == _TASKS:
                return "scope", str(after)
        last: int | None = await self._tx.db.fetchval("SELECT max(id) FROM scope")
        return ("scope", str(upto)) if upto < (last or 0) else ("", "")

    async def _in_order(self, after: str) -> tuple[str, str]:
        """Purge tasks in the order of their ids, the hidden ones too."""
        latest = max(self._before.values())
        found = await self._tx.db.fetch(
            f"SELECT id, state, status_at, created_at, $2 = '' OR {_OF_AGENT.replace('$5', '$2')} FROM task"
            f" WHERE id > $1 ORDER BY id LIMIT {_ROWS}",
            after,
            self._agent,
        )
        old: list[str] = []
        young = False
        for task_id, state, status_at, created_at, is_agents in found:
            if created_at >= latest:
                young = True
                break
            if is_agents and status_at < self._before.get(TaskState(state), 0):
                old.append(task_id)
        rows = await self._tx.select("id = ANY($1::text[]) ORDER BY id", old)
        done = await self.purge(rows)
        if done < len(rows):
            return "task", rows[done - 1].id
        return ("task", found[-1][0]) if len(found) == _ROWS and not young else ("scope", "0")

    async def purge(self, rows: Sequence[HeldRow]) -> int:
        """Delete the tasks of rows, in order, until it is late; return how many are gone."""
        done = 0
        while done < len(rows):
            few = await self._ordinary(rows[done : done + _TASKS])
            if few:
                await self._purge_ordinary(few)
            else:
                await self._purge_large(rows[done])
            done += len(few) or 1
            if self._is_late():
                break
        self.tasks += done
        return done

    async def _ordinary(self, rows: Sequence[HeldRow]) -> Sequence[HeldRow]:
        """Return those at the beginning of `rows` that can be deleted together."""
        few = [row.id for row in rows if row.seq <= SLICE_ROWS]
        weights = {
            task_id: SLICE_BYTES if journaled else weight
            for task_id, weight, journaled in await self._tx.db.fetch(_WEIGHTS, few)
        }
        weight = 0
        for count, row in enumerate(rows):
            weight += weights.get(row.id, SLICE_BYTES)
            if weight >= SLICE_BYTES:
                return rows[:count]
        return rows

    async def _purge_ordinary(self, rows: Sequence[HeldRow]) -> None:
        await self._forget(rows)
        for scope in {row.scope_id for row in rows}:
            ids = [row.id for row in rows if row.scope_id == scope]
            await self._forget_messages(scope, ids, _ANY_SEQ)
            await self._tx.db.execute("DELETE FROM event WHERE task_id = ANY($1::text[])", ids)

    async def _purge_large(self, row: HeldRow) -> None:
        await self._forget([row])
        if not await self._clear(row.scope_id, row.id):
            await self._tx.db.execute(
                "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result)"
                " SELECT '', coalesce(max(ordinal), 0) + 1, 'purge', $1, 0, 0, $2 FROM journal WHERE task_id = ''",
                row.id.encode(),
                json.encode(row.scope_id),
            )

    async def _forget(self, rows: Sequence[HeldRow]) -> None:
        """Delete the rows of tasks, and take them out of the totals."""
        ids = [row.id for row in rows]
        for table, key in _TABLES:
            await self._tx.db.execute(f"DELETE FROM {table} WHERE {key} = ANY($1::text[])", ids)
        for row in rows:
            if row.visible:
                self._tx.count(row, row.state, -1)
            self._tx.forget(row)

    async def _forget_messages(self, scope: int, ids: Sequence[str], upto: int) -> None:
        """Delete the identities of messages of these tasks, as their first events tell of them."""
        received = await self._tx.db.fetch(_RECEIVED, list(ids), len(RECEIVED), RECEIVED, upto)
        keys = _messages(scope, (payload for (payload,) in received))
        if keys:
            await self._tx.db.execute(_FORGET_MESSAGES, *writes.columns(keys), list(ids))

    async def _clear_remains(self) -> bool:
        """Delete what is left of large tasks; false if there is more than there was time for."""
        while not self._is_late():
            row = await self._tx.db.fetchrow(
                "SELECT ordinal, name, result FROM journal WHERE task_id = '' ORDER BY ordinal LIMIT 1"
                " FOR UPDATE SKIP LOCKED"
            )
            if row is None:
                return True
            ordinal, task_id, scope = row
            if not await self._clear(json.decode(scope), task_id.decode()):
                return False
            await self._tx.db.execute("DELETE FROM journal WHERE task_id = '' AND ordinal = $1", ordinal)
        return False

    async def _clear(self, scope: int, task_id: str) -> bool:
        """Delete all that hangs on a task; false if there is more than there was time for."""
        return await self._clear_events(scope, task_id) and await self._clear_journal(task_id)

    async def _clear_events(self, scope: int, task_id: str) -> bool:
        """Delete events, and with them the identities of the messages that they tell of."""
        more = True
        while more:
            upto, more = await self._slice(
                "SELECT seq, length(payload) FROM event WHERE task_id = $1 ORDER BY seq", task_id
            )
            await self._forget_messages(scope, [task_id], upto)
            await self._tx.db.execute("DELETE FROM event WHERE task_id = $1 AND seq <= $2", task_id, upto)
            if more and self._is_late():
                return False
        return True

    async def _clear_journal(self, task_id: str) -> bool:
        more = True
        while more:
            upto, more = await self._slice(
                "SELECT ordinal, length(result) FROM journal WHERE task_id = $1 ORDER BY ordinal", task_id
            )
            await self._tx.db.execute(
                "DELETE FROM journal WHERE task_id = $1 AND ordinal <= $2", task_id, upto
            )
            if more and self._is_late():
                return False
        return True

    async def _slice(self, sizes: str, task_id: str) -> tuple[int, bool]:
        """Return the number of the last row that the next slice takes, and whether there are more after it."""
        rows = await self._tx.db.fetch(f"{sizes} LIMIT {SLICE_ROWS + 1}", task_id)
        upto, size = 0, 0
        for number, length in rows[:SLICE_ROWS]:
            size += length or 0
            if upto and size > SLICE_BYTES:
                break
            upto = number
        return upto, bool(rows) and upto < rows[-1][0]


def _messages(scope: int, received: Iterable[bytes]) -> list[tuple[Any, ...]]:
    return [(scope, _decode_sent(payload).message.message_id.encode()) for payload in received]
