"""The HTTP+JSON binding of A2A 1.0 (§11): paths, query parameters, and where a request message comes from."""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from dragoman.model.operation import GetExtendedCard, Operation, Request
from dragoman.protocol.media import A2A_JSON, JSON
from dragoman.protocol.parameters import Query, boolean, from_body, number_or_name, text
from dragoman.protocol.spec import Endpoint, HttpCall, HttpDialect, RouteTable
from dragoman.protocol.v1_0 import decode
from dragoman.protocol.v1_0.encode import CODEC
from dragoman.protocol.v1_0.errors import encode_http, encode_http_1_0_0

R = TypeVar("R", bound=Request)

_QUERY = Query(
    {
        "tenant": text,
        "contextId": text,
        "status": number_or_name,
        "pageSize": text,
        "pageToken": text,
        "historyLength": text,
        "statusTimestampAfter": text,
        "includeArtifacts": boolean,
    }
)


def _body(read: Callable[[dict[str, Any], str], R]) -> Callable[[HttpCall], Request]:
    return lambda call: read(from_body(call), call.agent)


def _query(read: Callable[[dict[str, Any], str], R]) -> Callable[[HttpCall], Request]:
    return lambda call: read(_QUERY.read(call), call.agent)


def _subscribe(call: HttpCall) -> Request:
    # By GET or by POST, with a body or without: the path says all that is needed.
    return decode.decode_subscribe(_QUERY.read(call) | from_body(call), call.agent)


_SUBSCRIBE = Endpoint(Operation.SUBSCRIBE_TO_TASK, _subscribe)

ROUTES = RouteTable(
    {
        "/message:send": {"POST": Endpoint(Operation.SEND_MESSAGE, _body(decode.decode_send))},
        "/message:stream": {"POST": Endpoint(Operation.SEND_STREAMING_MESSAGE, _body(decode.decode_send))},
        "/tasks": {"GET": Endpoint(Operation.LIST_TASKS, _query(decode.decode_list))},
        "/tasks/{id}": {"GET": Endpoint(Operation.GET_TASK, _query(decode.decode_get))},
        "/tasks/{id}:cancel": {"POST": Endpoint(Operation.CANCEL_TASK, _body(decode.decode_cancel))},
        "/tasks/{id}:subscribe": {"POST": _SUBSCRIBE, "GET": _SUBSCRIBE},
        "/tasks/{taskId}/pushNotificationConfigs": {
            "POST": Endpoint(Operation.CREATE_PUSH_CONFIG, _body(decode.decode_create_push_config)),
            "GET": Endpoint(Operation.LIST_PUSH_CONFIGS, _query(decode.decode_list_push_configs)),
        },
        "/tasks/{taskId}/pushNotificationConfigs/{id}": {
            "GET": Endpoint(Operation.GET_PUSH_CONFIG, _query(decode.decode_get_push_config)),
            "DELETE": Endpoint(Operation.DELETE_PUSH_CONFIG, _query(decode.decode_delete_push_config)),
        },
        "/extendedAgentCard": {"GET": Endpoint(Operation.GET_EXTENDED_CARD, lambda call: GetExtendedCard())},
    }
)

DIALECT = HttpDialect(
    mount="", routes=ROUTES, codec=CODEC, media_types=(JSON, A2A_JSON), encode_error=encode_http
)

DIALECT_1_0_0 = structs.replace(DIALECT, encode_error=encode_http_1_0_0)
"""The same with the error statuses of 1.0.0, which kits and clients of that revision look for."""
