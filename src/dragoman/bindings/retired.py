"""Paths of an earlier contract that are gone for good, and what took their place (RFC 7807 documents, 410)."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.bindings.exchange import Exchange, Reply
from dragoman.protocol.media import PROBLEM_JSON

_RPC = "the JSON-RPC endpoint of the agent, POST /v1/a2a/agents/{id}/rpc"

RETIRED: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "/v1/a2a/.well-known/agent.json": (
            ("GET",),
            "Each agent has a card of its own: GET /v1/a2a/agents/{id}/.well-known/agent-card.json.",
        ),
        "/v1/a2a/cards": (
            ("GET",),
            "Each agent has a card of its own: GET /v1/a2a/agents/{id}/.well-known/agent-card.json.",
        ),
        "/v1/a2a/tasks/{id}": (
            ("GET", "POST"),
            f"Use GetTask and CancelTask at {_RPC}. Task ids that were known to one process only cannot be restored.",
        ),
        **{
            f"/v1/a2a/{method}": (("POST",), f"Use the method {method} at {_RPC}.")
            for method in ("SendMessage", "GetTask", "ListTasks", "CancelTask")
        },
    }
)
"""Path → the methods that it had, and what to do instead. What is below a path with an id is gone with it."""

_PATTERNS = [
    (re.compile(re.escape(path).replace(r"\{id\}", "[^/].*")), path, methods, instead)
    for path, (methods, instead) in RETIRED.items()
]


def retired(exchange: Exchange) -> Reply | None:
    """Return the reply to a request for a path that is gone; `None` for any other path. It needs no credential."""
    request = exchange.request
    for pattern, path, methods, instead in _PATTERNS:
        method = "GET" if request.method == "HEAD" else request.method
        if method in methods and pattern.fullmatch(request.path):
            exchange.route, exchange.outcome = path, "GONE"
            document = {
                "type": "Gone",
                "title": "Gone",
                "status": 410,
                "detail": f"This path is retired. {instead}",
                "instance": request.path,
                "trace_id": request.id,
            }
            return Reply(410, [(b"content-type", PROBLEM_JSON.encode())], msgspec.json.encode(document))
    return None
