"""A task's row and its events, as the writing operations handle them inside a Transaction.

Every change of a task goes through `write`: one place where sequence numbers, states, times and counters move.
"""

from collections.abc import Sequence

from dragoman.gateway.ports import Lease, RunRef
from dragoman.model import Change, Message, Received, Scope, StatusChange, TaskEvent, TaskState
from dragoman.model.speech import agent_message
from dragoman.stores.records import RECEIVED, decode_change, decode_request, encode
from dragoman.stores.rows import COLUMNS, TaskRow, held, move
from dragoman.stores.sqlite.dispatching import note_end
from dragoman.stores.sqlite.writer import Transaction

_AS_BEGUN = " AND seq = ? AND epoch = ? AND visible = ? AND counted = ? AND dispatch = 'sent'"


class NotAsBegunError(Exception):
    """Somebody has written to a run since it was begun."""


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
    tx.tallies.add(scope, number)
    return number


def find(tx: Transaction, scope: int, task_id: str, *, hidden: bool = False) -> TaskRow | None:
    """Return the row of a task in a scope; one that nobody may see yet only if `hidden` is asked for."""
    values = tx.execute(
        f"SELECT {COLUMNS} FROM task WHERE id = ? AND scope_id = ?", (task_id, scope)
    ).fetchone()
    if values is None or not (values[3] or hidden):
        return None
    return row_of(values)


def leased(tx: Transaction, lease: Lease) -> TaskRow:
    """Return the row of a run to somebody who may write to it.

    Raises:
        Fenced: the lease is not good any more.
    """
    values = tx.execute(f"SELECT {COLUMNS} FROM task WHERE id = ?", (lease.task_id,)).fetchone()
    return held(None if values is None else row_of(values), lease)


def fail(tx: Transaction, row: TaskRow, text: str, *, reveal: bool = False) -> tuple[TaskEvent, ...]:
    """End a run as FAILED, saying `text`, and fence its handler out."""
    row.epoch += 1
    note_end(tx, row.id, by_handler=False)
    message = agent_message(text, task_id=row.id, context_id=row.context_id)
    return write(tx, row, (StatusChange(TaskState.FAILED, message),), reveal=reveal)


def write(
    tx: Transaction,
    row: TaskRow,
    changes: Sequence[Change],
    *,
    reveal: bool = False,
    as_begun: bool = False,
) -> tuple[TaskEvent, ...]:
    """Add events to a task and move its row with them; with `as_begun` the row was not read, but is to be so still.

    Raises:
        NotAsBegunError: it is not; nothing was written.
    """
    before, was_visible, was_counted = row.state, row.visible, row.counted
    where, still = (_AS_BEGUN, (row.seq, row.epoch, was_visible, was_counted)) if as_begun else ("", ())
    # Nothing can fail by our rules after this.
    events = move(row, changes, tx.now)
    state = row.state
    if reveal and not was_visible:
        row.visible = 1
        row.counted = has_counters(tx, row.scope_id, row.context_id)
    if row.visible and was_visible and row.status_seq < events[0].seq:
        done = tx.execute(f"UPDATE task SET seq = ? WHERE id = ?{where}", (row.seq, row.id, *still))
    else:
        parked = state.is_interrupted
        dispatch = "done" if state.is_terminal else "parked" if parked else row.dispatch
        done = tx.execute(
            "UPDATE task SET seq = ?, state = ?, status_at = ?, status_seq = ?, visible = ?, counted = ?, epoch = ?,"
            f" dispatch = ?, parked_at = ? WHERE id = ?{where}",
            (
                row.seq,
                state,
                row.status_at,
                row.status_seq,
                row.visible,
                row.counted,
                row.epoch,
                dispatch,
                events[0].at if parked else None,
                row.id,
                *still,
            ),
        )
    if as_begun and not done.rowcount:
        raise NotAsBegunError
    tx.executemany(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
        [(row.id, event.seq, event.attempt, event.at, encode(event.change)) for event in events],
    )
    context_id = row.context_id if row.counted else ""
    if row.visible and not was_visible:
        tx.count(row.scope_id, context_id, state, 1)
    elif row.visible and state is not before:
        tx.count_moved(row.scope_id, context_id, before, state)
    if state.is_terminal and not before.is_terminal:
        tx.tallies.move(row.scope_id, running=-1)
    tx.events.extend(events)
    return tuple(events)


def has_counters(tx: Transaction, scope: int, context_id: str) -> bool:
    """Tell whether a context has counters of its own."""
    found = tx.execute(
        "SELECT 1 FROM counter WHERE scope_id = ? AND context_id = ?", (scope, context_id)
    ).fetchone()
    return found is not None


def run_ref(tx: Transaction, row: TaskRow, scope: Scope) -> RunRef:
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
        again=True,
    )


def _messages(tx: Transaction, task_id: str) -> tuple[Message, ...]:
    # Told by how their records begin: a run may have written far more than it was told.
    rows = tx.execute(
        "SELECT payload FROM event WHERE task_id = ? AND substr(payload, 1, ?) = ? ORDER BY seq",
        (task_id, len(RECEIVED), RECEIVED),
    ).fetchall()
    changes = (decode_change(payload) for (payload,) in rows)
    return tuple(change.message for change in changes if isinstance(change, Received))


_STATES = {int(state): state for state in TaskState}


def row_of(values: Sequence[object]) -> TaskRow:
    """Return the row that `COLUMNS` were read of."""
    row = TaskRow(*values)  # type: ignore[arg-type]  # the columns, in order
    row.state = _STATES[row.state]
    return row
