"""Accepting messages: a new task and its run, or one more turn of an old one, inside a Transaction."""

from dragoman.gateway.audit import OK, REPLAYED, task_path
from dragoman.gateway.ports import Acceptance, Accepted, Lease, RunRef
from dragoman.gateway.quota import refusal
from dragoman.model import Received, TaskEvent, TaskState
from dragoman.model.errors import TaskNotFound
from dragoman.stores.postgres import hooks
from dragoman.stores.postgres.approving import is_awaited
from dragoman.stores.postgres.parking import answer
from dragoman.stores.postgres.rows import HeldRow
from dragoman.stores.postgres.transaction import Transaction, Work, is_bounded
from dragoman.stores.records import accepted_from_row, encode
from dragoman.stores.rows import awaits_approval, check_continued


def accepting(acceptance: Acceptance) -> Work:
    """Return the operation that accepts a message."""
    task_id = acceptance.message.task_id
    return Work(
        act=lambda tx: _accept(tx, acceptance),
        tasks=(task_id,) if task_id else (),
        scopes=(acceptance.scope,),
        acceptance=acceptance,
        in_memory=not task_id and acceptance.push is None and not is_bounded(acceptance.allowance),
    )


async def _accept(tx: Transaction, acceptance: Acceptance) -> Accepted:
    """See `TaskStore.accept`."""
    scope = tx.scope_id(acceptance.scope)
    key = scope, acceptance.message.message_id.encode()
    known = accepted_from_row(tx.known(key), acceptance) if acceptance.idempotent else None
    accepted = known or await _accept_new(tx, acceptance, scope)
    if known is None and acceptance.idempotent:
        tx.remember(key, acceptance.digest, accepted.task_id)
    if acceptance.push is not None and not accepted.replayed:
        # From the message's own events on: they are the newest that there are.
        await hooks.put(tx, accepted.task_id, acceptance.push, sent=accepted.events[0].seq - 1)
    if acceptance.audit is not None:
        target = task_path(acceptance.scope, accepted.task_id)
        tx.note(acceptance.audit, target, REPLAYED if accepted.replayed else OK)
    return accepted


async def _accept_new(tx: Transaction, acceptance: Acceptance, scope: int) -> Accepted:
    if acceptance.message.task_id:
        return await _continue(tx, acceptance, scope)
    _check_quota(tx, acceptance)
    return _begin(tx, acceptance, scope)


def _check_quota(tx: Transaction, acceptance: Acceptance) -> None:
    """Refuse a new task that a quota is in the way of.

    Raises:
        QuotaExceeded.
    """
    tallies = tx.tallies.find(acceptance.scope)
    # Those were not counted who have no quota.
    refused = refusal(acceptance.allowance, *tallies) if acceptance.allowance and tallies else None
    if refused is not None:
        raise refused


def _begin(tx: Transaction, acceptance: Acceptance, scope: int) -> Accepted:
    context_id = acceptance.message.context_id or acceptance.context_id
    row = HeldRow(
        id=acceptance.task_id,
        scope_id=scope,
        context_id=context_id,
        visible=acceptance.visible,
        counted=bool(acceptance.message.context_id),
        state=TaskState.SUBMITTED,
        status_at=tx.now,
        status_seq=1,
        seq=1,
        epoch=1,
        attempt=1,
        dispatch="",
        deadline_at=tx.now + acceptance.deadline,
    )
    runs = tx.place(row)
    change = Received(acceptance.message, TaskState.SUBMITTED)
    event = TaskEvent(row.id, context_id, 1, tx.now, 1, change)
    tx.begin(row, bytes(acceptance.metadata), encode(acceptance.request), event)
    runs.append(_first_run(acceptance, row))
    return Accepted(task_id=row.id, replayed=False, events=(event,))


def _first_run(acceptance: Acceptance, row: HeldRow) -> RunRef:
    return RunRef(
        scope=acceptance.scope,
        lease=Lease(row.id, 1),
        context_id=row.context_id,
        attempt=1,
        deadline_at=row.deadline_at,
        request=acceptance.request,
        messages=(acceptance.message,),
        state=TaskState.SUBMITTED,
        visible=acceptance.visible,
    )


async def _continue(tx: Transaction, acceptance: Acceptance, scope: int) -> Accepted:
    message = acceptance.message
    row = tx.find(scope, message.task_id)
    if row is None:
        raise TaskNotFound(message.task_id)
    check_continued(row, acceptance)
    if row.state.is_interrupted and await is_awaited(tx, row.id):
        raise awaits_approval(row)
    if acceptance.push is not None:
        await hooks.check_room(tx, row.id, acceptance.push.id)
    if not row.state.is_interrupted:
        events = tx.write(row, (Received(message),))
    else:
        events = await answer(tx, row, message, acceptance.scope, flat=acceptance.flat)
    return Accepted(task_id=row.id, replayed=False, events=events)
