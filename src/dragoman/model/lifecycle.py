"""The lifecycle of a task: one table, and the one question that is asked of it.

House rules: everything that decides which change may follow which state lives in this file; it is pure, and it
knows neither who asks (handler, canceller, reconciler) nor where tasks are kept. The author's guide draws its
diagram from `NEXT`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dragoman.model.errors import IllegalChange
from dragoman.model.event import ArtifactChunk, Change, Received, Reply, StatusChange
from dragoman.model.task import TaskState

_ENDINGS = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
_WAITS = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})

NEXT: Mapping[TaskState, frozenset[TaskState]] = MappingProxyType(
    {
        TaskState.SUBMITTED: _ENDINGS | _WAITS | {TaskState.WORKING},
        TaskState.WORKING: _ENDINGS | _WAITS | {TaskState.WORKING},
        TaskState.INPUT_REQUIRED: _ENDINGS | {TaskState.WORKING},
        TaskState.AUTH_REQUIRED: _ENDINGS | {TaskState.WORKING},
        TaskState.COMPLETED: frozenset(),
        TaskState.FAILED: frozenset(),
        TaskState.CANCELED: frozenset(),
        TaskState.REJECTED: frozenset(),
    }
)
"""State → the states that may follow it. WORKING may follow itself: it is how progress is told."""


def advance(state: TaskState, change: Change) -> TaskState:
    """Return the state after `change`.

    Raises:
        IllegalChange: the table does not allow it; the message names the rule.
    """
    if state.is_terminal:
        raise IllegalChange(f"the task is {state.name} and a finished task never changes again")
    if isinstance(change, (StatusChange, Received)):
        if change.state is None:
            return state
        if change.state not in NEXT[state]:
            raise IllegalChange(f"a task that is {state.name} cannot become {change.state.name}")
        return change.state
    if isinstance(change, ArtifactChunk) and state.is_interrupted:
        raise IllegalChange(f"a task that is {state.name} waits for its caller and can add no artifact")
    if isinstance(change, Reply):
        # A bare reply ends a run whose task nobody ever saw.
        return TaskState.COMPLETED
    return state
