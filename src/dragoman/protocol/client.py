"""The other side of the wire: calling agents of other people. What a version's `client` module is made of; pure.

A binding makes a `Call` of what is wanted. Whoever sends it hands the reply back to the call, which reads it into
the model: a Task, a Message, or what a stream tells of a task.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from dragoman.model import ArtifactChunk, Message, StatusChange, Task, errors
from dragoman.model.errors import DragomanError, InvalidParams, MalformedJson
from dragoman.model.payload import ABSENT
from dragoman.protocol.media import EVENT_STREAM, JSON
from dragoman.protocol.protojson import Fields, kind_of, parse

_to_json = msgspec.json.Encoder().encode

JSON_RPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"


class Told(Struct, frozen=True):
    """What a stream tells of a task: the ids that the remote agent has for it, and what happened.

    `at` is when, by the remote agent's own clock, in milliseconds since 1970 UTC; 0 if it does not say.
    """

    task_id: str
    context_id: str
    change: StatusChange | ArtifactChunk
    at: int = 0


Item = Task | Message | Told


class NotA2AError(Exception):
    """A reply is not what the protocol says; the message says in what. It holds nothing that was received."""


class RemoteRefusalError(Exception):
    """The remote agent answered with an error.

    Attributes:
        kind: which one, as a class of the error tree.
        message: what it says, in its own words.
    """

    def __init__(self, kind: type[DragomanError], message: str) -> None:
        super().__init__(kind.reason)
        self.kind = kind
        self.message = message


class Place(Struct, frozen=True):
    """Where a remote agent answers, and the tenant that requests have to name, if any (A2A 1.0 §4.4.6)."""

    url: str
    tenant: str = ""


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message to send, and what goes with it. `extensions` are the URIs to activate."""

    message: Message
    accepted_output_modes: tuple[str, ...] = ()
    metadata: Raw = ABSENT
    extensions: tuple[str, ...] = ()


class Call(Struct, frozen=True, kw_only=True):
    """A request over HTTP, and how its reply is read.

    `reply` reads the body of a success, `event` the data of one event of a stream, and `refusal` an HTTP status that is
    no success with its body. The first two raise NotA2AError and RemoteRefusalError.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    reply: Callable[[bytes], Item]
    event: Callable[[bytes], Item]
    refusal: Callable[[int, bytes], RemoteRefusalError]


class ClientBinding(Struct, frozen=True, kw_only=True):
    """How a version is called over one binding.

    `send` returns at once with a task that is not finished, if the remote agent does as it is asked; `stream` follows
    it. `get` asks for as much of the history as its number says. A `last_resort` is taken only where a card offers
    nothing else in that version.
    """

    send: Callable[[Place, Outgoing], Call]
    stream: Callable[[Place, Outgoing], Call]
    get: Callable[[Place, str, int], Call]
    cancel: Callable[[Place, str], Call]
    subscribe: Callable[[Place, str], Call]
    last_resort: bool = False


def headers(
    *, streams: bool, has_body: bool, further: tuple[tuple[str, str], ...] = ()
) -> tuple[tuple[str, str], ...]:
    """Return the headers of a call."""
    own = (("Accept", EVENT_STREAM if streams else JSON),)
    return own + ((("Content-Type", JSON),) if has_body else ()) + further


def listed(name: str, uris: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the header that activates extensions, if there are any."""
    return ((name, ", ".join(uris)),) if uris else ()


def read_object(body: bytes) -> Fields:
    """Return the JSON object in a body.

    Raises:
        NotA2AError: there is none.
    """
    try:
        value = parse(body).check()
    except (MalformedJson, InvalidParams) as error:
        raise NotA2AError(_plain(error)) from None
    if not isinstance(value, dict):
        raise NotA2AError(f"the reply is {kind_of(value)}, not an object")
    return Fields(value)


def reading(read: Callable[[Fields], Item], body: bytes) -> Item:
    """Return what `read` makes of the object in a body.

    Raises:
        NotA2AError: the object is not what it should be.
        RemoteRefusalError: as `read`.
    """
    return checked(read, read_object(body))


