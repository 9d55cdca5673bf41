"""Errors in A2A 1.0: JSON-RPC codes, HTTP statuses and google.rpc names of revision 1.0.1 (§5.4, §9.5, §11.6)."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from dragoman.model import errors
from dragoman.model.errors import DragomanError
from dragoman.protocol.details import details
from dragoman.protocol.media import JSON
from dragoman.protocol.spec import ErrorReply, Occasion

_encode = msgspec.json.Encoder().encode


class Codes(Struct, frozen=True):
    """How an error shows on each binding."""

    jsonrpc: int
    http: int
    status: str


_INTERNAL = Codes(-32603, 500, "INTERNAL")

TABLE: Mapping[type[DragomanError], Codes] = MappingProxyType(
    {
        errors.TaskNotFound: Codes(-32001, 404, "NOT_FOUND"),
        errors.TaskNotCancelable: Codes(-32002, 400, "FAILED_PRECONDITION"),
        errors.PushNotificationNotSupported: Codes(-32003, 400, "FAILED_PRECONDITION"),
        errors.UnsupportedOperation: Codes(-32004, 400, "FAILED_PRECONDITION"),
        errors.ContentTypeNotSupported: Codes(-32005, 400, "INVALID_ARGUMENT"),
        errors.InvalidAgentResponse: Codes(-32006, 500, "INTERNAL"),
        errors.ExtendedAgentCardNotConfigured: Codes(-32007, 400, "FAILED_PRECONDITION"),
        errors.ExtensionSupportRequired: Codes(-32008, 400, "FAILED_PRECONDITION"),
        errors.VersionNotSupported: Codes(-32009, 400, "FAILED_PRECONDITION"),
        errors.MalformedJson: Codes(-32700, 400, "INVALID_ARGUMENT"),
        errors.InvalidRequest: Codes(-32600, 400, "INVALID_ARGUMENT"),
        errors.MethodNotFound: Codes(-32601, 404, "NOT_FOUND"),
        errors.MessageIdConflict: Codes(-32602, 409, "ALREADY_EXISTS"),
        errors.InvalidParams: Codes(-32602, 400, "INVALID_ARGUMENT"),
        errors.Unauthenticated: Codes(-32000, 401, "UNAUTHENTICATED"),
        errors.Forbidden: Codes(-32000, 403, "PERMISSION_DENIED"),
        errors.ObserverLimit: Codes(-32000, 429, "RESOURCE_EXHAUSTED"),
        errors.RateLimited: Codes(-32000, 429, "RESOURCE_EXHAUSTED"),
        errors.AgentNotFound: Codes(-32000, 404, "NOT_FOUND"),
        errors.Misdirected: Codes(-32000, 421, "PERMISSION_DENIED"),
        errors.MethodNotAllowed: Codes(-32000, 405, "UNIMPLEMENTED"),
        errors.NotAcceptable: Codes(-32000, 406, "INVALID_ARGUMENT"),
        errors.RequestTimeout: Codes(-32000, 408, "DEADLINE_EXCEEDED"),
        errors.BodyTooLarge: Codes(-32000, 413, "RESOURCE_EXHAUSTED"),
        errors.UnsupportedMediaType: Codes(-32005, 415, "INVALID_ARGUMENT"),
        errors.QuotaExceeded: Codes(-32000, 429, "RESOURCE_EXHAUSTED"),
        errors.ApprovalNotFound: Codes(-32000, 404, "NOT_FOUND"),
        errors.ApprovalClosed: Codes(-32000, 409, "FAILED_PRECONDITION"),
        errors.RemoteNotFound: Codes(-32000, 404, "NOT_FOUND"),
        errors.DelegationNotFound: Codes(-32000, 404, "NOT_FOUND"),
        errors.NotReconcilable: Codes(-32000, 409, "FAILED_PRECONDITION"),
        errors.EntryNotFound: Codes(-32000, 404, "NOT_FOUND"),
        errors.EntryConflict: Codes(-32000, 409, "FAILED_PRECONDITION"),
        errors.ResultTooLarge: Codes(-32603, 500, "INTERNAL"),
        errors.ArtifactUnverified: Codes(-32603, 500, "DATA_LOSS"),
        errors.Unavailable: Codes(-32000, 503, "UNAVAILABLE"),
    }
)


TABLE_1_0_0: Mapping[type[DragomanError], Codes] = MappingProxyType(
    {
        **TABLE,
        errors.TaskNotCancelable: Codes(-32002, 409, "FAILED_PRECONDITION"),
        errors.PushNotificationNotSupported: Codes(-32003, 400, "UNIMPLEMENTED"),
        errors.UnsupportedOperation: Codes(-32004, 400, "UNIMPLEMENTED"),
        errors.ContentTypeNotSupported: Codes(-32005, 415, "INVALID_ARGUMENT"),
        errors.InvalidAgentResponse: Codes(-32006, 502, "INTERNAL"),
        errors.VersionNotSupported: Codes(-32009, 400, "UNIMPLEMENTED"),
    }
)
"""The same of revision 1.0.0 (§5.4), where six errors have another HTTP status or name."""


def codes(error: DragomanError, table: Mapping[type[DragomanError], Codes] = TABLE) -> Codes:
    """Return the codes of an error: those of the nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in table:
            return table[kind]
    return _INTERNAL


def encode_http(error: DragomanError, occasion: Occasion) -> ErrorReply:
    """Return an error as a google.rpc.Status document, which says nothing of the occasion."""
    return _status(error, codes(error))


def encode_http_1_0_0(error: DragomanError, occasion: Occasion) -> ErrorReply:
    """Return an error as `encode_http` does, with the status and name of revision 1.0.0."""
    return _status(error, codes(error, TABLE_1_0_0))


def _status(error: DragomanError, known: Codes) -> ErrorReply:
    document = {
        "error": {
            "code": known.http,
            "status": known.status,
            "message": error.message,
            "details": details(error),
        }
    }
    return ErrorReply(known.http, JSON, _encode(document))


def encode_jsonrpc(error: DragomanError) -> bytes:
    """Return an error as a JSON-RPC error object, its details in `data`."""
    return _encode({"code": codes(error).jsonrpc, "message": error.message, "data": details(error)})


def http_status(error: DragomanError) -> int:
    """Return the HTTP status of an error that is no JSON-RPC answer."""
    return codes(error).http
