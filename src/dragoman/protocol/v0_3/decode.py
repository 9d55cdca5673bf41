"""A2A 0.3 requests in JSON with `kind` members to the model: JSON-RPC and our HTTP alias (A2A 0.3 §6, §7).

Each function takes the params as a JSON object and the agent's id. Unknown fields are ignored; a wrong one is
refused by its path before anything is stored.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from dragoman.model import Cursor, Message, Part, RawPart, Role, TaskState, UrlPart
from dragoman.model.operation import CancelTask, GetTask, ListTasks, SendMessage, SubscribeToTask
from dragoman.protocol.protojson import Fields, kind_of
from dragoman.protocol.v0_3.parts import data_part, text_part

GENERATION = "0.3"
LONGEST_ID = 256
MAX_PARTS = 1000

STATE_NAMES: Mapping[str, TaskState] = MappingProxyType(
    {state.name.lower().replace("_", "-"): state for state in TaskState}
)
_KINDS = ("text", "file", "data")
ONLY_1_0 = ("raw", "url", "mediaType", "media_type", "filename")
"""Members of a part that only A2A 1.0 has."""


class Speech(Struct, frozen=True):
    """How a message is spelt in one dialect: its role, what other ones call that role, its parts, and one part."""

    user: tuple[str | int, ...]
    agent: tuple[str | int, ...]
    foreign: tuple[str, ...]
    parts: str
    part: Callable[[Fields], Part]


def decode_send(params: dict[str, Any], agent: str) -> SendMessage:
    """Read MessageSendParams. A request that does not say whether to wait waits.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    message = request.fields("message")
    if message is None:
        raise request.wrong("message", "is required")
    check_kind(message, "message")
    modes: tuple[str, ...] = ()
    history, blocking, push = None, True, False
    configuration = request.fields("configuration")
    if configuration is not None:
        modes = configuration.strings("acceptedOutputModes")
        history = configuration.integer("historyLength", low=0)
        blocking = configuration.get("blocking") is None or configuration.boolean("blocking")
        push = configuration.fields("pushNotificationConfig") is not None
    return SendMessage(
        message=read_message(message, _SPEECH),
        generation=GENERATION,
        accepted_output_modes=modes,
        history_length=history,
        return_immediately=not blocking,
        wants_push=push,
        metadata=request.payload("metadata"),
    )


def decode_get(params: dict[str, Any], agent: str) -> GetTask:
    """Read TaskQueryParams.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    return GetTask(task_id=request.required("id"), history_length=request.integer("historyLength", low=0))


def decode_list(params: dict[str, Any], agent: str) -> ListTasks:
    """Read what a listing is asked for, by the names of A2A 1.0 and with the states of 0.3, which has no listing.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    size = request.integer("pageSize", low=1, high=100)
    token = request.string("pageToken", longest=1024)
    return ListTasks(
        context_id=request.string("contextId", longest=LONGEST_ID) or None,
        state=_state(request),
        after=request.timestamp("statusTimestampAfter"),
        page_size=50 if size is None else size,
        cursor=Cursor.parse(token) if token else None,
        history_length=request.integer("historyLength", low=0) or 0,
        include_artifacts=request.boolean("includeArtifacts"),
    )