def checked(read: Callable[[Fields], Item], fields: Fields) -> Item:
    """Return what `read` makes of an object.

    Raises:
        NotA2AError, RemoteRefusalError: as `reading`.
    """
    try:
        return read(fields)
    except InvalidParams as error:
        raise NotA2AError(_plain(error)) from None


def _plain(error: MalformedJson | InvalidParams) -> str:
    """Return what is wrong by its place and kind alone: a key of the other side's choosing is not repeated."""
    if isinstance(error, InvalidParams):
        first = error.violations[0]
        return f"a member of the reply {first.description[:120]}"
    return "the reply is no JSON"


# ------------------------------------------------------------------------------------------------------------ errors

BY_CODE: Mapping[int, type[DragomanError]] = MappingProxyType(
    {
        -32001: errors.TaskNotFound,
        -32002: errors.TaskNotCancelable,
        -32003: errors.PushNotificationNotSupported,
        -32004: errors.UnsupportedOperation,
        -32005: errors.ContentTypeNotSupported,
        -32006: errors.InvalidAgentResponse,
        -32007: errors.ExtendedAgentCardNotConfigured,
        -32008: errors.ExtensionSupportRequired,
        -32009: errors.VersionNotSupported,
        -32700: errors.MalformedJson,
        -32600: errors.InvalidRequest,
        -32601: errors.MethodNotFound,
        -32602: errors.InvalidParams,
    }
)
"""Errors by their JSON-RPC codes, the same in both generations (A2A 1.0 §5.4, A2A 0.3 §8)."""

BY_STATUS: Mapping[int, type[DragomanError]] = MappingProxyType(
    {
        400: errors.InvalidRequest,
        401: errors.Unauthenticated,
        403: errors.Forbidden,
        404: errors.MethodNotFound,
        405: errors.MethodNotAllowed,
        406: errors.NotAcceptable,
        408: errors.RequestTimeout,
        413: errors.BodyTooLarge,
        415: errors.UnsupportedMediaType,
        422: errors.InvalidParams,
        429: errors.RateLimited,
        503: errors.Unavailable,
    }
)
"""Errors by the HTTP status alone, where nothing else tells."""

_NAMED: tuple[type[DragomanError], ...] = (*BY_STATUS.values(), *BY_CODE.values(), errors.MessageIdConflict)

BY_REASON: Mapping[str, type[DragomanError]] = MappingProxyType({kind.reason: kind for kind in _NAMED})
"""Errors by their reasons (A2A 1.0 §5.4, `ErrorInfo.reason`)."""


def by_status(status: int, table: Mapping[int, type[DragomanError]] = BY_STATUS) -> type[DragomanError]:
    """Return the error that an HTTP status alone tells of."""
    return table.get(status, errors.InternalError if status >= 500 else errors.InvalidRequest)


def text_of(value: Any) -> str:
    """Return a text in an error of somebody else; empty if it is none."""
    return value if isinstance(value, str) else ""


def object_in(body: bytes) -> dict[str, Any]:
    """Return the object in a body that ought to be an error; empty if it is none."""
    try:
        value = parse(body).value
    except MalformedJson:
        return {}
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------------------------------------------- JSON-RPC


class JsonRpcClient:
    """JSON-RPC, the same for every version but for names and values."""

    def __init__(
        self,
        read: Callable[[Fields], Item],
        further: tuple[tuple[str, str], ...] = (),
        *,
        read_task: Callable[[Fields], Item],
        read_answer: Callable[[Fields], Item],
    ) -> None:
        """Prepare to call.

        Args:
            read: reads one result of a stream.
            further: headers of every call.
            read_task: reads the result of getting or cancelling a task.
            read_answer: reads the result of a send.
        """
        self._read = read
        self._further = further
        self._read_task = read_task
        self._read_answer = read_answer

    def call(
        self,
        place: Place,
        method: str,
        params: dict[str, Any],
        identifier: str,
        *,
        streams: bool = False,
        answers: bool = False,
        further: tuple[tuple[str, str], ...] = (),
    ) -> Call:
        """Return a call; `answers` if what comes back is the answer to a send."""
        read = self._read_answer if answers else self._read_task
        request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
        return Call(
            method="POST",
            url=place.url,
            headers=headers(streams=streams, has_body=True, further=(*self._further, *further)),
            body=_to_json(request),
            reply=lambda body: _result(body, identifier, read),
            event=lambda body: _result(body, identifier, self._read),
            refusal=_jsonrpc_refusal,
        )


