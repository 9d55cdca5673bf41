"""Runs that an engine outside executes: taking what is due, and noting what was told."""

from collections.abc import Sequence
from typing import Any

from dragoman.gateway.dispatching import DispatchedRun, Notice
from dragoman.stores.dispatching import COLUMNS, JOINED, dispatched
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.replicas import IS_HELD
from dragoman.stores.postgres.transaction import Transaction

_TAKE = (
    "UPDATE dispatch SET due_at = $1 WHERE task_id IN (SELECT task_id FROM dispatch WHERE due_at <= $2"
    " ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING task_id"
)
_SELECT = f"SELECT {COLUMNS}, t.owner <> $1 AND {IS_HELD} FROM {JOINED}"
_SAME = "task_id = $1 AND notice = $2 AND epoch = $3"


async def due(tx: Transaction, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
    """See `DispatchStore.due`."""
    await tx.flush()
    taken = await tx.db.fetch(_TAKE, tx.now + hold, tx.now, limit)
    if not taken:
        return ()
    return await _select(tx.db, tx.replica, "d.task_id = ANY($2::text[])", [row[0] for row in taken])


async def told(tx: Transaction, run: DispatchedRun, wait: int) -> None:
    """See `DispatchStore.told`."""
    await tx.flush()
    same = run.task_id, run.notice.value, run.epoch
    if run.notice is Notice.STOP or run.state is None:
        await tx.db.execute(f"DELETE FROM dispatch WHERE {_SAME}", *same)
    else:
        await tx.db.execute(
            f"UPDATE dispatch SET notice = 'none', tries = 0, due_at = $4 WHERE {_SAME}",
            *same,
            tx.now + wait,
        )


async def not_told(tx: Transaction, run: DispatchedRun, wait: int) -> None:
    """See `DispatchStore.not_told`."""
    await tx.flush()
    await tx.db.execute(
        f"UPDATE dispatch SET tries = tries + 1, due_at = $4 WHERE {_SAME}",
        run.task_id,
        run.notice.value,
        run.epoch,
        tx.now + wait,
    )


async def standing(db: Database, replica: int, task_id: str) -> DispatchedRun | None:
    """See `DispatchStore.standing`."""
    found = await _select(db, replica, "d.task_id = $2", plain(task_id))
    return found[0] if found and found[0].run is not None else None


async def _select(db: Database, replica: int, which: str, value: Any) -> tuple[DispatchedRun, ...]:
    rows: Sequence[Any] = await db.fetch(f"{_SELECT} WHERE {which}", replica, value)
    return tuple(map(dispatched, rows))
