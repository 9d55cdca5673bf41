"""The JSON-RPC 2.0 envelope, the same for every version."""

from typing import Any

import msgspec
from msgspec import Struct

from dragoman.model.errors import InvalidParams, InvalidRequest
from dragoman.protocol.protojson import kind_of

_encode = msgspec.json.Encoder().encode


class Envelope(Struct, frozen=True):
    """A JSON-RPC request, but for its id (see `request_id`). Without one it is a notification."""

    method: str
    params: dict[str, Any]
    has_id: bool = True


def request_id(value: Any) -> bytes:
    """Return the id of a request as JSON text; `null` if it has none that may be echoed."""
    if isinstance(value, dict):
        found = value.get("id")
        if isinstance(found, (str, int)) and not isinstance(found, bool):
            try:
                return _encode(found)
            except UnicodeEncodeError:
                return b"null"
    return b"null"


def read_envelope(value: Any) -> Envelope:
    """Return the envelope in a parsed body.

    Raises:
        InvalidRequest: it is no JSON-RPC 2.0 request.
        InvalidParams: the params are no object.
    """
    if isinstance(value, list):
        raise InvalidRequest("Batches are not served; send each request by itself")
    if not isinstance(value, dict):
        raise InvalidRequest(f"A JSON-RPC request is an object, not {kind_of(value)}")
    if value.get("jsonrpc") != "2.0":
        raise InvalidRequest('jsonrpc must be "2.0"')
    identifier = value.get("id")
    if isinstance(identifier, bool) or not (identifier is None or isinstance(identifier, (str, int))):
        raise InvalidRequest(f"id must be a string, a whole number or null, not {kind_of(identifier)}")
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise InvalidRequest("method must be a string that is not empty")
    params = value.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise InvalidParams.of("params", f"must be an object, not {kind_of(params)}")
    return Envelope(method, params, "id" in value)


def notification() -> InvalidRequest:
    """Return the refusal of a request without an id: nobody could be told what became of it."""
    return InvalidRequest("Notifications are not served; give the request an id")


def result_frame(identifier: bytes, result: bytes) -> bytes:
    """Return the response to request `identifier` with `result`, both JSON text."""
    return b'{"jsonrpc":"2.0","id":' + identifier + b',"result":' + result + b"}"


def error_frame(identifier: bytes, error: bytes) -> bytes:
    """Return the response to request `identifier` with the error object `error`, both JSON text."""
    return b'{"jsonrpc":"2.0","id":' + identifier + b',"error":' + error + b"}"
