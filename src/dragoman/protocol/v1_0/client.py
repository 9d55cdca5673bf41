"""Calling agents that speak A2A 1.0: what is sent, and how replies are read (A2A 1.0 §3, §9, §11)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from dragoman.model import Role, Task, TaskState
from dragoman.model.operation import Operation
from dragoman.model.payload import ABSENT
from dragoman.protocol.client import (
    BY_REASON,
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
    named_reason,
    not_one,
    object_in,
    reading,
    task_path,
    text_of,
)
from dragoman.protocol.protojson import Fields
from dragoman.protocol.replies import Heard, Replies
from dragoman.protocol.v1_0.decode import STATE_NAMES, read_part
from dragoman.protocol.v1_0.encode import RESULTS

_VERSION = (("A2A-Version", "1.0"),)
_EXTENSIONS = "A2A-Extensions"

_REPLIES = Replies(
    Heard(
        states=dict([*STATE_NAMES.items(), *((int(state), state) for state in TaskState)]),
        roles={**{f"ROLE_{role.name}": role for role in Role}, **{int(role): role for role in Role}},
        part=read_part,
    )
)
_ANSWER = ("task", "message")
_STREAM = (*_ANSWER, "statusUpdate", "artifactUpdate")


def _read_item(fields: Fields) -> Item:
    """Read a StreamResponse.

    Raises:
        InvalidParams: it is none.
    """
    found = [name for name in _STREAM if fields.members.get(name) is not None]
    if len(found) != 1:
        not_one(found, "task, message, statusUpdate and artifactUpdate")
    member = fields.fields(found[0])
    if member is None:
        raise AssertionError("a member that is there is an object, or refused")
    match found[0]:
        case "task":
            return _REPLIES.task(member)
        case "message":
            return _REPLIES.message(member)
        case "statusUpdate":
            return _REPLIES.status_update(member)
        case _:
            return _REPLIES.artifact_update(member)


def _read_task(fields: Fields) -> Task:
    return _REPLIES.task(fields)


def _send_request(place: Place, outgoing: Outgoing, *, at_once: bool) -> dict[str, Any]:
    configuration: dict[str, Any] = {}
    if outgoing.accepted_output_modes:
        configuration["acceptedOutputModes"] = outgoing.accepted_output_modes
    if at_once:
        configuration["returnImmediately"] = True
    request: dict[str, Any] = {**_tenant(place), "message": RESULTS.message(outgoing.message)}
    if configuration:
        request["configuration"] = configuration
    if outgoing.metadata is not ABSENT:
        request["metadata"] = outgoing.metadata
    return request


def _tenant(place: Place) -> dict[str, Any]:
    return {"tenant": place.tenant} if place.tenant else {}


# ---------------------------------------------------------------------------------------------------------- JSON-RPC

_RPC = JsonRpcClient(_read_item, _VERSION, read_task=_read_task, read_answer=_read_item)


def _rpc_send(place: Place, outgoing: Outgoing, operation: Operation) -> Call:
    streams = operation.streams
    return _RPC.call(
        place,
        operation.value,
        _send_request(place, outgoing, at_once=not streams),
        outgoing.message.message_id,
        streams=streams,
        answers=True,
        further=listed(_EXTENSIONS, outgoing.extensions),
    )


def _rpc_task(place: Place, operation: Operation, task_id: str, **params: Any) -> Call:
    return _RPC.call(
        place,
        operation.value,
        {**_tenant(place), "id": task_id, **params},
        task_id,
        streams=operation.streams,
    )


# --------------------------------------------------------------------------------------------------------- HTTP+JSON


def _url(place: Place, path: str) -> str:
    tenant = f"/{quote(place.tenant, safe='')}" if place.tenant else ""
    return place.url.rstrip("/") + tenant + path


def _http_send(place: Place, outgoing: Outgoing, path: str, *, streams: bool) -> Call:
    return _HTTP.call(
        "POST",
        _url(place, path),
        _send_request(place, outgoing, at_once=not streams),
        answers=True,
        streams=streams,
        extensions=outgoing.extensions,
    )


def _http_event(data: bytes) -> Item:
    """Read an event; official servers tell of an error that comes late as an event that holds it alone."""
    return reading(_read_event, data)


def _read_event(fields: Fields) -> Item:
    error = fields.members.get("error")
    if isinstance(error, dict):
        raise _status_error(error, 500)
    return _read_item(fields)


def _http_refusal(status: int, body: bytes) -> RemoteRefusalError:
    error = object_in(body).get("error")
    return _status_error(error if isinstance(error, dict) else {}, status)


def _status_error(error: Mapping[str, Any], status: int) -> RemoteRefusalError:
    """Read a google.rpc.Status (A2A 1.0 §11.6)."""
    kind = named_reason(error.get("details")) or BY_REASON.get(text_of(error.get("reason")))
    if kind is None and isinstance(error.get("code"), int):
        status = error["code"]
    return RemoteRefusalError(kind or by_status(status), text_of(error.get("message")))


_HTTP = HttpJsonClient(
    read_answer=_read_item,
    read_task=_read_task,
    event=_http_event,
    refusal=_http_refusal,
    extensions=_EXTENSIONS,
    further=_VERSION,
)

CLIENT: Mapping[str, ClientBinding] = MappingProxyType(
    {
        JSON_RPC: ClientBinding(
            send=lambda place, outgoing: _rpc_send(place, outgoing, Operation.SEND_MESSAGE),
            stream=lambda place, outgoing: _rpc_send(place, outgoing, Operation.SEND_STREAMING_MESSAGE),
            get=lambda place, task_id, history: _rpc_task(
                place, Operation.GET_TASK, task_id, historyLength=history
            ),
            cancel=lambda place, task_id: _rpc_task(place, Operation.CANCEL_TASK, task_id),
            subscribe=lambda place, task_id: _rpc_task(place, Operation.SUBSCRIBE_TO_TASK, task_id),
        ),
        HTTP_JSON: ClientBinding(
            send=lambda place, outgoing: _http_send(place, outgoing, "/message:send", streams=False),
            stream=lambda place, outgoing: _http_send(place, outgoing, "/message:stream", streams=True),
            get=lambda place, task_id, history: _HTTP.call(
                "GET", f"{_url(place, task_path(task_id))}?historyLength={history}"
            ),
            cancel=lambda place, task_id: _HTTP.call(
                "POST", _url(place, task_path(task_id, ":cancel")), _tenant(place)
            ),
            subscribe=lambda place, task_id: _HTTP.call(
                "POST", _url(place, task_path(task_id, ":subscribe")), streams=True
            ),
        ),
    }
)
"""By binding, as cards name it."""
