"""Replies as they came, and what a caller may conclude from them: a result, or a refusal of a known form."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DOMAIN = "a2a-protocol.org"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
JSON_TYPES = ("application/json", "application/a2a+json")

_INTERNALS = re.compile(
    r"Traceback|\.py\b|sqlite|\bSELECT\b|\bINSERT\b|dragoman\.db|/tmp/|site-packages|Error\(", re.IGNORECASE
)


@dataclass(frozen=True)
class Refusal:
    """How one kind of error shows: ErrorInfo reason, HTTP status, google.rpc name and JSON-RPC code.

    `transport` errors keep their HTTP status over JSON-RPC, with a null id unless the envelope was read before.
    """

    reason: str
    http: int
    status: str
    code: int
    transport: bool = False


# A2A 1.0.1 §5.4 with the decisions of SPEC section 17.
TASK_NOT_FOUND = Refusal("TASK_NOT_FOUND", 404, "NOT_FOUND", -32001)
NOT_CANCELABLE = Refusal("TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION", -32002)
NO_PUSH = Refusal("PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", -32003)
UNSUPPORTED = Refusal("UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION", -32004)
PART_TYPE = Refusal("CONTENT_TYPE_NOT_SUPPORTED", 400, "INVALID_ARGUMENT", -32005)
BAD_AGENT = Refusal("INVALID_AGENT_RESPONSE", 500, "INTERNAL", -32006)
EXTENSION = Refusal("EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION", -32008)
VERSION = Refusal("VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", -32009)
MALFORMED = Refusal("INVALID_REQUEST", 400, "INVALID_ARGUMENT", -32700)
ENVELOPE = Refusal("INVALID_REQUEST", 400, "INVALID_ARGUMENT", -32600)
NO_METHOD = Refusal("METHOD_NOT_FOUND", 404, "NOT_FOUND", -32601)
PARAMS = Refusal("INVALID_PARAMS", 400, "INVALID_ARGUMENT", -32602)
CONFLICT = Refusal("MESSAGE_ID_CONFLICT", 409, "ALREADY_EXISTS", -32602)
NO_AGENT = Refusal("AGENT_NOT_FOUND", 404, "NOT_FOUND", -32000, transport=True)
NOT_ALLOWED = Refusal("METHOD_NOT_ALLOWED", 405, "UNIMPLEMENTED", -32000, transport=True)
NOT_ACCEPTABLE = Refusal("NOT_ACCEPTABLE", 406, "INVALID_ARGUMENT", -32000, transport=True)
TIMEOUT = Refusal("REQUEST_TIMEOUT", 408, "DEADLINE_EXCEEDED", -32000, transport=True)
TOO_LARGE = Refusal("BODY_TOO_LARGE", 413, "RESOURCE_EXHAUSTED", -32000, transport=True)
BODY_TYPE = Refusal("CONTENT_TYPE_NOT_SUPPORTED", 415, "INVALID_ARGUMENT", -32005, transport=True)
FULL = Refusal("QUOTA_EXCEEDED", 429, "RESOURCE_EXHAUSTED", -32000)
UNAVAILABLE = Refusal("UNAVAILABLE", 503, "UNAVAILABLE", -32000)


@dataclass(frozen=True)
class Reply:
    """One whole reply: `binding` says how to read it, header names are in lower case."""

    binding: str
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
        """The result of a success; over JSON-RPC, what the envelope holds."""
        assert self.status == 200, self
        assert self.content_type in JSON_TYPES, self
        document = self.json()
        if self.binding == "jsonrpc":
            assert set(document) == {"jsonrpc", "id", "result"}, document
            assert document["jsonrpc"] == "2.0"
            return document["result"]
        return document

    @property
    def task(self) -> dict[str, Any]:
        """The task in the answer to a send."""
        result = self.result
        assert set(result) == {"task"}, result
        task: dict[str, Any] = result["task"]
        return task

    @property
    def reason(self) -> str:
        """The reason of an error, empty for a success. Says nothing about the rest of its form: see `refused`."""
        document = self.json()
        if "error" not in document:
            return ""
        return str(self._details[0]["reason"])

    @property
    def fields(self) -> list[str]:
        """The fields that an error names as wrong."""
        return [violation["field"] for violation in self._details[1]["fieldViolations"]]

    @property
    def _details(self) -> Any:
        error = self.json()["error"]
        return error["data" if self.binding == "jsonrpc" else "details"]


def check_negotiated(headers: Mapping[str, str], version: str | None = "1.0") -> None:
    """Every negotiated reply names its version and what it varies by; a refused version is named nowhere."""
    assert headers.get("a2a-version") == version
    assert headers.get("vary") == "A2A-Version, Accept"
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", headers["x-request-id"])


def check_outside(body: bytes) -> None:
    """Nothing of the inside may be in what goes out: no exception, path or SQL."""
    assert not _INTERNALS.search(body.decode()), body


def refused(
    reply: Reply, refusal: Refusal, *, fields: Sequence[str] = (), identifier: Any = None
) -> dict[str, str]:
    """Check the whole form of a refusal and return the metadata of its ErrorInfo.

    `fields` are the wrong fields that it must name, in order. `identifier` is the JSON-RPC id that must come back.
    """
    assert reply.content_type in JSON_TYPES, reply
    check_negotiated(reply.headers, None if refusal is VERSION else "1.0")
    check_outside(reply.body)
    document = reply.json()
    if reply.binding == "jsonrpc":
        details = _jsonrpc_details(reply, document, refusal, identifier)
    else:
        details = _http_details(reply, document, refusal)
    return _check_details(details, refusal, fields)


def _http_details(reply: Reply, document: Any, refusal: Refusal) -> Any:
    assert reply.status == refusal.http, reply
    assert set(document) == {"error"}, document
    error = document["error"]
    assert set(error) == {"code", "status", "message", "details"}, error
    assert (error["code"], error["status"]) == (refusal.http, refusal.status), error
    assert error["message"]
    return error["details"]


def _jsonrpc_details(reply: Reply, document: Any, refusal: Refusal, identifier: Any) -> Any:
    assert reply.status == (refusal.http if refusal.transport else 200), reply
    assert reply.content_type == "application/json"
    assert set(document) == {"jsonrpc", "id", "error"}, document
    assert document["jsonrpc"] == "2.0"
    assert (type(document["id"]), document["id"]) == (type(identifier), identifier), document
    error = document["error"]
    assert set(error) == {"code", "message", "data"}, error
    assert error["code"] == refusal.code, error
    assert error["message"]
    return error["data"]


def _check_details(details: Any, refusal: Refusal, fields: Sequence[str]) -> dict[str, str]:
    kinds = [ERROR_INFO, BAD_REQUEST] if refusal.code == -32602 else [ERROR_INFO]
    assert [detail["@type"] for detail in details] == kinds, details
    info = details[0]
    assert set(info) == {"@type", "reason", "domain", "metadata"}, info
    assert (info["reason"], info["domain"]) == (refusal.reason, DOMAIN), details
    assert all(isinstance(value, str) for value in info["metadata"].values()), info
    if refusal.code == -32602:
        violations = details[1]["fieldViolations"]
        assert all(set(violation) == {"field", "description"} for violation in violations), violations
        assert all(violation["description"] for violation in violations), violations
        assert not fields or [violation["field"] for violation in violations] == list(fields)
    metadata: dict[str, str] = info["metadata"]
    return metadata
