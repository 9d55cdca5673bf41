"""Errors in A2A 0.3: JSON-RPC codes (§8), and RFC 7807 problem documents over HTTP, for which 0.3 names no form.

A problem document has the members of RFC 7807 and, because official 0.3 clients look for them, the JSON-RPC `code`,
the `message`, and the error's class name as its `type`.
"""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.model import errors
from dragoman.model.errors import DragomanError
from dragoman.protocol.details import details, field_violations
from dragoman.protocol.media import PROBLEM_JSON
from dragoman.protocol.spec import ErrorReply, Occasion

_encode = msgspec.json.Encoder().encode


class Known(Struct, frozen=True):
    """How an error shows: the class that 0.3 SDKs know it as, its JSON-RPC code and its HTTP status."""

    name: str
    code: int
    status: int


_INTERNAL = Known("InternalError", -32603, 500)

TABLE: Mapping[type[DragomanError], Known] = MappingProxyType(
    {
        errors.TaskNotFound: Known("TaskNotFoundError", -32001, 404),
        errors.TaskNotCancelable: Known("TaskNotCancelableError", -32002, 400),
        errors.PushNotificationNotSupported: Known("PushNotificationNotSupportedError", -32003, 400),
        errors.UnsupportedOperation: Known("UnsupportedOperationError", -32004, 400),
        errors.ContentTypeNotSupported: Known("ContentTypeNotSupportedError", -32005, 400),
        errors.InvalidAgentResponse: Known("InvalidAgentResponseError", -32006, 500),
        # The name in 1.0, by which official clients of either generation know it; 0.3 put "Authenticated" before it.
        errors.ExtendedAgentCardNotConfigured: Known("ExtendedAgentCardNotConfiguredError", -32007, 400),
        errors.ExtensionSupportRequired: Known("ExtensionSupportRequiredError", -32008, 400),
        errors.VersionNotSupported: Known("VersionNotSupportedError", -32009, 400),
        errors.MalformedJson: Known("JSONParseError", -32700, 400),
        errors.InvalidRequest: Known("InvalidRequestError", -32600, 400),
        errors.MethodNotFound: Known("MethodNotFoundError", -32601, 404),
        errors.MessageIdConflict: Known("InvalidParamsError", -32602, 409),
        errors.InvalidParams: Known("InvalidParamsError", -32602, 400),
        errors.Unauthenticated: Known("UnauthenticatedError", -32000, 401),
        errors.Forbidden: Known("ForbiddenError", -32000, 403),
        errors.ObserverLimit: Known("ObserverLimitError", -32000, 429),
        errors.RateLimited: Known("RateLimitedError", -32000, 429),
        errors.AgentNotFound: Known("AgentNotFoundError", -32000, 404),
        errors.Misdirected: Known("MisdirectedRequestError", -32000, 421),
        errors.MethodNotAllowed: Known("MethodNotAllowedError", -32000, 405),
        errors.NotAcceptable: Known("NotAcceptableError", -32000, 406),
        errors.RequestTimeout: Known("RequestTimeoutError", -32000, 408),
        errors.BodyTooLarge: Known("BodyTooLargeError", -32000, 413),
        errors.UnsupportedMediaType: Known("ContentTypeNotSupportedError", -32005, 415),
        errors.QuotaExceeded: Known("QuotaExceededError", -32000, 429),
        errors.ApprovalNotFound: Known("ApprovalNotFoundError", -32000, 404),
        errors.ApprovalClosed: Known("ApprovalClosedError", -32000, 409),
        errors.RemoteNotFound: Known("RemoteNotFoundError", -32000, 404),
        errors.DelegationNotFound: Known("DelegationNotFoundError", -32000, 404),
        errors.NotReconcilable: Known("NotReconcilableError", -32000, 409),
        errors.EntryNotFound: Known("EntryNotFoundError", -32000, 404),
        errors.EntryConflict: Known("EntryConflictError", -32000, 409),
        errors.ResultTooLarge: Known("ResultTooLargeError", -32603, 500),
        errors.ArtifactUnverified: Known("ArtifactUnverifiedError", -32603, 500),
        errors.Unavailable: Known("UnavailableError", -32000, 503),
    }
)


def known(error: DragomanError) -> Known:
    """Return how an error shows: as the nearest class in the table does."""
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    return _INTERNAL


def encode_http(error: DragomanError, occasion: Occasion) -> ErrorReply:
    """Return an error as a problem document."""
    shown = known(error)
    document: dict[str, Any] = {
        "type": shown.name,
        "title": HTTPStatus(shown.status).phrase,
        "status": shown.status,
        "detail": error.message,
        "instance": occasion.path,
        "code": shown.code,
        "message": error.message,
        "reason": error.reason,
        "trace_id": occasion.request_id,
    }
    if isinstance(error, errors.InvalidParams):
        document["fieldViolations"] = field_violations(error)
    return ErrorReply(shown.status, PROBLEM_JSON, _encode(document))


def encode_jsonrpc(error: DragomanError) -> bytes:
    """Return an error as a JSON-RPC error object, its details in `data`."""
    return _encode({"code": known(error).code, "message": error.message, "data": details(error)})


def http_status(error: DragomanError) -> int:
    """Return the HTTP status of an error that is no JSON-RPC answer."""
    return known(error).status
