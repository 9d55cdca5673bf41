"""What of requests goes into the audit: who asks for a change, and what is refused."""

from collections.abc import Collection

from dragoman.bindings.exchange import Exchange
from dragoman.gateway.audit import AuditEntry
from dragoman.model.errors import (
    AgentNotFound,
    DragomanError,
    Forbidden,
    InternalError,
    InvalidAgentResponse,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from dragoman.model.operation import Operation

ACCESS = "Access"
"""The action of whoever is refused before it is known what they want."""

_CHANGES = frozenset(
    [
        *(operation.value for operation in Operation if operation.writes),
        "DecideApproval",
        "ResumeRun",
        "Administer",
        "RegisterRemote",
        "ChangeRemote",
        "RemoveRemote",
        "DiscoverRemote",
        "Delegate",
        "ReconcileDelegation",
    ]
)
_AFTERWARDS = (InvalidAgentResponse, Unavailable, InternalError)
"""Errors that may come after what was asked for was done, or that say nothing of the caller."""


def entry_of(exchange: Exchange) -> AuditEntry | None:
    """Return what to note of a request that asks for a change; the store knows what came of it."""
    who = exchange.principal
    if who is None:
        return None
    return AuditEntry(
        action=exchange.operation,
        tenant=who.tenant,
        principal=who.name,
        credential=who.credential,
        address=exchange.request.address,
    )


def refusal_of(exchange: Exchange, error: DragomanError, agents: Collection[str]) -> AuditEntry | None:
    """Return what to note of a refused request, if anything: denied access, and changes that were not made.

    Only what is in `agents` is ever a target: no text of a caller's gets into the audit.
    """
    who = exchange.principal or (error.by if isinstance(error, Forbidden) else None)
    agent = _agent(exchange.request.path)
    target = f"agents/{agent}" if agent in agents else ""
    denied = (
        isinstance(error, Unauthenticated | Forbidden)
        # Of all limits only that of credentials refuses a caller whom nobody knows.
        or (type(error) is RateLimited and who is None)
        or (isinstance(error, AgentNotFound) and who is not None and bool(target))
    )
    failed = exchange.operation in _CHANGES and who is not None
    if not denied and (not failed or isinstance(error, (*_AFTERWARDS, AgentNotFound))):
        return None
    return AuditEntry(
        action=exchange.operation or ACCESS,
        target=target,
        tenant=who.tenant if who else "",
        principal=who.name if who else "",
        credential=who.credential if who else "",
        address=exchange.request.address,
        outcome=error.reason,
        detail=error.scope if isinstance(error, Forbidden) else "",
    )


def _agent(path: str) -> str:
    for prefix in ("/agents/", "/v1/a2a/agents/"):
        if path.startswith(prefix):
            return path[len(prefix) :].partition("/")[0]
    return ""
