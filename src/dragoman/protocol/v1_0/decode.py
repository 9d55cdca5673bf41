"""A2A 1.0 request messages to the model: validated here, before anything is stored (A2A 1.0 §3, §4).

Each function takes the request message as a JSON object, in either spelling of its names, and the agent's id.
Unknown fields are ignored, as the standard asks; a wrong one is refused by its path.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dragoman.model import DataPart, Part, PushConfig, RawPart, TaskState, TextPart, UrlPart
from dragoman.model.operation import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    SendMessage,
    SubscribeToTask,
)
from dragoman.protocol.hooks import check_scheme, read_config
from dragoman.protocol.protojson import Fields
from dragoman.protocol.requests import LONGEST_ID, Speech, read_listing, read_message

GENERATION = "1.0"

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
    if len(params) == 1:
        # Most requests have nothing else, and nothing is quicker than not to look for it.
        return SendMessage(message=read_message(message, _SPEECH), generation=GENERATION)
    modes: tuple[str, ...] = ()
    history, at_once, push = None, False, None
    configuration = request.fields("configuration")
    if configuration is not None:
        modes = configuration.strings("acceptedOutputModes", "accepted_output_modes")
        history = configuration.integer("historyLength", "history_length", low=0)
        at_once = configuration.boolean("returnImmediately", "return_immediately")
        push = configuration.fields("taskPushNotificationConfig", "task_push_notification_config")
    said = read_message(message, _SPEECH)
    return SendMessage(
        message=said,
        generation=GENERATION,
        accepted_output_modes=modes,
        history_length=history,
        return_immediately=at_once,
        push=_inline(push, agent, said.task_id) if push is not None else None,
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
    return read_listing(request, _state(request))


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


def decode_create_push_config(params: dict[str, Any], agent: str) -> CreatePushConfig:
    """Read a TaskPushNotificationConfig that is to be kept.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return CreatePushConfig(config=_push_config(request, _task_id(request)))


def decode_get_push_config(params: dict[str, Any], agent: str) -> GetPushConfig:
    """Read a GetTaskPushNotificationConfigRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return GetPushConfig(task_id=_task_id(request), config_id=request.required("id", longest=LONGEST_ID))


def decode_list_push_configs(params: dict[str, Any], agent: str) -> ListPushConfigs:
    """Read a ListTaskPushNotificationConfigsRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return ListPushConfigs(
        task_id=_task_id(request),
        page_size=request.integer("pageSize", "page_size", low=0) or 0,
        page_token=request.string("pageToken", "page_token", longest=LONGEST_ID),
    )


def decode_delete_push_config(params: dict[str, Any], agent: str) -> DeletePushConfig:
    """Read a DeleteTaskPushNotificationConfigRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    check_tenant(request, agent)
    return DeletePushConfig(task_id=_task_id(request), config_id=request.required("id", longest=LONGEST_ID))


def _task_id(request: Fields) -> str:
    return request.required("taskId", "task_id", longest=LONGEST_ID)


def _inline(fields: Fields, agent: str, task_id: str) -> PushConfig:
    """Read a configuration that comes with a message; it may name the message's own task."""
    check_tenant(fields, agent)
    if fields.string("taskId", "task_id") not in ("", task_id):
        raise fields.wrong("taskId", "must be left out: it is the task of the message")
    return _push_config(fields, task_id)


def _push_config(fields: Fields, task_id: str) -> PushConfig:
    authentication = fields.fields("authentication")
    scheme = ""
    if authentication is not None:
        scheme = check_scheme(authentication, "scheme", authentication.required("scheme"))
    return read_config(fields, GENERATION, task_id=task_id, scheme=scheme, authentication=authentication)


def check_tenant(request: Fields, agent: str) -> None:
    """Refuse a tenant other than the agent itself: paths and credentials say who is meant, not a field."""
    tenant = request.string("tenant")
    if tenant and tenant != agent:
        raise request.wrong(
            "tenant", "must be left out" + (f", or be the agent's id ({agent})" if agent else "")
        )


def _state(request: Fields) -> TaskState | None:
    value = request.get("status")
    named = isinstance(value, str | int) and not isinstance(value, bool)
    if value is None or (named and value in (0, "", "TASK_STATE_UNSPECIFIED")):
        return None
    state = _STATES.get(value) if named else None
    if state is None:
        raise request.wrong("status", f"must be one of {', '.join(STATE_NAMES)}")
    return state


def read_part(fields: Fields) -> Part:
    """Read a part, of either side.

    Raises:
        InvalidParams: it is none of A2A 1.0.
    """
    value = fields.members
    if len(value) == 1 and isinstance(text := value.get("text"), str):
        return TextPart(text=text)
    for name in _LEGACY:
        if name in value:
            raise fields.wrong(
                name, "belongs to A2A 0.3; a 1.0 part has exactly one of text, raw, url and data"
            )
    # `data` may be null, which is a value; every other member counts as absent when it is null.
    content = [name for name in _CONTENT if name in value and (name == "data" or value[name] is not None)]
    if len(content) != 1:
        found = " and ".join(content) if content else "none of them"
        raise fields.wrong("", f"must have exactly one of text, raw, url and data, but has {found}")
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


_SPEECH = Speech(user=("ROLE_USER", 1), agent=("ROLE_AGENT", 2), foreign=("user", "agent"), part=read_part)