def _result(body: bytes, identifier: str, read: Callable[[Fields], Item]) -> Item:
    response = read_object(body)
    error = response.members.get("error")
    if isinstance(error, dict):
        raise _jsonrpc_error(error)
    if response.members.get("id") != identifier:
        raise NotA2AError("the reply is to another request: its id is not the one that was sent")
    result = response.members.get("result")
    if not isinstance(result, dict):
        raise NotA2AError(f"the result is {kind_of(result)}, not an object")
    return checked(read, Fields(result, "result"))


def _jsonrpc_error(error: dict[str, Any]) -> RemoteRefusalError:
    code = error.get("code")
    kind = BY_CODE.get(code, errors.InternalError) if isinstance(code, int) else errors.InternalError
    named = named_reason(error.get("data"))
    if named is not None and (kind in (errors.InternalError, errors.InvalidParams) or code == -32000):
        kind = named
    return RemoteRefusalError(kind, text_of(error.get("message")))


def named_reason(details: Any) -> type[DragomanError] | None:
    """Return the error that google.rpc details name by a reason, if they name one."""
    for detail in details if isinstance(details, list) else ():
        reason = detail.get("reason") if isinstance(detail, dict) else None
        if isinstance(reason, str) and reason in BY_REASON:
            return BY_REASON[reason]
    return None


def _jsonrpc_refusal(status: int, body: bytes) -> RemoteRefusalError:
    error = object_in(body).get("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        told = _jsonrpc_error(error)
        if told.kind is not errors.InternalError or status == 200:
            return told
        return RemoteRefusalError(by_status(status), told.message)
    return RemoteRefusalError(by_status(status), "")


# --------------------------------------------------------------------------------------------------------- HTTP+JSON


class HttpJsonClient(Struct, frozen=True, kw_only=True):
    """HTTP+JSON, the same for every version but for names and values.

    `read_answer` reads the answer to a send, `read_task` that to anything else, `event` the data of an event, and
    `refusal` a status that is no success with its body. `further` are headers of every call, and `extensions` is the
    name of the one that activates extensions.
    """

    read_answer: Callable[[Fields], Item]
    read_task: Callable[[Fields], Item]
    event: Callable[[bytes], Item]
    refusal: Callable[[int, bytes], RemoteRefusalError]
    extensions: str
    further: tuple[tuple[str, str], ...] = ()

    def call(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None = None,
        *,
        answers: bool = False,
        streams: bool = False,
        extensions: tuple[str, ...] = (),
    ) -> Call:
        """Return a call; `answers` if what comes back is the answer to a send."""
        read = self.read_answer if answers else self.read_task
        return Call(
            method=method,
            url=url,
            headers=headers(
                streams=streams,
                has_body=body is not None,
                further=(*self.further, *listed(self.extensions, extensions)),
            ),
            body=b"" if body is None else _to_json(body),
            reply=lambda found: reading(read, found),
            event=self.event,
            refusal=self.refusal,
        )


def task_path(task_id: str, action: str = "") -> str:
    """Return where a task is, or what is done with it, below an agent's base."""
    return f"/tasks/{quote(task_id, safe='')}{action}"


def not_one(found: list[str], names: str) -> NoReturn:
    """Refuse an object that has not exactly one of some members.

    Raises:
        InvalidParams: always.
    """
    has = " and ".join(found) if found else "none of them"
    raise InvalidParams.of("", f"must have exactly one of {names}, but has {has}")
