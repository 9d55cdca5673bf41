"""Calling agents that speak A2A 0.3: what is sent, and how replies are read (A2A 0.3 §6, §7).

JSON-RPC has the JSON with `kind` members. Over HTTP it is the ProtoJSON of the 0.3 proto below `/v1`, as official
servers have it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import structs

from dragoman.model import Part, RawPart, Role, Task, TaskState, errors
from dragoman.model.errors import DragomanError, InvalidParams
from dragoman.model.payload import ABSENT
from dragoman.protocol.client import (
    BY_CODE,
    BY_STATUS,
    HTTP_JSON,
    JSON_RPC,
    Call,
    ClientBinding,
    HttpJsonClient,
    Item,
    JsonRpcClient,
    Outgoing,
    Place,
    RemoteRefusalError,
    by_status,
    listed,
    not_one,
    object_in,
    reading,
    task_path,
    text_of,
)
from dragoman.protocol.protojson import Fields
from dragoman.protocol.replies import Heard, Replies
from dragoman.protocol.v0_3.decode import STATE_NAMES, read_part
from dragoman.protocol.v0_3.decode_proto import Reader
from dragoman.protocol.v0_3.encode import RESULTS
from dragoman.protocol.v0_3.encode_proto import Writer
from dragoman.protocol.v0_3.errors import TABLE

_EXTENSIONS = "X-A2A-Extensions"

# ---------------------------------------------------------------------------------------------------------- JSON-RPC

_KINDS = Replies(
    Heard(
        # Nobody knows what goes on in a task whose state is "unknown", but that it is not over.
        states=dict([*STATE_NAMES.items(), ("unknown", TaskState.WORKING)]),
        roles={"user": Role.USER, "agent": Role.AGENT},
        part=read_part,
    )
)


def _read_kind(fields: Fields) -> Item:
    """Read a result by its kind.

    Raises:
        InvalidParams: it is none that there is.
    """
    match fields.get("kind"):
        case "task":
            return _KINDS.task(fields)
        case "message":
            return _KINDS.message(fields)
        case "status-update":
            return _KINDS.status_update(fields)
        case "artifact-update":
            return _KINDS.artifact_update(fields)
        case _:
            raise fields.wrong("kind", "must be task, message, status-update or artifact-update")


_RPC = JsonRpcClient(_read_kind, read_task=_KINDS.task, read_answer=_read_kind)


def _rpc_send(place: Place, outgoing: Outgoing, method: str, *, streams: bool) -> Call:
    params = _send_params(outgoing, {"message": RESULTS.message(outgoing.message)}, blocking=streams)
    return _RPC.call(
        place,
        method,
        params,
        outgoing.message.message_id,
        streams=streams,
        answers=True,
        further=listed(_EXTENSIONS, outgoing.extensions),
    )


def _send_params(outgoing: Outgoing, params: dict[str, Any], *, blocking: bool) -> dict[str, Any]:
    configuration: dict[str, Any] = {"blocking": blocking}
    if outgoing.accepted_output_modes:
        configuration["acceptedOutputModes"] = outgoing.accepted_output_modes
    params["configuration"] = configuration
    if outgoing.metadata is not ABSENT:
        params["metadata"] = outgoing.metadata
    return params


def _rpc_task(place: Place, method: str, task_id: str, *, streams: bool = False, **params: Any) -> Call:
    return _RPC.call(place, method, {"id": task_id, **params}, task_id, streams=streams)


# --------------------------------------------------------------------------------------------------------- HTTP+JSON

_WRITER = Writer(doubled=True)
_READER = Reader(doubled=False)


def _read_proto_part(fields: Fields) -> Part:
    """Read a part. Official Python servers put base64 of base64 into a file: what is base64 inside is taken for that.

    Raises:
        InvalidParams: it is none.
    """
    part = _READER.read_part(fields)
    if not isinstance(part, RawPart) or not part.raw.isascii():
        return part
    try:
        return structs.replace(part, raw=Fields({"raw": part.raw.decode()}).bytes("raw"))
    except InvalidParams:
        return part


_PROTO = Replies(
    Heard(
        states={
            **{f"TASK_STATE_{state.name}": state for state in TaskState},
            "TASK_STATE_CANCELLED": TaskState.CANCELED,
            **{int(state): state for state in TaskState},
        },
        roles={**{f"ROLE_{role.name}": role for role in Role}, **{int(role): role for role in Role}},
        part=_read_proto_part,
        parts="content",
    )
)
_MEMBERS: Mapping[str, str] = MappingProxyType(
    {
        "task": "task",
        "message": "message",
        "msg": "message",
        "statusUpdate": "status",
        "status_update": "status",
        "artifactUpdate": "artifact",
        "artifact_update": "artifact",
    }
)


def _read_proto(fields: Fields) -> Item:
    """Read a SendMessageResponse or StreamResponse.

    Raises:
        InvalidParams: it is neither.
    """
    found = [name for name in _MEMBERS if fields.members.get(name) is not None]
    member = fields.fields(found[0]) if len(found) == 1 else None
    if member is None:
        not_one(found, "task, message, statusUpdate and artifactUpdate")
    match _MEMBERS[found[0]]:
        case "task":
            return _PROTO.task(member)
        case "message":
            return _PROTO.message(member)
        case "status":
            return _PROTO.status_update(member)
        case _:
            return _PROTO.artifact_update(member)


def _read_proto_task(fields: Fields) -> Task:
    return _PROTO.task(fields)


def _url(place: Place, path: str) -> str:
    return f"{place.url.rstrip('/')}/v1{path}"


def _http_send(place: Place, outgoing: Outgoing, path: str, *, streams: bool) -> Call:
    params = {"message": _WRITER.results.message(outgoing.message)}
    return _HTTP.call(
        "POST",
        _url(place, path),
        _send_params(outgoing, params, blocking=streams),
        answers=True,
        streams=streams,
        extensions=outgoing.extensions,
    )


_HTTP_STATUS: Mapping[int, type[DragomanError]] = MappingProxyType(
    {
        **BY_STATUS,
        404: errors.TaskNotFound,
        409: errors.TaskNotCancelable,
        415: errors.ContentTypeNotSupported,
        501: errors.UnsupportedOperation,
        502: errors.InvalidAgentResponse,
    }
)
"""What official servers of 0.3 mean by a status: it is all that they say besides a message."""

_BY_NAME: Mapping[str, type[DragomanError]] = MappingProxyType(
    {known.name: kind for kind, known in TABLE.items()}
)


def _http_refusal(status: int, body: bytes) -> RemoteRefusalError:
    problem = object_in(body)
    code = problem.get("code")
    kind = _BY_NAME.get(text_of(problem.get("type")).rpartition("/")[2])
    if kind is None and isinstance(code, int):
        kind = BY_CODE.get(code)
    message = text_of(problem.get("message")) or text_of(problem.get("detail"))
    return RemoteRefusalError(kind or by_status(status, _HTTP_STATUS), message)


_HTTP = HttpJsonClient(
    read_answer=_read_proto,
    read_task=_read_proto_task,
    event=lambda data: reading(_read_proto, data),
    refusal=_http_refusal,
    extensions=_EXTENSIONS,
)

CLIENT: Mapping[str, ClientBinding] = MappingProxyType(
    {
        JSON_RPC: ClientBinding(
            send=lambda place, outgoing: _rpc_send(place, outgoing, "message/send", streams=False),
            stream=lambda place, outgoing: _rpc_send(place, outgoing, "message/stream", streams=True),
            get=lambda place, task_id, history: _rpc_task(place, "tasks/get", task_id, historyLength=history),
            cancel=lambda place, task_id: _rpc_task(place, "tasks/cancel", task_id),
            subscribe=lambda place, task_id: _rpc_task(place, "tasks/resubscribe", task_id, streams=True),
        ),
        HTTP_JSON: ClientBinding(
            send=lambda place, outgoing: _http_send(place, outgoing, "/message:send", streams=False),
            stream=lambda place, outgoing: _http_send(place, outgoing, "/message:stream", streams=True),
            get=lambda place, task_id, history: _HTTP.call(
                "GET", f"{_url(place, task_path(task_id))}?historyLength={history}"
            ),
            cancel=lambda place, task_id: _HTTP.call(
                "POST", _url(place, task_path(task_id, ":cancel")), {"name": f"tasks/{task_id}"}
            ),
            # By GET, as the proto of 0.3 and the official Python servers have it.
            subscribe=lambda place, task_id: _HTTP.call(
                "GET", _url(place, task_path(task_id, ":subscribe")), streams=True
            ),
            # Whether the bytes of a file are base64 of base64 depends on who wrote the other side.
            last_resort=True,
        ),
    }
)
"""By binding, as cards name it."""
