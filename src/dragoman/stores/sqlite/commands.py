"""The writing operations on a SQLite store, each one a function that runs inside a Transaction.

Each checks all that can be wrong before its first write, because the transaction is shared with others. Every
change of a task goes through `_write`: one place where sequence numbers, states, times and counters move.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from dragoman.gateway.ports import Acceptance, Accepted, JournalEntry, Lease, LostRun, RunRef
from dragoman.model import (
    Change,
    Message,
    Received,
    Reply,
    Resumed,
    Scope,
    StatusChange,
    TaskEvent,
    TaskState,
)
from dragoman.model.errors import (
    Fenced,
    InvalidParams,
    MessageIdConflict,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)
from dragoman.model.lifecycle import advance
from dragoman.model.payload import ABSENT
from dragoman.model.speech import agent_message
from dragoman.stores.sqlite.records import decode_change, decode_request, encode
from dragoman.stores.sqlite.writer import Transaction

_COLUMNS = (
    "id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, epoch, attempt, dispatch"
)


class TaskRow(Struct):
    """The part of a task's row that writing needs; changed in step with the row."""

    id: str
    scope_id: int
    context_id: str
    visible: int
    counted: int
    state: TaskState
    status_at: int
    status_seq: int
    seq: int
    epoch: int
    attempt: int
    dispatch: str


def scope_id(tx: Transaction, scope: Scope, *, create: bool = False) -> int:
    """Return the number of a scope; of a new one 0, which no task has, unless it is to be created."""
    known = tx.scopes.get(scope)
    if known is not None:
        return known
    row = tx.execute(
        "SELECT id FROM scope WHERE tenant = ? AND principal = ? AND agent = ?",
        (scope.tenant, scope.principal, scope.agent),
    ).fetchone()
    if row is None and not create:
        return 0
    if row is None:
        row = tx.execute(
            "INSERT INTO scope (tenant, principal, agent) VALUES (?, ?, ?) RETURNING id",
            (scope.tenant, scope.principal, scope.agent),
        ).fetchone()
    number: int = row[0]
    # Not known to later transactions until this one is committed.
    tx.new_scopes[scope] = number
    return number


def accept(tx: Transaction, acceptance: Acceptance, lease_ms: int) -> Accepted:
    """See `TaskStore.accept`."""
    message = acceptance.message
    scope = scope_id(tx, acceptance.scope, create=not message.task_id)
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


def _known(tx: Transaction, scope: int, acceptance: Acceptance) -> Accepted | None:
    """Return what became of a message that was accepted before."""
    row = tx.execute(
        "SELECT digest, task_id FROM identity WHERE scope_id = ? AND message_id = ?",
        (scope, acceptance.message.message_id),
    ).fetchone()
    if row is None:
        return None
    if row[0] != acceptance.digest:
        raise MessageIdConflict.of(
            "message.messageId", "was used before for another message; send a new message under a new id"
        )
    return Accepted(task_id=row[1], replayed=True, events=())


def _remember(tx: Transaction, scope: int, acceptance: Acceptance, task_id: str) -> bool:
    """Save the identity of a message; false, and nothing saved, if there is one already."""
    cursor = tx.execute(
        "INSERT INTO identity (scope_id, message_id, digest, task_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (scope, acceptance.message.message_id, acceptance.digest, task_id),
    )
    return cursor.rowcount == 1


