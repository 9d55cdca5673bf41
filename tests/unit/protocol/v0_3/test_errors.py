"""Errors on the 0.3 wire: the names that its SDKs have for them, JSON-RPC codes, and problem documents."""

import inspect
import json
from http import HTTPStatus

import pytest

from dragoman.model import errors
from dragoman.model.errors import DragomanError, FieldViolation, InvalidParams
from dragoman.protocol.spec import Occasion
from dragoman.protocol.v0_3.errors import TABLE, encode_http, encode_jsonrpc, http_status, known

OCCASION = Occasion("/agents/demo/v1/message:send", "r-1")

# The standard's own rows (A2A 0.3 §8), those of 1.0 for errors that 0.3 does not name, and this server's.
EXPECTED = {
    "TaskNotFound": ("TaskNotFoundError", -32001, 404),
    "TaskNotCancelable": ("TaskNotCancelableError", -32002, 400),
    "PushNotificationNotSupported": ("PushNotificationNotSupportedError", -32003, 400),
    "UnsupportedOperation": ("UnsupportedOperationError", -32004, 400),
    "ContentTypeNotSupported": ("ContentTypeNotSupportedError", -32005, 400),
    "InvalidAgentResponse": ("InvalidAgentResponseError", -32006, 500),
    "ExtendedAgentCardNotConfigured": ("ExtendedAgentCardNotConfiguredError", -32007, 400),
    "ExtensionSupportRequired": ("ExtensionSupportRequiredError", -32008, 400),
    "VersionNotSupported": ("VersionNotSupportedError", -32009, 400),
    "MalformedJson": ("JSONParseError", -32700, 400),
    "InvalidRequest": ("InvalidRequestError", -32600, 400),
    "MethodNotFound": ("MethodNotFoundError", -32601, 404),
    "InvalidParams": ("InvalidParamsError", -32602, 400),
    "MessageIdConflict": ("InvalidParamsError", -32602, 409),
    "Unauthenticated": ("UnauthenticatedError", -32000, 401),
    "Forbidden": ("ForbiddenError", -32000, 403),
    "RateLimited": ("RateLimitedError", -32000, 429),
    "ObserverLimit": ("ObserverLimitError", -32000, 429),
    "ApprovalNotFound": ("ApprovalNotFoundError", -32000, 404),
    "ApprovalClosed": ("ApprovalClosedError", -32000, 409),
    "RemoteNotFound": ("RemoteNotFoundError", -32000, 404),
    "DelegationNotFound": ("DelegationNotFoundError", -32000, 404),
    "NotReconcilable": ("NotReconcilableError", -32000, 409),
    "EntryNotFound": ("EntryNotFoundError", -32000, 404),
    "EntryConflict": ("EntryConflictError", -32000, 409),
    "ResultTooLarge": ("ResultTooLargeError", -32603, 500),
    "ArtifactUnverified": ("ArtifactUnverifiedError", -32603, 500),
    "AgentNotFound": ("AgentNotFoundError", -32000, 404),
    "Misdirected": ("MisdirectedRequestError", -32000, 421),
    "MethodNotAllowed": ("MethodNotAllowedError", -32000, 405),
    "NotAcceptable": ("NotAcceptableError", -32000, 406),
    "RequestTimeout": ("RequestTimeoutError", -32000, 408),
    "BodyTooLarge": ("BodyTooLargeError", -32000, 413),
    "UnsupportedMediaType": ("ContentTypeNotSupportedError", -32005, 415),
    "QuotaExceeded": ("QuotaExceededError", -32000, 429),
    "Unavailable": ("UnavailableError", -32000, 503),
    "InternalError": ("InternalError", -32603, 500),
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
    if kind is errors.Unauthenticated:
        return errors.Unauthenticated("It is so.", invalid=True)
    if kind is errors.EntryNotFound:
        return errors.EntryNotFound("tenant", "t")
    if kind is errors.ObserverLimit:
        return errors.ObserverLimit()
    if kind is errors.TaskNotFound:
        return errors.TaskNotFound("t")
    if kind is errors.MethodNotAllowed:
        return errors.MethodNotAllowed("PUT", ["GET"])
    if kind is errors.InternalError:
        return errors.InternalError()
    return kind("It is so.")


KINDS = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, DragomanError) and name not in NEVER_ANSWERED
}


def test_every_error_that_can_be_answered_has_its_name_and_codes() -> None:
    assert set(KINDS) == set(EXPECTED)
    assert {kind.__name__ for kind in TABLE} == set(EXPECTED) - {"InternalError"}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_error_has_the_name_by_which_sdks_know_it(name: str) -> None:
    error = sample(KINDS[name])
    found = known(error)
    assert (found.name, found.code, found.status) == EXPECTED[name]
    assert http_status(error) == found.status


@pytest.mark.parametrize("name", EXPECTED)
def test_over_http_an_error_is_a_problem_document(name: str) -> None:
    error = sample(KINDS[name])
    kind, code, status = EXPECTED[name]
    reply = encode_http(error, OCCASION)
    assert (reply.status, reply.content_type) == (status, "application/problem+json")
    expected = {
        "type": kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "instance": OCCASION.path,
        "code": code,
        "message": error.message,
        "reason": error.reason,
        "trace_id": OCCASION.request_id,
    }
    if isinstance(error, InvalidParams):
        expected["fieldViolations"] = [{"field": "a.b[0]", "description": "is wrong"}]
    assert json.loads(reply.body) == expected


@pytest.mark.parametrize("name", EXPECTED)
def test_over_jsonrpc_an_error_has_its_details_in_data(name: str) -> None:
    error = sample(KINDS[name])
    response = json.loads(encode_jsonrpc(error))
    assert (response["code"], response["message"]) == (EXPECTED[name][1], error.message)
    info, *rest = response["data"]
    assert info == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": error.reason,
        "domain": "a2a-protocol.org",
        "metadata": dict(error.metadata),
    }
    assert [detail["@type"] for detail in rest] == (
        ["type.googleapis.com/google.rpc.BadRequest"] if isinstance(error, InvalidParams) else []
    )


def test_an_error_of_a_kind_not_in_the_table_shows_as_its_nearest_relative() -> None:
    class LaterConflict(errors.MessageIdConflict):
        pass

    class Later(errors.A2AError):
        pass

    assert known(LaterConflict([])) == TABLE[errors.MessageIdConflict]
    assert known(Later("x")).status == 500
    for error in (errors.Fenced("x"), errors.IllegalChange("x")):
        assert known(error).code == -32603


def test_texts_of_any_script_go_out_as_they_are() -> None:
    error = errors.UnsupportedOperation("größer\u2028\0")
    document = json.loads(encode_http(error, Occasion("/agents/é/%00", "r")).body)
    assert (document["detail"], document["instance"]) == ("größer\u2028\0", "/agents/é/%00")
