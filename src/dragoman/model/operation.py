"""The operations of A2A: their names, and one request each. Results are Task, Message, TaskPage or a stream."""

from enum import StrEnum

from msgspec import Raw, Struct

from dragoman.model.message import Message
from dragoman.model.page import Cursor
from dragoman.model.payload import ABSENT
from dragoman.model.principal import Right
from dragoman.model.push import PushConfig
from dragoman.model.task import TaskState


class Operation(StrEnum):
    """The operations, by their 1.0 names (A2A 1.0 §5.3).

    Attributes:
        writes: whether it changes something, so that whatever speaks against its answer must be found before it.
        streams: whether its result is a stream of events.
        right: what a caller needs beside `Right.ANSWER`.
    """

    writes: bool
    streams: bool
    right: Right

    SEND_MESSAGE = "SendMessage"
    SEND_STREAMING_MESSAGE = "SendStreamingMessage"
    GET_TASK = "GetTask"
    LIST_TASKS = "ListTasks"
    CANCEL_TASK = "CancelTask"
    SUBSCRIBE_TO_TASK = "SubscribeToTask"
    CREATE_PUSH_CONFIG = "CreateTaskPushNotificationConfig"
    GET_PUSH_CONFIG = "GetTaskPushNotificationConfig"
    LIST_PUSH_CONFIGS = "ListTaskPushNotificationConfigs"
    DELETE_PUSH_CONFIG = "DeleteTaskPushNotificationConfig"
    GET_EXTENDED_CARD = "GetExtendedAgentCard"


_WRITING = frozenset(
    [
        Operation.SEND_MESSAGE,
        Operation.SEND_STREAMING_MESSAGE,
        Operation.CANCEL_TASK,
        Operation.CREATE_PUSH_CONFIG,
        Operation.DELETE_PUSH_CONFIG,
    ]
)

for _operation in Operation:
    # Asked several times a request: attributes, where properties would each be a call.
    _operation.writes = _operation in _WRITING
    _operation.streams = _operation in (Operation.SEND_STREAMING_MESSAGE, Operation.SUBSCRIBE_TO_TASK)
    _operation.right = Right.DELEGATE if _operation.writes else Right.READ


class SendMessage(Struct, frozen=True, kw_only=True):
    """Send a message, blocking, not blocking or streaming (A2A 1.0 §3.1.1, §3.1.2).

    `generation` is the protocol generation that the caller spoke; it takes part in the message's identity and in
    nothing else. `history_length` bounds the history of the answer; `None` leaves it to the server. `push` is where the
    caller wants to be told of the task's events.
    """

    message: Message
    generation: str
    accepted_output_modes: tuple[str, ...] = ()
    history_length: int | None = None
    return_immediately: bool = False
    push: PushConfig | None = None
    metadata: Raw = ABSENT


class GetTask(Struct, frozen=True, kw_only=True):
    """Read one task (A2A 1.0 §3.1.3)."""

    task_id: str
    history_length: int | None = None


class ListTasks(Struct, frozen=True, kw_only=True):
    """Read one page of the caller's tasks, newest status change first (A2A 1.0 §3.1.4).

    `after` is in milliseconds since 1970 UTC and inclusive.
    """

    context_id: str | None = None
    state: TaskState | None = None
    after: int | None = None
    page_size: int = 50
    cursor: Cursor | None = None
    history_length: int = 0
    include_artifacts: bool = False


class CancelTask(Struct, frozen=True, kw_only=True):
    """Cancel a task (A2A 1.0 §3.1.5)."""

    task_id: str
    metadata: Raw = ABSENT


class SubscribeToTask(Struct, frozen=True, kw_only=True):
    """Follow a task (A2A 1.0 §3.1.6).

    `last_event` resumes after that event's sequence number. `also_finished` asks for the snapshot of a task that is
    finished, and no more, instead of a refusal.
    """

    task_id: str
    last_event: int | None = None
    also_finished: bool = False


class CreatePushConfig(Struct, frozen=True, kw_only=True):
    """Have a URL told of a task's events, from the next one on (A2A 1.0 §3.1.7). One of the same id is replaced."""

    config: PushConfig


class GetPushConfig(Struct, frozen=True, kw_only=True):
    """Read a push notification configuration (A2A 1.0 §3.1.8).

    Without an id, which A2A 0.3 allows, it is the one that has the task's id, or the only one.
    """

    task_id: str
    config_id: str


class ListPushConfigs(Struct, frozen=True, kw_only=True):
    """Read the push notification configurations of a task, in the order of their ids (A2A 1.0 §3.1.9).

    Those after `page_token`, at most `page_size`, or all if it is 0.
    """

    task_id: str
    page_size: int = 0
    page_token: str = ""


class DeletePushConfig(Struct, frozen=True, kw_only=True):
    """Delete a push notification configuration, if it is there (A2A 1.0 §3.1.10)."""

    task_id: str
    config_id: str


class GetExtendedCard(Struct, frozen=True):
    """Get the card that authenticated callers see (A2A 1.0 §3.1.11); it says all by being asked."""


Request = (
    SendMessage
    | GetTask
    | ListTasks
    | CancelTask
    | SubscribeToTask
    | CreatePushConfig
    | GetPushConfig
    | ListPushConfigs
    | DeletePushConfig
    | GetExtendedCard
)
