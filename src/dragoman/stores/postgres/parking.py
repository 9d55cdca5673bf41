"""Runs that wait for their caller: parking them and entering them again, inside a Transaction."""

from collections.abc import Callable

from dragoman.gateway.ports import ApprovalRequest, JournalEntry, Lease, RunRef
from dragoman.model import Message, Received, Scope, StatusChange, TaskEvent, TaskState
from dragoman.model.approval import approval_digest
from dragoman.stores.postgres.commands import run_ref
from dragoman.stores.postgres.rows import NOBODY, HeldRow
from dragoman.stores.postgres.transaction import Transaction
from dragoman.stores.records import encode


async def park(
    tx: Transaction,
    lease: Lease,
    change: StatusChange,
    entry: JournalEntry,
    reveal: bool,
    approval: ApprovalRequest | None,
) -> TaskEvent:
    """See `TaskStore.park`."""
    row = tx.leased(lease)
    # The handler is on its way out: nothing that is left of it can write any more.
    row.epoch += 1
    row.owner = NOBODY
    (event,) = tx.write(row, (change,), reveal=reveal)
    tx.record(row, entry, None)
    if approval is not None:
        await _open_approval(tx, row, entry, approval)
    return event


async def _open_approval(tx: Transaction, row: HeldRow, entry: JournalEntry, asked: ApprovalRequest) -> None:
    """Save what a run that was just parked waits for."""
    await tx.db.execute(
        "INSERT INTO approval"
        " (id, task_id, ordinal, tenant, agent, principal, action, details, digest, created_at)"
        " SELECT $1, $2, $3, tenant, agent, principal, $4, $5, $6, $7 FROM scope WHERE id = $8",
        asked.id,
        row.id,
        entry.ordinal,
        asked.action.encode(),
        bytes(asked.details),
        approval_digest(asked.action, asked.details),
        tx.now,
        row.scope_id,
    )


async def answer(
    tx: Transaction, row: HeldRow, message: Message, scope: Scope, *, flat: bool
) -> tuple[TaskEvent, ...]:
    """Add a message to a parked run, as what it waits for, and have the run executed."""
    return await resume(
        tx,
        row,
        scope,
        flat=flat,
        move=lambda: tx.write(row, (Received(message, TaskState.WORKING),)),
        # The message itself is in the event log: the journal says which of the caller's it is.
        result=lambda run: encode(len(run.messages) - 1),
    )


async def resume(
    tx: Transaction,
    row: HeldRow,
    scope: Scope,
    *,
    flat: bool,
    move: Callable[[], tuple[TaskEvent, ...]],
    result: Callable[[RunRef], bytes],
) -> tuple[TaskEvent, ...]:
    """Have a parked run executed: `move` writes what moves its task, `result` is what its journal is to give.

    Its deadline moves by the time that it waited, unless it is `flat`.
    """
    # The clock may have gone back meanwhile: no run loses time by waiting.
    waited = max(0, tx.now - row.parked_at) if row.parked_at is not None else 0
    row.epoch += 1
    runs = tx.place(row)
    row.parked_ms += waited
    row.deadline_at += 0 if flat else waited
    events = move()
    run = await run_ref(tx, row, scope)
    await tx.db.execute(
        "UPDATE journal SET result = $1, seq = $2 WHERE task_id = $3 AND result IS NULL",
        result(run),
        row.seq,
        row.id,
    )
    runs.append(run)
    return events