def _begin(tx: Transaction, acceptance: Acceptance, scope: int, lease_ms: int) -> Accepted:
    task_id, now = acceptance.task_id, tx.now
    context_id = acceptance.message.context_id or acceptance.context_id
    deadline_at = now + acceptance.deadline
    change = Received(acceptance.message, TaskState.SUBMITTED)
    request = acceptance.request
    counted = bool(acceptance.message.context_id)
    if counted:
        _count_context(tx, scope, context_id)
    tx.execute(
        "INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, created_at,"
        " request, epoch, attempt, dispatch, owner, lease_until, deadline_at)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, 1, 1, ?, ?, 1, 1, 'sent', ?, ?, ?)",
        (
            task_id,
            scope,
            context_id,
            acceptance.visible,
            counted,
            now,
            now,
            encode(request),
            tx.epoch,
            now + lease_ms,
            deadline_at,
        ),
    )
    tx.execute("INSERT INTO event VALUES (?, 1, 1, ?, ?)", (task_id, now, encode(change)))
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
    tx.runs.append(run)
    return Accepted(task_id=task_id, replayed=False, events=(event,))


def _count_context(tx: Transaction, scope: int, context_id: str) -> None:
    """Give a context that is named by a caller, and so may see more tasks, a row of counters if it has none."""
    if _has_counters(tx, scope, context_id):
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


def _has_counters(tx: Transaction, scope: int, context_id: str) -> bool:
    found = tx.execute(
        "SELECT 1 FROM counter WHERE scope_id = ? AND context_id = ?", (scope, context_id)
    ).fetchone()
    return found is not None


def _continue(tx: Transaction, acceptance: Acceptance, scope: int, lease_ms: int) -> Accepted:
    message = acceptance.message
    row = find(tx, scope, message.task_id)
    if row is None:
        raise TaskNotFound(message.task_id)
    if message.context_id and message.context_id != row.context_id:
        raise InvalidParams.of("message.contextId", f"task {row.id} belongs to another context; leave it out")
    if row.state.is_terminal:
        raise UnsupportedOperation(
            f"Task {row.id} is finished and takes no more messages; send a new one with its contextId instead"
        )
    resumes = row.state.is_interrupted
    state = TaskState.WORKING if resumes else None
    if resumes:
        _unpark(tx, row, lease_ms)
    events = _write(tx, row, (Received(message, state),))
    if resumes:
        tx.runs.append(_run_ref(tx, row, acceptance.scope))
    return Accepted(task_id=row.id, replayed=False, events=events)


def _unpark(tx: Transaction, row: TaskRow, lease_ms: int) -> None:
    row.epoch += 1
    row.dispatch = "sent"
    tx.execute(
        "UPDATE task SET dispatch = 'sent', owner = ?, lease_until = ?, epoch = ?, parked_at = NULL,"
        " parked_ms = parked_ms + (? - parked_at), deadline_at = deadline_at + (? - parked_at) WHERE id = ?",
        (tx.epoch, tx.now + lease_ms, row.epoch, tx.now, tx.now, row.id),
    )


def append(tx: Transaction, lease: Lease, changes: Sequence[Change], reveal: bool) -> tuple[TaskEvent, ...]:
    """See `TaskStore.append`."""
    row = _leased(tx, lease)
    if row.visible or row.state is TaskState.WORKING:
        changes = [_as_shown(row, change) for change in changes if not _says_nothing_new(row, change)]
    return _write(tx, row, changes, reveal=reveal) if changes else ()


def _as_shown(row: TaskRow, change: Change) -> Change:
    """Return a change as it is for a task that shows by now: a bare reply comes too late, so it completes the task."""
    if isinstance(change, Reply) and row.visible:
        message = structs.replace(change.message, task_id=row.id, context_id=row.context_id)
        return StatusChange(TaskState.COMPLETED, message)
    return change


def _says_nothing_new(row: TaskRow, change: Change) -> bool:
    return (
        row.state is TaskState.WORKING
        and isinstance(change, StatusChange)
        and change.state is TaskState.WORKING
        and change.message is None
        and change.metadata is ABSENT
    )


