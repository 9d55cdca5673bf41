"""The google.rpc details of an error: `data` in JSON-RPC (A2A 1.0 §9.5), part of a Status document (§11.6)."""

from typing import Any

from dragoman.model.errors import DragomanError, InvalidParams

DOMAIN = "a2a-protocol.org"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


def details(error: DragomanError) -> list[dict[str, Any]]:
    """Return an ErrorInfo and, where fields are wrong, a BadRequest that names them."""
    info = {"@type": _ERROR_INFO, "reason": error.reason, "domain": DOMAIN, "metadata": dict(error.metadata)}
    if not isinstance(error, InvalidParams):
        return [info]
    return [info, {"@type": _BAD_REQUEST, "fieldViolations": field_violations(error)}]


def field_violations(error: InvalidParams) -> list[dict[str, str]]:
    """Return the fields that are wrong, and what is wrong with each."""
    return [{"field": one.field, "description": one.description} for one in error.violations]
