"""A2A 0.3 requests in JSON with `kind` members to the model: JSON-RPC and our HTTP alias (A2A 0.3 §6, §7).

Each function takes the params as a JSON object and the agent's id. Unknown fields are ignored; a wrong one is
refused by its path before anything is stored.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dragoman.model import Part, RawPart, TaskState, UrlPart
from dragoman.model.operation import CancelTask, GetTask, ListTasks, SendMessage, SubscribeToTask
from dragoman.protocol.protojson import Fields
from dragoman.protocol.requests import Speech, read_listing, read_message
from dragoman.protocol.v0_3.parts import data_part, text_part
from dragoman.protocol.v0_3.push import GENERATION, read_push_config

STATE_NAMES: Mapping[str, TaskState] = MappingProxyType(
    {state.name.lower().replace("_", "-"): state for state in TaskState}
)
_KINDS = ("text", "file", "data")
ONLY_1_0 = ("raw", "url", "mediaType", "media_type", "filename")
"""Members of a part that only A2A 1.0 has."""


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
    history, blocking, push = None, True, None
    configuration = request.fields("configuration")
    if configuration is not None:
        modes = configuration.strings("acceptedOutputModes")
        history = configuration.integer("historyLength", low=0)
        blocking = configuration.get("blocking") is None or configuration.boolean("blocking")
        push = configuration.fields("pushNotificationConfig")
    said = read_message(message, _SPEECH)
    return SendMessage(
        message=said,
        generation=GENERATION,
        accepted_output_modes=modes,
        history_length=history,
        return_immediately=not blocking,
        push=read_push_config(push, said.task_id) if push is not None else None,
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
    return read_listing(request, _state(request))


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


def _state(request: Fields) -> TaskState | None:
    value = request.get("status")
    if value is None or value == "":
        return None
    state = STATE_NAMES.get(value) if isinstance(value, str) else None
    if state is None:
        raise request.wrong("status", f"must be one of {', '.join(STATE_NAMES)}")
    return state


def read_part(fields: Fields) -> Part:
    """Read a part, of either side.

    Raises:
        InvalidParams: it is none of A2A 0.3.
    """
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


_SPEECH = Speech(user=("user",), agent=("agent",), foreign=("ROLE_USER", "ROLE_AGENT"), part=read_part)