def wait(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.wait`."""
    for lease in leases:
        tx.execute(
            "UPDATE task SET dispatch = 'pending' WHERE id = ? AND epoch = ? AND dispatch = 'sent'",
            (lease.task_id, lease.epoch),
        )


def enter(tx: Transaction, lease: Lease) -> None:
    """See `TaskStore.enter`."""
    row = _leased(tx, lease)
    tx.execute("UPDATE task SET dispatch = 'sent' WHERE id = ?", (row.id,))


def begin_work(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.begin_work`."""
    for lease in leases:
        try:
            row = _leased(tx, lease)
        except Fenced:
            continue
        if row.state is TaskState.SUBMITTED:
            _write(tx, row, (StatusChange(TaskState.WORKING),), reveal=True)


def cancel(tx: Transaction, scope: Scope, task_id: str) -> TaskEvent:
    """See `TaskStore.cancel`."""
    row = find(tx, scope_id(tx, scope), task_id)
    if row is None:
        raise TaskNotFound(task_id)
    if row.state.is_terminal:
        raise TaskNotCancelable(f"Task {task_id} is {row.state.name} already and cannot be canceled")
    row.epoch += 1
    return _write(tx, row, (StatusChange(TaskState.CANCELED),))[0]


def expire(tx: Transaction) -> tuple[TaskEvent, ...]:
    """See `TaskStore.expire`."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM task WHERE state IN (1, 2) AND deadline_at < ? LIMIT 200", (tx.now,)
    ).fetchall()
    events: list[TaskEvent] = []
    for values in rows:
        row = _row(values)
        row.epoch += 1
        change = StatusChange(TaskState.FAILED, _spoken(row, "The run passed its deadline and was stopped."))
        events.extend(_write(tx, row, (change,)))
    return tuple(events)


def record(tx: Transaction, lease: Lease, entry: JournalEntry) -> None:
    """See `TaskStore.record`."""
    row = _leased(tx, lease)
    tx.execute(
        "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (row.id, entry.ordinal, entry.kind, entry.name, entry.acts, row.seq, bytes(entry.result)),
    )


def take_over(tx: Transaction, run: LostRun, lease_ms: int) -> bool:
    """See `TaskStore.take_over`."""
    row = find(tx, scope_id(tx, run.scope), run.task_id, hidden=True)
    if row is None or row.epoch != run.epoch or row.state.is_terminal:
        return False
    row.epoch += 1
    row.attempt += row.dispatch != "pending"
    row.dispatch = "sent"
    tx.execute(
        "UPDATE task SET epoch = ?, attempt = ?, owner = ?, lease_until = ?, dispatch = 'sent' WHERE id = ?",
        (row.epoch, row.attempt, tx.epoch, tx.now + lease_ms, row.id),
    )
    kept = tx.execute("SELECT max(seq) FROM journal WHERE task_id = ?", (row.id,)).fetchone()[0]
    _write(tx, row, (Resumed(kept or 1),))
    tx.runs.append(_run_ref(tx, row, run.scope))
    return True


def give_up(tx: Transaction, run: LostRun, text: str, reveal: bool) -> None:
    """See `TaskStore.give_up`."""
    row = find(tx, scope_id(tx, run.scope), run.task_id, hidden=True)
    if row is not None and row.epoch == run.epoch and not row.state.is_terminal:
        row.epoch += 1
        _write(tx, row, (StatusChange(TaskState.FAILED, _spoken(row, text)),), reveal=reveal)


def probe(tx: Transaction) -> None:
    """Write something, so that a disk that takes nothing more is found out."""
    tx.execute("UPDATE server SET heartbeat_at = ?", (tx.now,))


def renew_leases(tx: Transaction, lease_ms: int) -> None:
    """Renew the leases of every run that this server holds."""
    tx.execute(
        "UPDATE task SET lease_until = ? WHERE state IN (1, 2) AND owner = ?", (tx.now + lease_ms, tx.epoch)
    )


def find(tx: Transaction, scope: int, task_id: str, *, hidden: bool = False) -> TaskRow | None:
    """Return the row of a task in a scope; one that nobody may see yet only if `hidden` is asked for."""
    values = tx.execute(
        f"SELECT {_COLUMNS} FROM task WHERE id = ? AND scope_id = ?", (task_id, scope)
    ).fetchone()
    if values is None or not (values[3] or hidden):
        return None
    return _row(values)


