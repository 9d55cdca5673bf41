"""Runs that an engine outside executes: what it is to be told, written with the task, and noting what was told."""

import sqlite3

from dragoman.gateway.dispatching import DispatchedRun, Notice
from dragoman.gateway.ports import Placing
from dragoman.stores.dispatching import COLUMNS, JOINED, dispatched
from dragoman.stores.sqlite.writer import Transaction

_SAME = "task_id = ? AND notice = ? AND epoch = ?"


def note(tx: Transaction, task_id: str, epoch: int) -> None:
    """Have an engine told that a run is to be executed: from the start, or on, if it was told of it before."""
    tx.execute(
        "INSERT INTO dispatch VALUES (?, 'start', ?, 0, ?)"
        " ON CONFLICT DO UPDATE SET notice = 'resume', epoch = excluded.epoch, tries = 0, due_at = excluded.due_at",
        (task_id, epoch, tx.now),
    )


def note_taken(tx: Transaction, task_id: str) -> None:
    """Know that an engine was told of a run: somebody executes it now."""
    if tx.placing is Placing.ENGINE:
        tx.execute(
            "UPDATE dispatch SET notice = 'none', tries = 0 WHERE task_id = ? AND notice <> 'stop'",
            (task_id,),
        )


def note_end(tx: Transaction, task_id: str, *, by_handler: bool) -> None:
    """Have an engine told that a run is over, unless it was its own handler that ended it: then the engine sees."""
    if by_handler and tx.placing is Placing.ENGINE:
        tx.execute("DELETE FROM dispatch WHERE task_id = ?", (task_id,))
    elif not by_handler:
        tx.execute(
            "UPDATE dispatch SET notice = 'stop', tries = 0, due_at = ? WHERE task_id = ?", (tx.now, task_id)
        )


def due(tx: Transaction, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
    """See `DispatchStore.due`."""
    found = tx.execute(
        f"SELECT {COLUMNS}, 0 FROM {JOINED} WHERE d.due_at <= ? ORDER BY d.due_at LIMIT ?", (tx.now, limit)
    ).fetchall()
    runs = tuple(map(dispatched, found))
    tx.executemany(
        "UPDATE dispatch SET due_at = ? WHERE task_id = ?", [(tx.now + hold, run.task_id) for run in runs]
    )
    return runs


def told(tx: Transaction, run: DispatchedRun, wait: int) -> None:
    """See `DispatchStore.told`."""
    same = run.task_id, run.notice.value, run.epoch
    if run.notice is Notice.STOP or run.state is None:
        tx.execute(f"DELETE FROM dispatch WHERE {_SAME}", same)
    else:
        tx.execute(
            f"UPDATE dispatch SET notice = 'none', tries = 0, due_at = ? WHERE {_SAME}",
            (tx.now + wait, *same),
        )


def not_told(tx: Transaction, run: DispatchedRun, wait: int) -> None:
    """See `DispatchStore.not_told`."""
    tx.execute(
        f"UPDATE dispatch SET tries = tries + 1, due_at = ? WHERE {_SAME}",
        (tx.now + wait, run.task_id, run.notice.value, run.epoch),
    )


def standing(connection: sqlite3.Connection, task_id: str) -> DispatchedRun | None:
    """See `DispatchStore.standing`: there is one server to a file, so nobody else executes it."""
    rows = connection.execute(f"SELECT {COLUMNS}, 0 FROM {JOINED} WHERE d.task_id = ?", (task_id,))
    found = rows.fetchone()
    run = dispatched(found) if found is not None else None
    return run if run is not None and run.run is not None else None


def offered(connection: sqlite3.Connection) -> dict[str, int]:
    """See `DispatchStore.offered`."""
    return dict(
        connection.execute(
            "SELECT s.agent, count(*) FROM task t JOIN scope s ON s.id = t.scope_id"
            " WHERE t.state IN (1, 2) AND t.owner = 0 GROUP BY 1"
        ).fetchall()
    )
