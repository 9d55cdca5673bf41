"""Errors on the 1.0 wire have the codes of revision 1.0.1."""

import inspect
import json

import pytest

from dragoman.model import errors
from dragoman.model.errors import DragomanError, FieldViolation, InvalidParams
from dragoman.protocol.spec import Occasion
from dragoman.protocol.v1_0.errors import (
    TABLE,
    TABLE_1_0_0,
    codes,
    encode_http,
    encode_http_1_0_0,
    encode_jsonrpc,
    http_status,
)

OCCASION = Occasion("/agents/demo/message:send", "r-1")

# The standard's own rows (A2A 1.0.1 §5.4, §9.5), and this server's for what the standard leaves open.
EXPECTED = {
    "TaskNotFound": (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    "TaskNotCancelable": (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    "PushNotificationNotSupported": (-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    "UnsupportedOperation": (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    "ContentTypeNotSupported": (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    "InvalidAgentResponse": (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    "ExtendedAgentCardNotConfigured": (
        -32007,
        400,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    "ExtensionSupportRequired": (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
    "VersionNotSupported": (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    "MalformedJson": (-32700, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    "InvalidRequest": (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    "MethodNotFound": (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
    "InvalidParams": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "MessageIdConflict": (-32602, 409, "ALREADY_EXISTS", "MESSAGE_ID_CONFLICT"),
    "Unauthenticated": (-32000, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"),
    "Forbidden": (-32000, 403, "PERMISSION_DENIED", "INSUFFICIENT_SCOPE"),
    "RateLimited": (-32000, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED"),
    "ObserverLimit": (-32000, 429, "RESOURCE_EXHAUSTED", "OBSERVER_LIMIT"),
    "ApprovalNotFound": (-32000, 404, "NOT_FOUND", "APPROVAL_NOT_FOUND"),
    "ApprovalClosed": (-32000, 409, "FAILED_PRECONDITION", "APPROVAL_CLOSED"),
    "RemoteNotFound": (-32000, 404, "NOT_FOUND", "REMOTE_NOT_FOUND"),
    "DelegationNotFound": (-32000, 404, "NOT_FOUND", "DELEGATION_NOT_FOUND"),
    "NotReconcilable": (-32000, 409, "FAILED_PRECONDITION", "NOT_RECONCILABLE"),
    "EntryNotFound": (-32000, 404, "NOT_FOUND", "ENTRY_NOT_FOUND"),
    "EntryConflict": (-32000, 409, "FAILED_PRECONDITION", "ENTRY_CONFLICT"),
    "ResultTooLarge": (-32603, 500, "INTERNAL", "RESULT_TOO_LARGE"),
    "ArtifactUnverified": (-32603, 500, "DATA_LOSS", "ARTIFACT_UNVERIFIED"),
    "AgentNotFound": (-32000, 404, "NOT_FOUND", "AGENT_NOT_FOUND"),
    "Misdirected": (-32000, 421, "PERMISSION_DENIED", "MISDIRECTED_REQUEST"),
    "MethodNotAllowed": (-32000, 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"),
    "NotAcceptable": (-32000, 406, "INVALID_ARGUMENT", "NOT_ACCEPTABLE"),
    "RequestTimeout": (-32000, 408, "DEADLINE_EXCEEDED", "REQUEST_TIMEOUT"),
    "BodyTooLarge": (-32000, 413, "RESOURCE_EXHAUSTED", "BODY_TOO_LARGE"),
    "UnsupportedMediaType": (-32005, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    "QuotaExceeded": (-32000, 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
    "Unavailable": (-32000, 503, "UNAVAILABLE", "UNAVAILABLE"),
    "InternalError": (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
}
# Groups, and what is told to writers of runs alone: none of these is ever an answer.
NEVER_ANSWERED = {
    "DragomanError",
    "A2AError",
    "RequestError",
    "TransportError",
    "RunError",
    "IllegalChange",
    "Fenced",
}


def sample(kind: type[DragomanError]) -> DragomanError:
    if issubclass(kind, InvalidParams):
        return kind([FieldViolation("a.b[0]", "is wrong")])
    if kind is errors.EntryNotFound:
        return errors.EntryNotFound("tenant", "t")
    if kind is errors.ObserverLimit:
        return errors.ObserverLimit()
    if kind is errors.TaskNotFound:
        return errors.TaskNotFound("t")
    if kind is errors.MethodNotAllowed:
        return errors.MethodNotAllowed("PUT", ["GET"])
    if kind is errors.Unauthenticated:
        return errors.Unauthenticated("It is so.", invalid=True)
    if kind is errors.InternalError:
        return errors.InternalError()
    return kind("It is so.")


KINDS = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, DragomanError) and name not in NEVER_ANSWERED
}


def test_every_error_that_can_be_answered_has_its_codes() -> None:
    assert set(KINDS) == set(EXPECTED)
    assert {kind.__name__ for kind in TABLE} >= set(EXPECTED) - {"InternalError"}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_error_has_the_codes_of_the_standard(name: str) -> None:
    error = sample(KINDS[name])
    found = codes(error)
    assert (found.jsonrpc, found.http, found.status, error.reason) == EXPECTED[name]
    assert http_status(error) == found.http


@pytest.mark.parametrize("name", EXPECTED)
def test_both_bindings_tell_the_same_error(name: str) -> None:
    error = sample(KINDS[name])
    code, http, status, reason = EXPECTED[name]
    reply = encode_http(error, OCCASION)
    document = json.loads(reply.body)["error"]
    assert (reply.status, reply.content_type) == (http, "application/json")
    assert (document["code"], document["status"], document["message"]) == (http, status, error.message)
    response = json.loads(encode_jsonrpc(error))
    assert (response["code"], response["message"]) == (code, error.message)
    assert response["data"] == document["details"]
    info, *rest = document["details"]
    assert info == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": dict(error.metadata),
    }
    assert [detail["@type"] for detail in rest] == (
        ["type.googleapis.com/google.rpc.BadRequest"] if isinstance(error, InvalidParams) else []
    )


def test_an_error_of_a_kind_not_in_the_table_has_the_codes_of_its_nearest_relative() -> None:
    class LaterConflict(errors.MessageIdConflict):
        pass

    class Later(errors.A2AError):
        pass

    assert codes(LaterConflict([])) == TABLE[errors.MessageIdConflict]
    assert codes(Later("x")).http == 500


def test_what_only_writers_of_runs_are_told_would_be_an_internal_error() -> None:
    for error in (errors.Fenced("x"), errors.IllegalChange("x")):
        assert codes(error).jsonrpc == -32603


def test_texts_of_any_script_go_out_as_they_are() -> None:
    error = errors.UnsupportedOperation("größer\u2028\0", metadata={"a": "ü"})
    document = json.loads(encode_http(error, OCCASION).body)
    assert document["error"]["message"] == "größer\u2028\0"
    assert document["error"]["details"][0]["metadata"] == {"a": "ü"}


# The rows of the standard's revision 1.0.0 (§5.4) that 1.0.1 has changed: HTTP status, and google.rpc name.
BEFORE = {
    "TaskNotCancelable": (409, "FAILED_PRECONDITION"),
    "PushNotificationNotSupported": (400, "UNIMPLEMENTED"),
    "UnsupportedOperation": (400, "UNIMPLEMENTED"),
    "ContentTypeNotSupported": (415, "INVALID_ARGUMENT"),
    "InvalidAgentResponse": (502, "INTERNAL"),
    "VersionNotSupported": (400, "UNIMPLEMENTED"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_error_has_the_codes_of_1_0_0_where_they_are_asked_for(name: str) -> None:
    code, status, word, _ = EXPECTED[name]
    before = codes(sample(KINDS[name]), TABLE_1_0_0)
    assert (before.jsonrpc, before.http, before.status) == (code, *BEFORE.get(name, (status, word)))


def test_a_document_of_1_0_0_has_its_status_and_is_the_same_otherwise() -> None:
    error = errors.TaskNotCancelable("It is finished")
    now, before = encode_http(error, OCCASION), encode_http_1_0_0(error, OCCASION)
    assert (now.status, before.status, now.content_type) == (400, 409, before.content_type)
    told, told_before = json.loads(now.body)["error"], json.loads(before.body)["error"]
    assert told_before == {**told, "code": 409}
