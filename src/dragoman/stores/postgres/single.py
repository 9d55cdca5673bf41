"""A batch of operations in one statement: what they look at is remembered, and they accept what is new.

The statement commits by itself, and changes nothing unless all is as it is remembered: the messages are new, and nobody
else has written to the tasks. Otherwise the batch is run as any other, in a transaction that reads first.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import asyncpg
from msgspec import Struct

from dragoman.gateway.ports import Placing
from dragoman.model import Scope, TaskEvent
from dragoman.stores.postgres import writes
from dragoman.stores.postgres.connection import Database
from dragoman.stores.postgres.rows import HeldRow
from dragoman.stores.postgres.transaction import COMMITTED, IN_PROGRESS, Transaction

_SESSION = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"
_HAS_EVENT = (
    "SELECT EXISTS"
    " (SELECT 1 FROM event WHERE task_id = $1 AND seq = $2 AND attempt = $3 AND at = $4 AND payload = $5)"
)
_HAS_ENTRY = "SELECT EXISTS (SELECT 1 FROM journal WHERE task_id = $1 AND ordinal = $2)"


class NotAsRememberedError(Exception):
    """Nothing was written: something has changed."""


class Session(Struct, frozen=True):
    """A session of the database: its process, and since when that is its own."""

    process: int
    begun: datetime


async def session_of(connection: Database) -> Session:
    """Return the session that a connection has."""
    return Session(*await connection.fetchrow(_SESSION))


class Single(Transaction):
    """A transaction that is one statement. Its operations act in memory; `commit` is all that the database sees."""

    def __init__(
        self,
        session: Session,
        replica: int,
        scopes: dict[Scope, int],
        placing: Placing,
        *,
        now: int,
        rows: Iterable[HeldRow],
    ) -> None:
        """Prepare it, with the rows of the tasks that its operations will look at."""
        super().__init__(_Nowhere(), replica, scopes, placing)
        self.now = now
        self._session = session
        self._rows.update((row.id, row) for row in rows)
        self._proof: tuple[str, Sequence[Any]] | None = None

    def begin(self, row: HeldRow, metadata: bytes, request: bytes, event: TaskEvent) -> None:
        """See `Transaction.begin`."""
        super().begin(row, metadata, request, event)
        if row.counted:
            self._contexts.add((row.scope_id, row.context_id.encode()))

    async def commit(self, db: Database, channel: str, told: Sequence[str]) -> None:
        """Write everything, and tell other servers on a channel.

        Raises:
            NotAsRememberedError: something has changed, and nothing was written.
            FAILURES: as any statement.
        """
        changes = {statement: rows for statement, rows in self._changes() if rows}
        self._proof = _proof(changes)
        moves = [(*values, self._version(values[0])) for values in changes.pop(writes.MOVES, ())]
        unmoved = [(task_id, self._version(task_id)) for task_id in sorted(self._rows.keys() - self._dirty)]
        claims = [(*key, *accepted) for key, accepted in sorted(self._identities.items())]
        all_expected: dict[str, list[writes.Values]] = {
            writes.CLAIM: claims,
            writes.COUNTED: sorted(self._contexts),
            writes.HOLD_REMEMBERED: unmoved,
            writes.MOVES_OF_REMEMBERED: moves,
        }
        expected = {statement: rows for statement, rows in all_expected.items() if rows}
        if not expected and not changes:
            return
        statement = writes.at_once(tuple(expected), tuple(changes))
        values = [
            column for rows in (*expected.values(), *changes.values()) for column in writes.columns(rows)
        ]
        count = sum(map(len, expected.values()))
        try:
            self.now, self.version, _ = await db.fetchrow(statement, *values, count, self.now, channel, told)
        except asyncpg.InvalidTextRepresentationError as error:
            raise NotAsRememberedError from error

    def _version(self, task_id: str) -> int:
        row = self._rows[task_id]
        assert row is not None  # noqa: S101 - nothing is deleted in memory
        return row.version

    async def outcome(self, db: Database) -> str:
        """See `Transaction.outcome`. It has no number before it is over, so what it wrote is looked for."""
        if await db.fetchrow(_END, self._session.process, self._session.begun) is not None:
            return IN_PROGRESS
        if self._proof is None:
            # At most it was noted who waits, which is noted again.
            return ""
        statement, values = self._proof
        return COMMITTED if await db.fetchval(statement, *values) else ""


def _proof(changes: dict[str, list[writes.Values]]) -> tuple[str, Sequence[Any]] | None:
    """Return what finds a row that nobody but this transaction writes, if there is one."""
    if writes.EVENTS in changes:
        return _HAS_EVENT, changes[writes.EVENTS][0]
    if writes.JOURNAL in changes:
        return _HAS_ENTRY, changes[writes.JOURNAL][0][:2]
    return None


class _Nowhere:
    """In the place of a connection, while operations act in memory."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"an operation that acts in memory asks the database ({name})")