def decode_cancel(params: dict[str, Any], agent: str) -> CancelTask:
    """Read TaskIdParams.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    return CancelTask(task_id=request.required("id"), metadata=request.payload("metadata"))


def decode_subscribe(params: dict[str, Any], agent: str) -> SubscribeToTask:
    """Read TaskIdParams. A task that is finished is shown, and the stream ends.

    Raises:
        InvalidParams: a field is wrong.
    """
    return SubscribeToTask(task_id=Fields(params).required("id"), also_finished=True)


def read_message(fields: Fields, speech: Speech) -> Message:
    """Read a caller's message, spelt as `speech` says.

    Raises:
        InvalidParams: a field is wrong.
    """
    message_id = fields.required("messageId", "message_id", longest=LONGEST_ID)
    role = fields.get("role")
    if isinstance(role, bool) or role not in speech.user:
        user = speech.user[0]
        if role in speech.agent and not isinstance(role, bool):
            raise fields.wrong("role", f"must be {user}: a caller cannot speak for the agent")
        if role in speech.foreign:
            raise fields.wrong("role", f"must be {user}; {role} is a name of another form of A2A")
        raise fields.wrong("role", f"is required and must be {user}")
    parts = fields.get(speech.parts)
    if not isinstance(parts, list) or not parts:
        raise fields.wrong(speech.parts, "must be an array with at least one part")
    if len(parts) > MAX_PARTS:
        raise fields.wrong(speech.parts, f"must not hold more than {MAX_PARTS} parts")
    path = fields.at(speech.parts)
    return Message(
        message_id=message_id,
        role=Role.USER,
        parts=tuple(speech.part(_part_at(part, f"{path}[{index}]")) for index, part in enumerate(parts)),
        context_id=fields.string("contextId", "context_id", longest=LONGEST_ID),
        task_id=fields.string("taskId", "task_id", longest=LONGEST_ID),
        metadata=fields.payload("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("referenceTaskIds", "reference_task_ids"),
    )


def check_kind(fields: Fields, kind: str) -> None:
    """Refuse an object that says it is of another kind. One that does not say is believed by its place."""
    if fields.get("kind") not in (None, kind):
        raise fields.wrong("kind", f'must be "{kind}"')


def refuse_members(fields: Fields, names: tuple[str, ...], why: str) -> None:
    """Refuse a part that has a member of another form of A2A."""
    for name in names:
        if name in fields.members:
            raise fields.wrong(name, why)


def one_of(fields: Fields, names: Mapping[str, str], what: str) -> str:
    """Return the one member of `names` (each with what it means) that an object has.

    Raises:
        InvalidParams: it has none, or several.
    """
    found = [name for name in names if fields.members.get(name) is not None]
    if len(found) != 1:
        has = " and ".join(found) if found else "none of them"
        raise fields.wrong("", f"must have exactly one of {what}, but has {has}")
    return found[0]


def _part_at(value: Any, path: str) -> Fields:
    if not isinstance(value, dict):
        raise Fields({}, path).wrong("", f"must be an object, not {kind_of(value)}")
    return Fields(value, path)


def _state(request: Fields) -> TaskState | None:
    value = request.get("status")
    if value is None or value == "":
        return None
    state = STATE_NAMES.get(value) if isinstance(value, str) else None
    if state is None:
        raise request.wrong("status", f"must be one of {', '.join(STATE_NAMES)}")
    return state


def _part(fields: Fields) -> Part:
    refuse_members(
        fields, ONLY_1_0, "belongs to A2A 1.0; a 0.3 part has a kind (text, file or data) and that member"
    )
    kind = fields.get("kind")
    if kind not in _KINDS:
        raise fields.wrong("kind", f"is required and must be one of {', '.join(_KINDS)}")
    found = [name for name in _KINDS if fields.members.get(name) is not None]
    if found != [kind]:
        has = " and ".join(found) if found else "none of them"
        raise fields.wrong("", f"is of kind {kind} and must have exactly the member {kind}, but has {has}")
    match kind:
        case "text":
            return text_part(fields)
        case "data":
            return data_part(fields, fields.get("data"), "data")
        case _:
            return _file(fields)


_FILE: Mapping[str, str] = MappingProxyType(
    {"bytes": "bytes", "uri": "uri", "fileWithBytes": "bytes", "fileWithUri": "uri"}
)
"""Members of a file and what they mean: by the 0.3 schema, and as the migration notes of 1.0 spell them."""


def _file(fields: Fields) -> Part:
    file = fields.fields("file")
    if file is None:
        raise fields.wrong("file", "must be an object")
    name = one_of(file, _FILE, "bytes and uri")
    filename, media_type = file.string("name"), file.string("mimeType")
    metadata = fields.payload("metadata")
    if _FILE[name] == "bytes":
        return RawPart(raw=file.bytes(name), filename=filename, media_type=media_type, metadata=metadata)
    return UrlPart(url=file.required(name), filename=filename, media_type=media_type, metadata=metadata)


_SPEECH = Speech(
    user=("user",), agent=("agent",), foreign=("ROLE_USER", "ROLE_AGENT"), parts="parts", part=_part
)
