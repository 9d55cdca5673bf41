"""A task's row as the writing operations of every store handle it: how changes move it, and what does not hold.

Where the row is read and written is each store's own affair; how it moves is decided here, once.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from dragoman.gateway.ports import Acceptance, Lease
from dragoman.model import Approval, Change, Received, Reply, StatusChange, TaskEvent, TaskState
from dragoman.model.approval import approval_digest
from dragoman.model.errors import (
    ApprovalClosed,
    Fenced,
    InvalidParams,
    TaskNotCancelable,
    UnsupportedOperation,
)
from dragoman.model.lifecycle import advance
from dragoman.model.payload import ABSENT

COLUMNS = (
    "id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, epoch, attempt, dispatch"
)
"""The columns of a TaskRow, in order."""

RUNNING = (TaskState.SUBMITTED, TaskState.WORKING)

PAST_DEADLINE = "The run passed its deadline and was stopped."
FLAT_DEADLINE = "The run was not finished within its deadline, so it was ended."
UNANSWERED = "Nobody answered within the time that the run may wait, so it was ended."
"""What a task that is ended by the clock says."""


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


def held(row: TaskRow | None, lease: Lease) -> TaskRow:
    """Return the row of a run to somebody who may write to it.

    Raises:
        Fenced: the lease is not good any more.
    """
    if row is None:
        raise Fenced("the task is gone")
    if row.epoch != lease.epoch or row.state.is_terminal:
        raise Fenced(f"the run is not this writer's any more (the task is {row.state.name})")
    return row


def move(row: TaskRow, changes: Sequence[Change], now: int) -> list[TaskEvent]:
    """Move a row by changes, in order, at the store's time `now`, and return their events.

    Raises:
        IllegalChange: the lifecycle does not allow one of them; the row is as it was.
    """
    state = row.state
    for change in changes:
        state = advance(state, change)
    at = max(row.status_at, now)
    events = []
    for change in changes:
        row.seq += 1
        if isinstance(change, (StatusChange, Reply)) or (
            isinstance(change, Received) and change.state is not None
        ):
            row.status_seq, row.status_at = row.seq, at
        events.append(TaskEvent(row.id, row.context_id, row.seq, at, row.attempt, change))
    row.state = state
    return events


def as_shown(row: TaskRow, change: Change) -> Change:
    """Return a change as it is for a task that shows by now: a bare reply comes too late, so it completes the task."""
    if isinstance(change, Reply) and row.visible:
        message = structs.replace(change.message, task_id=row.id, context_id=row.context_id)
        return StatusChange(TaskState.COMPLETED, message)
    return change


def says_nothing_new(row: TaskRow, change: Change) -> bool:
    """Tell whether a change says no more than that a working task works."""
    return (
        row.state is TaskState.WORKING
        and isinstance(change, StatusChange)
        and change.state is TaskState.WORKING
        and change.message is None
        and change.metadata is ABSENT
    )


def check_cancelable(row: TaskRow) -> None:
    """Make sure that a task can be canceled.

    Raises:
        TaskNotCancelable: it is finished.
    """
    if row.state.is_terminal:
        raise TaskNotCancelable(f"Task {row.id} is {row.state.name} already and cannot be canceled")


def check_continued(row: TaskRow, acceptance: Acceptance) -> None:
    """Make sure that a message may continue the task of a row, whatever that waits for.

    Raises:
        InvalidParams, UnsupportedOperation: it may not.
    """
    message = acceptance.message
    if message.context_id and message.context_id != row.context_id:
        raise InvalidParams.of("message.contextId", f"task {row.id} belongs to another context; leave it out")
    if acceptance.answers and not row.state.is_interrupted:
        raise UnsupportedOperation(f"Task {row.id} does not wait for an answer: it is {row.state.name}")
    if row.state.is_terminal:
        raise UnsupportedOperation(
            f"Task {row.id} is finished and takes no more messages; send a new one with its contextId instead"
        )


def awaits_approval(row: TaskRow) -> UnsupportedOperation:
    """Return what is said of a message to a task that waits for an approval."""
    return UnsupportedOperation(
        f"Task {row.id} waits for an approval, which no message can give; it is decided by the approval API"
    )


def check_decidable(approval: Approval, row: TaskRow | None, digest: str | None, *, expired: bool) -> TaskRow:
    """Return the row of the run that waits for an approval, if that can be decided.

    `digest` is that of what whoever decides was shown, if they say so; `expired` if its time is over.

    Raises:
        ApprovalClosed: it was decided before, nobody waits for it any more, or it is not what was shown.
    """
    if approval.decision is not None:
        raise ApprovalClosed("This approval was decided before; a decision is made once")
    if row is None or row.dispatch != "parked" or expired:
        raise ApprovalClosed("The run that wanted this does not wait for it any more")
    shown = approval_digest(approval.action, approval.details)
    if shown != approval.digest or (digest is not None and digest != approval.digest):
        raise ApprovalClosed("This is not what was shown; read the approval again before you decide")
    return row
