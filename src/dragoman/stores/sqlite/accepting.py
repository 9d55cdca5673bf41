"""Accepting messages: a new task and its run, or one more turn of an old one, inside a Transaction.

All that can be wrong is checked before the first write, because the transaction is shared with others.
"""

from dragoman.gateway.audit import OK, REPLAYED, task_path
from dragoman.gateway.ports import Acceptance, Accepted, Lease, Placing, RunRef
from dragoman.gateway.quota import refusal
from dragoman.model import Received, TaskEvent, TaskState
from dragoman.model.errors import QuotaExceeded, TaskNotFound
from dragoman.stores.records import accepted_from_row, encode
from dragoman.stores.rows import TaskRow, awaits_approval, check_continued
from dragoman.stores.sqlite import hooks
from dragoman.stores.sqlite.approving import is_awaited
from dragoman.stores.sqlite.dispatching import note
from dragoman.stores.sqlite.parking import answer
from dragoman.stores.sqlite.rows import find, has_counters, scope_id, write
from dragoman.stores.sqlite.writer import Transaction


def accept(tx: Transaction, acceptance: Acceptance, lease_ms: int) -> Accepted:
    """See `TaskStore.accept`."""
    accepted = _accept(tx, acceptance, lease_ms)
    if acceptance.push is not None and not accepted.replayed:
        # From the message's own events on: they are the newest that there are.
        hooks.put(tx, accepted.task_id, acceptance.push, sent=accepted.events[0].seq - 1)
    if acceptance.audit is not None:
        target = task_path(acceptance.scope, accepted.task_id)
        tx.note(acceptance.audit, target, REPLAYED if accepted.replayed else OK)
    return accepted


def _accept(tx: Transaction, acceptance: Acceptance, lease_ms: int) -> Accepted:
    message = acceptance.message
    refused = _over_quota(tx, acceptance)
    scope = scope_id(tx, acceptance.scope, create=not (message.task_id or refused))
    if refused is not None:
        # What was accepted stays so: a message that is known already is answered as ever.
        known = _known(tx, scope, acceptance) if acceptance.idempotent else None
        if known is None:
            raise refused
        return known
    if message.task_id:
        # What the message continues may turn out to be wrong: nothing may be written before it is looked at.
        known = _known(tx, scope, acceptance) if acceptance.idempotent else None
        if known is not None:
            return known
        accepted = _continue(tx, acceptance, scope, lease_ms)
        if acceptance.idempotent:
            _remember(tx, scope, acceptance, message.task_id)
        return accepted
    if acceptance.idempotent and not _remember(tx, scope, acceptance, acceptance.task_id):
        known = _known(tx, scope, acceptance)
        if known is not None:
            return known
    return _begin(tx, acceptance, scope, lease_ms)


def _over_quota(tx: Transaction, acceptance: Acceptance) -> QuotaExceeded | None:
    """Return why there may be no new task, if the message wants one; one to a task that there is may always come."""
    if acceptance.allowance is None or acceptance.message.task_id:
        return None
    return refusal(acceptance.allowance, *tx.tally(acceptance.scope))


def _known(tx: Transaction, scope: int, acceptance: Acceptance) -> Accepted | None:
    """Return what became of a message that was accepted before, unless its task was purged."""
    row = tx.execute(
        "SELECT digest, task_id FROM identity WHERE scope_id = ? AND message_id = ?"
        " AND EXISTS (SELECT 1 FROM task WHERE id = task_id)",
        (scope, acceptance.message.message_id),
    ).fetchone()
    return accepted_from_row(row, acceptance)


def _remember(tx: Transaction, scope: int, acceptance: Acceptance, task_id: str) -> bool:
    """Save the identity of a message; false, and nothing saved, if there is one already.

    One whose task is gone is none: it is among the remains of a large task that are still to be deleted.
    """
    cursor = tx.execute(
        "INSERT INTO identity (scope_id, message_id, digest, task_id) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET digest = excluded.digest, task_id = excluded.task_id"
        " WHERE NOT EXISTS (SELECT 1 FROM task WHERE id = identity.task_id)",
        (scope, acceptance.message.message_id, acceptance.digest, task_id),
    )
    return cursor.rowcount == 1


