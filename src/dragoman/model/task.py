"""Task, TaskStatus and TaskState (A2A 1.0 §4.1.1-§4.1.3), free of any wire form."""

from enum import IntEnum

from msgspec import Raw, Struct

from dragoman.model.message import Artifact, Message
from dragoman.model.payload import ABSENT


class TaskState(IntEnum):
    """Where a task stands. The numbers are the standard's.

    Attributes:
        is_terminal: whether no event can follow this state.
        is_interrupted: whether the task waits for its caller.
    """

    is_terminal: bool
    is_interrupted: bool

    SUBMITTED = 1
    WORKING = 2
    COMPLETED = 3
    FAILED = 4
    CANCELED = 5
    INPUT_REQUIRED = 6
    REJECTED = 7
    AUTH_REQUIRED = 8


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})

for _state in TaskState:
    # Asked a dozen times a send: attributes, where properties would each be a call.
    _state.is_terminal = _state in TERMINAL
    _state.is_interrupted = _state in INTERRUPTED


class TaskStatus(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A state, since when, and what the agent says of it.

    `timestamp` is in milliseconds since 1970 UTC and is set by the store alone.
    """

    state: TaskState
    timestamp: int
    message: Message | None = None


class RunFacts(Struct, frozen=True, kw_only=True):
    """How far the run of a task has come. No version has members for it.

    `sequence` is that of the task's last event, `attempt` counts how often the run was begun. `deadline` is when it
    is ended as FAILED, in milliseconds since 1970 UTC by the store's clock; there is none while it waits for its
    caller, because it moves by that time, and none once it has ended.
    """

    sequence: int
    attempt: int
    deadline: int | None = None


class Task(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A task as a caller may see it.

    `history` is chronological. `artifacts` is `None` where they were left out on purpose, which differs from
    there being none. `run` is for what shows a task, and never written of itself.
    """

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[Artifact, ...] | None = ()
    history: tuple[Message, ...] = ()
    metadata: Raw = ABSENT
    run: RunFacts | None = None
