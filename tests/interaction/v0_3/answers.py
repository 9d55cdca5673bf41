"""Replies of 0.3: results in either form, and refusals as problem documents or JSON-RPC errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tests.interaction.answers import BAD_REQUEST, DOMAIN, ERROR_INFO, check_negotiated, check_outside
from tests.interaction.v0_3.dialects import Dialect, Json

PROBLEM = "application/problem+json"
STREAMED = "text/event-stream"


@dataclass(frozen=True)
class Refusal:
    """How one kind of error shows: the class that SDKs know it by, its reason, HTTP status and JSON-RPC code.

    `transport` errors keep their HTTP status over JSON-RPC, with a null id unless the envelope was read before.
    """

    name: str
    reason: str
    http: int
    code: int
    transport: bool = False


TASK_NOT_FOUND = Refusal("TaskNotFoundError", "TASK_NOT_FOUND", 404, -32001)
NOT_CANCELABLE = Refusal("TaskNotCancelableError", "TASK_NOT_CANCELABLE", 400, -32002)
NO_PUSH = Refusal("PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED", 400, -32003)
UNSUPPORTED = Refusal("UnsupportedOperationError", "UNSUPPORTED_OPERATION", 400, -32004)
PART_TYPE = Refusal("ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED", 400, -32005)
BAD_AGENT = Refusal("InvalidAgentResponseError", "INVALID_AGENT_RESPONSE", 500, -32006)
EXTENSION = Refusal("ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED", 400, -32008)
MALFORMED = Refusal("JSONParseError", "INVALID_REQUEST", 400, -32700)
ENVELOPE = Refusal("InvalidRequestError", "INVALID_REQUEST", 400, -32600)
NO_METHOD = Refusal("MethodNotFoundError", "METHOD_NOT_FOUND", 404, -32601)
PARAMS = Refusal("InvalidParamsError", "INVALID_PARAMS", 400, -32602)
CONFLICT = Refusal("InvalidParamsError", "MESSAGE_ID_CONFLICT", 409, -32602)
NO_AGENT = Refusal("AgentNotFoundError", "AGENT_NOT_FOUND", 404, -32000, transport=True)
NOT_ALLOWED = Refusal("MethodNotAllowedError", "METHOD_NOT_ALLOWED", 405, -32000, transport=True)
NOT_ACCEPTABLE = Refusal("NotAcceptableError", "NOT_ACCEPTABLE", 406, -32000, transport=True)
TIMEOUT = Refusal("RequestTimeoutError", "REQUEST_TIMEOUT", 408, -32000, transport=True)
TOO_LARGE = Refusal("BodyTooLargeError", "BODY_TOO_LARGE", 413, -32000, transport=True)
BODY_TYPE = Refusal("ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED", 415, -32005, transport=True)
FULL = Refusal("QuotaExceededError", "QUOTA_EXCEEDED", 429, -32000)
UNAVAILABLE = Refusal("UnavailableError", "UNAVAILABLE", 503, -32000)

_MEMBERS = {"type", "title", "status", "detail", "instance", "code", "message", "reason", "trace_id"}


@dataclass(frozen=True)
class Reply:
    """One whole reply: `path` is the one that was asked, `dialect` reads results; header names are in lower case."""

    binding: str
    path: str
    dialect: Dialect
    operation: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body read as JSON."""
        return json.loads(self.body)

    @property
    def content_type(self) -> str:
        """The media type without parameters."""
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def result(self) -> Any:
        """The result of a success as it came; over JSON-RPC, what the envelope holds."""
        assert (self.status, self.content_type) == (200, "application/json"), self
        check_negotiated(self.headers, "0.3")
        document = self.json()
        if self.binding == "jsonrpc":
            assert set(document) == {"jsonrpc", "id", "result"}, document
            assert document["jsonrpc"] == "2.0"
            return document["result"]
        return document

    @property
    def value(self) -> Json:
        """The Task or Message of a success, in the form with kinds."""
        read = self.dialect.answer if self.operation == "SendMessage" else self.dialect.task
        return read(self.result)

    @property
    def is_refused(self) -> bool:
        """Whether it is an error of some kind."""
        return self.status != 200 or (self.binding == "jsonrpc" and "error" in self.json())

    @property
    def is_replay(self) -> bool:
        """Whether the message had been accepted before."""
        assert self.headers.get("idempotent-replayed") in (None, "true")
        return "idempotent-replayed" in self.headers


def refused(
    reply: Reply, refusal: Refusal, *, fields: Sequence[str] = (), identifier: Any = None
) -> Mapping[str, Any]:
    """Check the whole form of a refusal and return it: the problem document, or the JSON-RPC error.

    `fields` are the wrong fields that it must name, in order. `identifier` is the JSON-RPC id that must come back.
    """
    check_negotiated(reply.headers, "0.3")
    check_outside(reply.body)
    if reply.binding == "jsonrpc":
        return check_error(reply, refusal, fields, identifier)
    assert (reply.status, reply.content_type) == (refusal.http, PROBLEM), reply
    return check_problem(reply.json(), reply, refusal, fields)


def check_problem(
    document: Any, reply: Reply, refusal: Refusal, fields: Sequence[str] = ()
) -> Mapping[str, Any]:
    """Check a problem document (RFC 7807), with the members that official clients look for."""
    wrong = document.get("fieldViolations")
    assert set(document) - {"fieldViolations"} == _MEMBERS, document
    expected = {
        "type": refusal.name,
        "title": HTTPStatus(refusal.http).phrase,
        "status": refusal.http,
        "instance": reply.path,
        "code": refusal.code,
        "reason": refusal.reason,
        "trace_id": reply.headers["x-request-id"],
    }
    assert {name: document[name] for name in expected} == expected, document
    assert document["detail"] and document["message"] == document["detail"], document
    assert (wrong is not None) == (refusal.code == -32602), document
    _check_fields(wrong or [], fields)
    return dict(document)


def check_error(
    reply: Reply, refusal: Refusal, fields: Sequence[str] = (), identifier: Any = None
) -> Mapping[str, Any]:
    """Check a JSON-RPC response with an error."""
    assert reply.status == (refusal.http if refusal.transport else 200), reply
    assert reply.content_type == "application/json", reply
    return check_response(reply.json(), refusal, fields, identifier)


def check_response(
    document: Any, refusal: Refusal, fields: Sequence[str] = (), identifier: Any = None
) -> Mapping[str, Any]:
    """Check the JSON-RPC response that holds an error."""
    assert set(document) == {"jsonrpc", "id", "error"}, document
    assert document["jsonrpc"] == "2.0"
    assert (type(document["id"]), document["id"]) == (type(identifier), identifier), document
    error = document["error"]
    assert set(error) == {"code", "message", "data"}, error
    assert error["code"] == refusal.code and error["message"], error
    kinds = [ERROR_INFO, BAD_REQUEST] if refusal.code == -32602 else [ERROR_INFO]
    assert [detail["@type"] for detail in error["data"]] == kinds, error
    assert (error["data"][0]["reason"], error["data"][0]["domain"]) == (refusal.reason, DOMAIN), error
    if refusal.code == -32602:
        _check_fields(error["data"][1]["fieldViolations"], fields)
    return dict(error)


def _check_fields(violations: Any, fields: Sequence[str]) -> None:
    assert all(set(violation) == {"field", "description"} for violation in violations), violations
    assert all(violation["description"] for violation in violations), violations
    assert not fields or [violation["field"] for violation in violations] == list(fields), violations
