"""The HTTP+JSON binding of A2A 1.0 (§11): paths, query parameters, and where a request message comes from."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.model.errors import InvalidParams
from dragoman.model.operation import CapabilityRequest, Operation, Request
from dragoman.protocol.media import A2A_JSON, JSON
from dragoman.protocol.spec import Endpoint, HttpCall, HttpDialect, RouteTable
from dragoman.protocol.v1_0 import decode
from dragoman.protocol.v1_0.encode import CODEC
from dragoman.protocol.v1_0.errors import encode_http

R = TypeVar("R", bound=Request)


def _text(value: str) -> object:
    return value


def _boolean(value: str) -> object:
    return {"true": True, "false": False}.get(value, value)


def _number_or_name(value: str) -> object:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


_QUERY: dict[str, Callable[[str], object]] = {
    "tenant": _text,
    "contextId": _text,
    "status": _number_or_name,
    "pageSize": _text,
    "pageToken": _text,
    "historyLength": _text,
    "statusTimestampAfter": _text,
    "includeArtifacts": _boolean,
}
"""Query parameters and how each one becomes a JSON value; the last of several counts, unknown ones are ignored."""


_SNAKE = {re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name): name for name in _QUERY}


def _from_query(call: HttpCall) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for spelled, values in call.query.items():
        name = _SNAKE.get(spelled, spelled)
        convert = _QUERY.get(name)
        if convert is not None and values[-1] != "":
            if name in params:
                raise InvalidParams.of(name, "is given in both spellings")
            params[name] = convert(values[-1])
    return params | dict(call.variables)


def _from_body(call: HttpCall) -> dict[str, Any]:
    params = dict(call.body or {})
    for name, value in call.variables.items():
        if params.get(name) not in (None, value):
            raise InvalidParams.of(name, "must be the one in the path, or be left out")
        params[name] = value
    return params


def _body(read: Callable[[dict[str, Any], str], R]) -> Callable[[HttpCall], Request]:
    return lambda call: read(_from_body(call), call.agent)


def _query(read: Callable[[dict[str, Any], str], R]) -> Callable[[HttpCall], Request]:
    return lambda call: read(_from_query(call), call.agent)


def _capability(operation: Operation) -> Endpoint:
    return Endpoint(operation, lambda call: CapabilityRequest(operation=operation))


def _subscribe(call: HttpCall) -> Request:
    # By GET or by POST, with a body or without: the path says all that is needed.
    return decode.decode_subscribe(_from_query(call) | _from_body(call), call.agent)


_SUBSCRIBE = Endpoint(Operation.SUBSCRIBE_TO_TASK, _subscribe)

ROUTES = RouteTable(
    {
        "/message:send": {"POST": Endpoint(Operation.SEND_MESSAGE, _body(decode.decode_send))},
        "/message:stream": {"POST": Endpoint(Operation.SEND_STREAMING_MESSAGE, _body(decode.decode_send))},
        "/tasks": {"GET": Endpoint(Operation.LIST_TASKS, _query(decode.decode_list))},
        "/tasks/{id}": {"GET": Endpoint(Operation.GET_TASK, _query(decode.decode_get))},
        "/tasks/{id}:cancel": {"POST": Endpoint(Operation.CANCEL_TASK, _body(decode.decode_cancel))},
        "/tasks/{id}:subscribe": {"POST": _SUBSCRIBE, "GET": _SUBSCRIBE},
        "/tasks/{task_id}/pushNotificationConfigs": {
            "POST": _capability(Operation.CREATE_PUSH_CONFIG),
            "GET": _capability(Operation.LIST_PUSH_CONFIGS),
        },
        "/tasks/{task_id}/pushNotificationConfigs/{id}": {
            "GET": _capability(Operation.GET_PUSH_CONFIG),
            "DELETE": _capability(Operation.DELETE_PUSH_CONFIG),
        },
        "/extendedAgentCard": {"GET": _capability(Operation.GET_EXTENDED_CARD)},
    }
)

DIALECT = HttpDialect(
    mount="", routes=ROUTES, codec=CODEC, media_types=(JSON, A2A_JSON), encode_error=encode_http
)
