"""A2A 1.0 request messages to the model: validated here, before anything is stored (A2A 1.0 §3, §4).

Each function takes the request message as a JSON object, in either spelling of its names, and the agent's id.
Unknown fields are ignored, as the standard asks; a wrong one is refused by its path.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dragoman.model import Cursor, DataPart, Message, Part, RawPart, Role, TaskState, TextPart, UrlPart
from dragoman.model.operation import CancelTask, GetTask, ListTasks, SendMessage, SubscribeToTask
from dragoman.protocol.protojson import Fields, kind_of

GENERATION = "1.0"
LONGEST_ID = 256
MAX_PARTS = 1000

STATE_NAMES: Mapping[str, TaskState] = MappingProxyType(
    {f"TASK_STATE_{state.name}": state for state in TaskState}
)
_STATES: Mapping[str | int, TaskState] = MappingProxyType(
    dict([*STATE_NAMES.items(), *((int(state), state) for state in TaskState)])
)
_CONTENT = ("text", "raw", "url", "data")
_LEGACY = ("kind", "file")


def decode_send(params: dict[str, Any], agent: str) -> SendMessage:
    """Read a SendMessageRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    message = request.fields("message")
    if message is None:
        raise request.wrong("message", "is required")
    modes: tuple[str, ...] = ()
    history, at_once, push = None, False, False
    configuration = request.fields("configuration")
    if configuration is not None:
        modes = configuration.strings("acceptedOutputModes", "accepted_output_modes")
        history = configuration.integer("historyLength", "history_length", low=0)
        at_once = configuration.boolean("returnImmediately", "return_immediately")
        push = configuration.fields("taskPushNotificationConfig", "task_push_notification_config") is not None
    return SendMessage(
        message=_message(message),
        generation=GENERATION,
        accepted_output_modes=modes,
        history_length=history,
        return_immediately=at_once,
        wants_push=push,
        metadata=request.payload("metadata"),
    )


def decode_get(params: dict[str, Any], agent: str) -> GetTask:
    """Read a GetTaskRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return GetTask(
        task_id=request.required("id"),
        history_length=request.integer("historyLength", "history_length", low=0),
    )


def decode_list(params: dict[str, Any], agent: str) -> ListTasks:
    """Read a ListTasksRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    size = request.integer("pageSize", "page_size", low=1, high=100)
    token = request.string("pageToken", "page_token", longest=1024)
    return ListTasks(
        context_id=request.string("contextId", "context_id", longest=LONGEST_ID) or None,
        state=_state(request),
        after=request.timestamp("statusTimestampAfter", "status_timestamp_after"),
        page_size=50 if size is None else size,
        cursor=Cursor.parse(token) if token else None,
        history_length=request.integer("historyLength", "history_length", low=0) or 0,
        include_artifacts=request.boolean("includeArtifacts", "include_artifacts"),
    )


def decode_cancel(params: dict[str, Any], agent: str) -> CancelTask:
    """Read a CancelTaskRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return CancelTask(task_id=request.required("id"), metadata=request.payload("metadata"))


def decode_subscribe(params: dict[str, Any], agent: str) -> SubscribeToTask:
    """Read a SubscribeToTaskRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return SubscribeToTask(task_id=request.required("id"))


def check_tenant(request: Fields, agent: str) -> None:
    """Refuse a tenant other than the agent itself: paths and credentials say who is meant, not a field."""
    tenant = request.string("tenant")
    if tenant and tenant != agent:
        raise request.wrong("tenant", f"must be left out, or be the agent's id ({agent})")


def _state(request: Fields) -> TaskState | None:
    value = request.get("status")
    named = isinstance(value, str | int) and not isinstance(value, bool)
    if value is None or (named and value in (0, "", "TASK_STATE_UNSPECIFIED")):
        return None
    state = _STATES.get(value) if named else None
    if state is None:
        raise request.wrong("status", f"must be one of {', '.join(STATE_NAMES)}")
    return state


def _message(fields: Fields) -> Message:
    message_id = fields.required("messageId", "message_id", longest=LONGEST_ID)
    role = fields.get("role")
    if role not in ("ROLE_USER", Role.USER) or isinstance(role, bool):
        if role in ("ROLE_AGENT", Role.AGENT):
            raise fields.wrong("role", "must be ROLE_USER: a caller cannot speak for the agent")
        if role in ("user", "agent"):
            raise fields.wrong("role", "must be ROLE_USER; user and agent are the names of A2A 0.3")
        raise fields.wrong("role", "is required and must be ROLE_USER")
    parts = fields.get("parts")
    if not isinstance(parts, list) or not parts:
        raise fields.wrong("parts", "must be an array with at least one part")
    if len(parts) > MAX_PARTS:
        raise fields.wrong("parts", f"must not hold more than {MAX_PARTS} parts")
    path = fields.at("parts")
    return Message(
        message_id=message_id,
        role=Role.USER,
        parts=tuple(_part(part, f"{path}[{index}]") for index, part in enumerate(parts)),
        context_id=fields.string("contextId", "context_id", longest=LONGEST_ID),
        task_id=fields.string("taskId", "task_id", longest=LONGEST_ID),
        metadata=fields.payload("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("referenceTaskIds", "reference_task_ids"),
    )


def _part(value: Any, path: str) -> Part:
    if not isinstance(value, dict):
        raise Fields({}, path).wrong("", f"must be an object, not {kind_of(value)}")
    fields = Fields(value, path)
    for name in _LEGACY:
        if name in value:
            raise fields.wrong(
                name, "belongs to A2A 0.3; a 1.0 part has exactly one of text, raw, url and data"
            )
    # `data` may be null, which is a value; every other member counts as absent when it is null.
    content = [name for name in _CONTENT if name in value and (name == "data" or value[name] is not None)]
    if len(content) != 1:
        found = " and ".join(content) if content else "none of them"
        raise Fields(value, path).wrong(
            "", f"must have exactly one of text, raw, url and data, but has {found}"
        )
    filename = fields.string("filename")
    media_type = fields.string("mediaType", "media_type")
    metadata = fields.payload("metadata")
    match content[0]:
        case "text":
            text = fields.string("text")
            return TextPart(text=text, filename=filename, media_type=media_type, metadata=metadata)
        case "raw":
            raw = fields.bytes("raw")
            return RawPart(raw=raw, filename=filename, media_type=media_type, metadata=metadata)
        case "url":
            url = fields.required("url")
            return UrlPart(url=url, filename=filename, media_type=media_type, metadata=metadata)
        case _:
            data = fields.data("data")
            return DataPart(data=data, filename=filename, media_type=media_type, metadata=metadata)