def _run_ref(tx: Transaction, row: TaskRow, scope: Scope) -> RunRef:
    """Return what an engine needs to execute the run of a row."""
    deadline_at, request = tx.execute(
        "SELECT deadline_at, request FROM task WHERE id = ?", (row.id,)
    ).fetchone()
    return RunRef(
        scope=scope,
        lease=Lease(row.id, row.epoch),
        context_id=row.context_id,
        attempt=row.attempt,
        deadline_at=deadline_at,
        request=decode_request(request),
        messages=_messages(tx, row.id),
        state=row.state,
        visible=bool(row.visible),
    )


def _spoken(row: TaskRow, text: str) -> Message:
    """Return a message of the server itself about a task."""
    return agent_message(text, task_id=row.id, context_id=row.context_id)


def _messages(tx: Transaction, task_id: str) -> tuple[Message, ...]:
    rows = tx.execute("SELECT payload FROM event WHERE task_id = ? ORDER BY seq", (task_id,)).fetchall()
    changes = (decode_change(payload) for (payload,) in rows)
    return tuple(change.message for change in changes if isinstance(change, Received))


def _row(values: Sequence[object]) -> TaskRow:
    row = TaskRow(*values)  # type: ignore[arg-type]  # the columns of _COLUMNS, in order
    row.state = TaskState(row.state)
    return row


def _leased(tx: Transaction, lease: Lease) -> TaskRow:
    values = tx.execute(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (lease.task_id,)).fetchone()
    if values is None:
        raise Fenced("the task is gone")
    row = _row(values)
    if row.epoch != lease.epoch or row.state.is_terminal:
        raise Fenced(f"the run is not this writer's any more (the task is {row.state.name})")
    return row


def _write(
    tx: Transaction, row: TaskRow, changes: Sequence[Change], *, reveal: bool = False
) -> tuple[TaskEvent, ...]:
    """Add events to a task and move its row with them."""
    before, was_visible = row.state, row.visible
    state = before
    for change in changes:
        state = advance(state, change)
    # Nothing can fail by our rules from here on.
    at = max(row.status_at, tx.now)
    events = []
    for change in changes:
        row.seq += 1
        if isinstance(change, StatusChange | Reply) or (
            isinstance(change, Received) and change.state is not None
        ):
            row.status_seq, row.status_at = row.seq, at
        events.append(TaskEvent(row.id, row.context_id, row.seq, at, row.attempt, change))
    row.state = state
    if reveal and not was_visible:
        row.visible = 1
        row.counted = _has_counters(tx, row.scope_id, row.context_id)
    if row.visible and was_visible and row.status_seq < events[0].seq:
        tx.execute("UPDATE task SET seq = ? WHERE id = ?", (row.seq, row.id))
    else:
        parked = state.is_interrupted
        dispatch = "done" if state.is_terminal else "parked" if parked else row.dispatch
        tx.execute(
            "UPDATE task SET seq = ?, state = ?, status_at = ?, status_seq = ?, visible = ?, counted = ?, epoch = ?,"
            " dispatch = ?, parked_at = ? WHERE id = ?",
            (
                row.seq,
                state,
                row.status_at,
                row.status_seq,
                row.visible,
                row.counted,
                row.epoch,
                dispatch,
                at if parked else None,
                row.id,
            ),
        )
    tx.executemany(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
        [(row.id, event.seq, event.attempt, event.at, encode(event.change)) for event in events],
    )
    context_id = row.context_id if row.counted else ""
    if was_visible and row.visible and state is not before:
        tx.count(row.scope_id, context_id, before, -1)
    if row.visible and (not was_visible or state is not before):
        tx.count(row.scope_id, context_id, state, 1)
    tx.events.extend(events)
    return tuple(events)
