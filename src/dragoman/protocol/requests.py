"""What every dialect reads alike: a caller's message, and what a page of tasks is asked for."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.model import Cursor, Message, Part, Role, TaskState
from dragoman.model.operation import ListTasks
from dragoman.protocol.protojson import Fields, kind_of

LONGEST_ID = 256
MAX_PARTS = 1000


class Speech(Struct, frozen=True, kw_only=True):
    """How a dialect spells a caller's message.

    `user` and `agent` are the forms of the two roles, the first one of `user` the usual one; `foreign` are those of
    other dialects. `parts` is the member that holds the parts, and `part` reads one of them.
    """

    user: tuple[str | int, ...]
    agent: tuple[str | int, ...]
    foreign: tuple[str, ...]
    part: Callable[[Fields], Part]
    parts: str = "parts"


def read_message(fields: Fields, speech: Speech) -> Message:
    """Read a caller's message.

    Raises:
        InvalidParams: a field is wrong.
    """
    message_id = fields.required("messageId", "message_id", longest=LONGEST_ID)
    _check_role(fields, speech)
    parts = fields.get(speech.parts)
    if not isinstance(parts, list) or not parts:
        raise fields.wrong(speech.parts, "must be an array with at least one part")
    if len(parts) > MAX_PARTS:
        raise fields.wrong(speech.parts, f"must not hold more than {MAX_PARTS} parts")
    path = fields.at(speech.parts)
    said = tuple([speech.part(_part_at(part, f"{path}[{index}]")) for index, part in enumerate(parts)])
    if len(fields.members) == 3:
        # Most messages have nothing else, and nothing is quicker than not to look for it.
        return Message(message_id=message_id, role=Role.USER, parts=said)
    return Message(
        message_id=message_id,
        role=Role.USER,
        parts=said,
        context_id=fields.string("contextId", "context_id", longest=LONGEST_ID),
        task_id=fields.string("taskId", "task_id", longest=LONGEST_ID),
        metadata=fields.payload("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("referenceTaskIds", "reference_task_ids"),
    )


def read_listing(request: Fields, state: TaskState | None) -> ListTasks:
    """Read what a page of tasks is asked for; the `state` is spelt in each version's own way.

    Raises:
        InvalidParams: a field is wrong.
    """
    size = request.integer("pageSize", "page_size", low=1, high=100)
    token = request.string("pageToken", "page_token", longest=1024)
    return ListTasks(
        context_id=request.string("contextId", "context_id", longest=LONGEST_ID) or None,
        state=state,
        after=request.timestamp("statusTimestampAfter", "status_timestamp_after"),
        page_size=50 if size is None else size,
        cursor=Cursor.parse(token) if token else None,
        history_length=request.integer("historyLength", "history_length", low=0) or 0,
        include_artifacts=request.boolean("includeArtifacts", "include_artifacts"),
    )


def _check_role(fields: Fields, speech: Speech) -> None:
    role = fields.get("role")
    is_name = not isinstance(role, bool)
    if is_name and role in speech.user:
        return
    user = speech.user[0]
    if is_name and role in speech.agent:
        raise fields.wrong("role", f"must be {user}: a caller cannot speak for the agent")
    if is_name and role in speech.foreign:
        raise fields.wrong("role", f"must be {user}; {role} is how another form of A2A says it")
    raise fields.wrong("role", f"is required and must be {user}")


def _part_at(value: object, path: str) -> Fields:
    if not isinstance(value, dict):
        raise Fields({}, path).wrong("", f"must be an object, not {kind_of(value)}")
    return Fields(value, path)
