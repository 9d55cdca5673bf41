"""Runs that wait for their caller: parking them and entering them again, inside a Transaction."""

from collections.abc import Callable

from dragoman.gateway.ports import JournalEntry, Lease, Placing, RunRef
from dragoman.model import Message, Received, Scope, StatusChange, TaskEvent, TaskState
from dragoman.stores.records import encode
from dragoman.stores.rows import TaskRow
from dragoman.stores.sqlite.dispatching import note
from dragoman.stores.sqlite.rows import leased, run_ref, write
from dragoman.stores.sqlite.writer import Transaction


def park(tx: Transaction, lease: Lease, change: StatusChange, entry: JournalEntry, reveal: bool) -> TaskEvent:
    """See `TaskStore.park`; what an approval needs beside it is saved by `approving.open_approval`."""
    row = leased(tx, lease)
    # The handler is on its way out: nothing that is left of it can write any more.
    row.epoch += 1
    (event,) = write(tx, row, (change,), reveal=reveal)
    tx.execute("UPDATE task SET owner = 0, lease_until = 0 WHERE id = ?", (row.id,))
    tx.execute(
        "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result) VALUES (?, ?, ?, ?, ?, ?, NULL)",
        (row.id, entry.ordinal, entry.kind, entry.name, entry.acts, row.seq),
    )
    return event


def answer(
    tx: Transaction, row: TaskRow, message: Message, scope: Scope, lease_ms: int, *, flat: bool
) -> tuple[TaskEvent, ...]:
    """Add a message to a parked run, as what it waits for, and have the run executed."""
    return resume(
        tx,
        row,
        scope,
        lease_ms,
        flat=flat,
        move=lambda: write(tx, row, (Received(message, TaskState.WORKING),)),
        # The message itself is in the event log: the journal says which of the caller's it is.
        result=lambda run: encode(len(run.messages) - 1),
    )


def resume(
    tx: Transaction,
    row: TaskRow,
    scope: Scope,
    lease_ms: int,
    *,
    flat: bool,
    move: Callable[[], tuple[TaskEvent, ...]],
    result: Callable[[RunRef], bytes],
) -> tuple[TaskEvent, ...]:
    """Have a parked run executed: `move` writes what moves its task, `result` is what its journal is to give.

    Its deadline moves by the time that it waited, unless it is `flat`.
    """
    row.epoch += 1
    is_here = tx.placing is Placing.HERE
    row.dispatch = "sent" if is_here else "pending"
    # The clock may have gone back meanwhile: no run loses time by waiting.
    tx.execute(
        "UPDATE task SET dispatch = ?, owner = ?, lease_until = ?, epoch = ?, parked_at = NULL,"
        " parked_ms = parked_ms + max(0, ? - parked_at), deadline_at = deadline_at + ? * max(0, ? - parked_at)"
        " WHERE id = ?",
        (
            row.dispatch,
            *((tx.epoch, tx.now + lease_ms) if is_here else (0, 0)),
            row.epoch,
            tx.now,
            not flat,
            tx.now,
            row.id,
        ),
    )
    events = move()
    run = run_ref(tx, row, scope)
    tx.execute(
        "UPDATE journal SET result = ?, seq = ? WHERE task_id = ? AND result IS NULL",
        (result(run), row.seq, row.id),
    )
    if is_here:
        tx.runs.append(run)
    else:
        tx.offered.append(run)
        note(tx, row.id, row.epoch)
    return events
