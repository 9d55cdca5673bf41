"""Push notification configurations of A2A 0.3 (§7.5-§7.8), in all its dialects: requests to the model, and back."""

from typing import Any

from dragoman.model import PushConfig
from dragoman.model.operation import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs
from dragoman.protocol.hooks import check_scheme, read_config, read_id
from dragoman.protocol.protojson import Fields
from dragoman.protocol.requests import LONGEST_ID
from dragoman.protocol.spec import HttpCall

GENERATION = "0.3"

_CONFIG, _CONFIG_SNAKE = "pushNotificationConfig", "push_notification_config"


def decode_set(params: dict[str, Any], agent: str) -> CreatePushConfig:
    """Read a TaskPushNotificationConfig, as JSON-RPC has it.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    config = request.fields(_CONFIG)
    if config is None:
        raise request.wrong(_CONFIG, "is required")
    return CreatePushConfig(config=read_push_config(config, request.required("taskId", longest=LONGEST_ID)))


def decode_create(call: HttpCall) -> CreatePushConfig:
    """Read what is posted to a task's configurations: the text, the proto and the official clients each differ.

    It is the configuration itself, that of a task, or either of them in a member `config`, with `configId` beside it.

    Raises:
        InvalidParams: a field is wrong, or it is another task's.
    """
    task_id = call.variables["id"]
    outer = Fields(call.body or {})
    _check_task(outer, task_id)
    _check_name(outer, "parent", f"tasks/{task_id}")
    inner = outer.fields("config") or outer
    _check_task(inner, task_id)
    named = read_id(outer, "configId", "config_id")
    _check_name(inner, "name", f"tasks/{task_id}/pushNotificationConfigs/{named}" if named else "")
    config = read_push_config(inner.fields(_CONFIG, _CONFIG_SNAKE) or inner, task_id, named)
    return CreatePushConfig(config=config)


def decode_get(params: dict[str, Any], agent: str) -> GetPushConfig:
    """Read GetTaskPushNotificationConfigParams; the id of the configuration may be left out.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    return GetPushConfig(
        task_id=request.required("id", longest=LONGEST_ID),
        config_id=request.string("pushNotificationConfigId", longest=LONGEST_ID),
    )


def decode_list(params: dict[str, Any], agent: str) -> ListPushConfigs:
    """Read ListTaskPushNotificationConfigParams.

    Raises:
        InvalidParams: a field is wrong.
    """
    return ListPushConfigs(task_id=Fields(params).required("id", longest=LONGEST_ID))


def decode_delete(params: dict[str, Any], agent: str) -> DeletePushConfig:
    """Read DeleteTaskPushNotificationConfigParams.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = Fields(params)
    return DeletePushConfig(
        task_id=request.required("id", longest=LONGEST_ID),
        config_id=request.required("pushNotificationConfigId", longest=LONGEST_ID),
    )


def read_push_config(fields: Fields, task_id: str, named: str = "") -> PushConfig:
    """Read a PushNotificationConfig; `named` is its id where that stands elsewhere.

    Raises:
        InvalidParams: a field is wrong.
    """
    own = read_id(fields, "id")
    if named and own not in ("", named):
        raise fields.wrong("id", "must be the same as configId, or be left out")
    if named and not own:
        fields = Fields({**fields.members, "id": named}, fields.path)
    authentication = fields.fields("authentication")
    scheme = ""
    if authentication is not None:
        # There is one Authorization header: the first scheme is the one that is used.
        scheme = next(iter(authentication.strings("schemes")), "")
        check_scheme(authentication, "schemes", scheme)
        if not scheme and authentication.string("credentials"):
            raise authentication.wrong("schemes", "must name the scheme of the credentials, such as Bearer")
    return read_config(fields, GENERATION, task_id=task_id, scheme=scheme, authentication=authentication)


def push_config(config: PushConfig) -> dict[str, Any]:
    """Return a PushNotificationConfig."""
    wire: dict[str, Any] = {"id": config.id, "url": config.url}
    if config.scheme:
        wire["authentication"] = {"schemes": [config.scheme]}
    return wire


def _check_task(fields: Fields, task_id: str) -> None:
    if fields.string("taskId", "task_id") not in ("", task_id):
        raise fields.wrong("taskId", "must be the one in the path, or be left out")


def _check_name(fields: Fields, member: str, name: str) -> None:
    """Refuse a resource name that says something else than the path does."""
    found = fields.string(member)
    if found and name and found != name:
        raise fields.wrong(member, f"must be {name}, or be left out")
