"""The way into the surfaces beside agents: who asks, whether they may, how often, and by which method."""

from collections.abc import Callable

from dragoman.bindings.auditing import entry_of
from dragoman.bindings.directory import HostedGate
from dragoman.bindings.exchange import Exchange
from dragoman.gateway.audit import AuditEntry
from dragoman.model import Principal, Right
from dragoman.model.errors import Forbidden, MethodNotAllowed


def anybody(principal: Principal) -> None:
    """Let in whoever has the right."""


async def enter(
    gate: HostedGate,
    exchange: Exchange,
    route: str,
    operation: str,
    methods: tuple[str, ...],
    right: Right,
    belongs: Callable[[Principal], None] = anybody,
) -> Principal:
    """Return who asks for something, once that is certain; `belongs` raises if it is not there for them at all.

    Raises:
        Unauthenticated, Forbidden, RateLimited, Unavailable.
        MethodNotAllowed: the path has no such method.
        DragomanError: as `belongs`.
    """
    request = exchange.request
    exchange.route, exchange.operation = route, operation
    principal = await gate.identify(request.headers.all(b"authorization"), request.address)
    exchange.principal = principal
    if right not in principal.rights:
        raise Forbidden(right)
    belongs(principal)
    excess = gate.draw(principal)
    if excess is not None:
        raise excess
    if request.method not in methods:
        raise MethodNotAllowed(request.method, methods)
    return principal


def noted(gate: HostedGate, exchange: Exchange) -> AuditEntry | None:
    """Return what to note of a request, if anything: a server that asks nobody who they are has no audit."""
    return None if gate.is_open else entry_of(exchange)