def _begin(tx: Transaction, acceptance: Acceptance, scope: int, lease_ms: int) -> Accepted:
    task_id, now = acceptance.task_id, tx.now
    context_id = acceptance.message.context_id or acceptance.context_id
    deadline_at = now + acceptance.deadline
    change = Received(acceptance.message, TaskState.SUBMITTED)
    request = acceptance.request
    is_here = tx.placing is Placing.HERE
    counted = bool(acceptance.message.context_id)
    if counted:
        _count_context(tx, scope, context_id)
    tx.execute(
        "INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, created_at,"
        " metadata, request, epoch, attempt, dispatch, owner, lease_until, deadline_at)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, 1, 1, ?, ?, ?, 1, 1, ?, ?, ?, ?)",
        (
            task_id,
            scope,
            context_id,
            acceptance.visible,
            counted,
            now,
            now,
            bytes(acceptance.metadata) or None,
            encode(request),
            *((("sent", tx.epoch, now + lease_ms)) if is_here else ("pending", 0, 0)),
            deadline_at,
        ),
    )
    tx.execute("INSERT INTO event VALUES (?, 1, 1, ?, ?)", (task_id, now, encode(change)))
    tx.tallies.move(scope, running=1)
    if acceptance.visible:
        tx.count(scope, context_id if counted else "", TaskState.SUBMITTED, 1)
    event = TaskEvent(task_id, context_id, 1, now, 1, change)
    tx.events.append(event)
    run = RunRef(
        scope=acceptance.scope,
        lease=Lease(task_id, 1),
        context_id=context_id,
        attempt=1,
        deadline_at=deadline_at,
        request=request,
        messages=(acceptance.message,),
        state=TaskState.SUBMITTED,
        visible=acceptance.visible,
    )
    if is_here:
        tx.begun[task_id] = TaskRow(
            id=task_id,
            scope_id=scope,
            context_id=context_id,
            visible=acceptance.visible,
            counted=counted,
            state=TaskState.SUBMITTED,
            status_at=now,
            status_seq=1,
            seq=1,
            epoch=1,
            attempt=1,
            dispatch="sent",
        )
        tx.runs.append(run)
    else:
        tx.offered.append(run)
        note(tx, task_id, 1)
    return Accepted(task_id=task_id, replayed=False, events=(event,))


def _count_context(tx: Transaction, scope: int, context_id: str) -> None:
    """Give a context that is named by a caller, and so may see more tasks, a row of counters if it has none."""
    if has_counters(tx, scope, context_id):
        return
    # What is not written yet is in the rows that are counted here, and must not be added to the new row again.
    tx.write_counts()
    states = ", ".join(f"coalesce(sum(state = {int(state)}), 0)" for state in TaskState)
    tx.execute(
        f"INSERT INTO counter SELECT ?, ?, {states} FROM task WHERE visible AND scope_id = ? AND context_id = ?",
        (scope, context_id, scope, context_id),
    )
    tx.execute(
        "UPDATE task SET counted = 1 WHERE visible AND scope_id = ? AND context_id = ?", (scope, context_id)
    )


def _continue(tx: Transaction, acceptance: Acceptance, scope: int, lease_ms: int) -> Accepted:
    message = acceptance.message
    row = find(tx, scope, message.task_id)
    if row is None:
        raise TaskNotFound(message.task_id)
    check_continued(row, acceptance)
    if row.state.is_interrupted and is_awaited(tx, row.id):
        raise awaits_approval(row)
    if acceptance.push is not None:
        hooks.check_room(tx, row.id, acceptance.push.id)
    if row.state.is_interrupted:
        events = answer(tx, row, message, acceptance.scope, lease_ms, flat=acceptance.flat)
    else:
        events = write(tx, row, (Received(message),))
    return Accepted(task_id=row.id, replayed=False, events=events)
