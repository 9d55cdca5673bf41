"""HTTP+JSON of A2A 0.3, in two dialects at three places.

Seed A's dialect has the JSON of the 0.3 schema with its `kind` members, and stands at the alias `/v1` and, for
requests that name no version, at the agent's base. Official 0.3 clients append `/v1` to the URL that a card gives
them and speak the ProtoJSON of the 0.3 proto, so that one stands at `/v1/v1`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.model.operation import GetExtendedCard, Operation, Request, SubscribeToTask
from dragoman.protocol.headers import Headers
from dragoman.protocol.media import JSON
from dragoman.protocol.parameters import Query, boolean, from_body, text
from dragoman.protocol.spec import Codec, Endpoint, HttpDialect, RouteTable
from dragoman.protocol.v0_3 import decode, decode_proto, push
from dragoman.protocol.v0_3.encode import CODEC
from dragoman.protocol.v0_3.encode_proto import Writer
from dragoman.protocol.v0_3.errors import encode_http

R = TypeVar("R", bound=Request)
Decode = Callable[[dict[str, Any], str], R]

ALIAS = "/v1"
OFFICIAL = "/v1/v1"
CARD = "/.well-known/agent-card.json"
CARD_ALONE = "/card"

_QUERY = Query(
    {
        "contextId": text,
        "status": text,
        "pageSize": text,
        "pageToken": text,
        "historyLength": text,
        "statusTimestampAfter": text,
        "includeArtifacts": boolean,
    }
)


def _body(operation: Operation, read: Decode[R]) -> Endpoint:
    return Endpoint(operation, lambda call: read(from_body(call), call.agent))


def _query(operation: Operation, read: Decode[R]) -> Endpoint:
    return Endpoint(operation, lambda call: read(_QUERY.read(call), call.agent))


def _both_ways(read: Decode[SubscribeToTask]) -> dict[str, Endpoint]:
    """Subscribe by POST, as the text of 0.3 has it, and by GET, as its proto has it."""
    subscribe = _body(Operation.SUBSCRIBE_TO_TASK, read)
    return {"POST": subscribe, "GET": subscribe}


_EXTENDED = {CARD_ALONE: {"GET": Endpoint(Operation.GET_EXTENDED_CARD, lambda call: GetExtendedCard())}}
"""What 0.3 asks for there is the extended card. An agent that declares none answers with its card."""

_PUSH = {
    "/tasks/{id}/pushNotificationConfigs": {
        "POST": Endpoint(Operation.CREATE_PUSH_CONFIG, push.decode_create),
        "GET": _query(Operation.LIST_PUSH_CONFIGS, push.decode_list),
    },
    "/tasks/{id}/pushNotificationConfigs/{pushNotificationConfigId}": {
        "GET": _query(Operation.GET_PUSH_CONFIG, push.decode_get),
        "DELETE": _query(Operation.DELETE_PUSH_CONFIG, push.decode_delete),
    },
}


def _kind_routes() -> RouteTable:
    send = {"POST": _body(Operation.SEND_MESSAGE, decode.decode_send)}
    stream = {"POST": _body(Operation.SEND_STREAMING_MESSAGE, decode.decode_send)}
    cancel = {"POST": _body(Operation.CANCEL_TASK, decode.decode_cancel)}
    subscribe = _both_ways(decode.decode_subscribe)
    return RouteTable(
        {
            "/message:send": send,
            "/messages:send": send,
            "/message:stream": stream,
            "/messages:stream": stream,
            "/tasks": {"GET": _query(Operation.LIST_TASKS, decode.decode_list)},
            "/tasks/{id}": {"GET": _query(Operation.GET_TASK, decode.decode_get)},
            "/tasks/{id}:cancel": cancel,
            "/tasks/{id}/cancel": cancel,
            "/tasks/{id}:subscribe": subscribe,
            "/tasks/{id}/subscribe": subscribe,
            **_EXTENDED,
            **_PUSH,
        }
    )


def _proto_routes(reader: decode_proto.Reader) -> RouteTable:
    return RouteTable(
        {
            "/message:send": {"POST": _body(Operation.SEND_MESSAGE, reader.decode_send)},
            "/message:stream": {"POST": _body(Operation.SEND_STREAMING_MESSAGE, reader.decode_send)},
            "/tasks/{id}": {"GET": _query(Operation.GET_TASK, decode_proto.decode_get)},
            "/tasks/{id}:cancel": {"POST": _body(Operation.CANCEL_TASK, decode_proto.decode_cancel)},
            "/tasks/{id}:subscribe": _both_ways(decode_proto.decode_subscribe),
            **_EXTENDED,
            **_PUSH,
        }
    )


def _dialect(
    mount: str,
    routes: RouteTable,
    codec: Codec,
    cards: tuple[str, ...],
    *,
    advertised: bool = False,
    choose: Callable[[Headers], HttpDialect | None] | None = None,
) -> HttpDialect:
    return HttpDialect(
        mount=mount,
        routes=routes,
        codec=codec,
        media_types=(JSON,),
        encode_error=encode_http,
        card_paths=cards,
        advertised=advertised,
        choose=choose,
    )


def _by_caller(headers: Headers) -> HttpDialect | None:
    """Tell Python SDKs by their HTTP library: nothing else in a request without a body gives them away."""
    agent = headers.get(b"user-agent")
    return _DOUBLED if agent is not None and agent.startswith(b"python-httpx/") else None


_KIND = _kind_routes()
_DOUBLED = _dialect(
    OFFICIAL,
    _proto_routes(decode_proto.Reader(doubled=True)),
    Writer(doubled=True).codec,
    (CARD_ALONE, CARD),
)

DIALECTS = (
    # The base's own card is everybody's, and has its own place.
    _dialect("", _KIND, CODEC, (CARD_ALONE,)),
    _dialect(ALIAS, _KIND, CODEC, (CARD_ALONE, CARD), advertised=True),
    _dialect(
        OFFICIAL,
        _proto_routes(decode_proto.Reader(doubled=False)),
        Writer(doubled=False).codec,
        (CARD_ALONE, CARD),
        choose=_by_caller,
    ),
)
