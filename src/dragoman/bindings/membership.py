"""Who may use what belongs to a tenant beside agents: its remote agents, and what was delegated to them."""

from collections.abc import Collection
from typing import Any

import msgspec

from dragoman.bindings.directory import HostedGate
from dragoman.bindings.entering import enter, noted
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.gateway.audit import AuditEntry
from dragoman.model import Principal, Right
from dragoman.model.errors import InvalidParams, MethodNotFound
from dragoman.protocol import media
from dragoman.protocol.protojson import Fields, kind_of, parse


class Membership:
    """Lets in whoever may delegate: `a2a:delegate`, and a tenant with the feature for agents.

    A server without tenants is somebody's own: they may.
    """

    def __init__(self, gate: HostedGate) -> None:
        self._gate = gate

    async def enter(
        self, exchange: Exchange, route: str, operation: str, methods: tuple[str, ...]
    ) -> Principal:
        """Return who asks for something, once that is certain.

        Raises:
            Unauthenticated, Forbidden, RateLimited, Unavailable.
            MethodNotFound: its tenant does not have this at all.
            MethodNotAllowed: the path has no such method.
        """

        def belongs(principal: Principal) -> None:
            if not self.is_member(principal.tenant):
                raise MethodNotFound("There is no such path here; agents are below /agents/{id}")

        return await enter(self._gate, exchange, route, operation, methods, Right.DELEGATE, belongs)

    def is_member(self, tenant: str) -> bool:
        """Tell whether a tenant may have remote agents, now."""
        return self._gate.is_open or self._gate.is_let_in(Principal(tenant, ""), tenant)

    def audit(self, exchange: Exchange) -> AuditEntry | None:
        """Return what to note of a request, if anything."""
        return noted(self._gate, exchange)


async def read_object(exchange: Exchange, known: Collection[str], limit: int | None = None) -> Fields:
    """Return the body of a request, an object whose members must be among `known`.

    Raises:
        InvalidParams, RequestError, TransportError.
    """
    request = exchange.request
    if media.check_content_type(request.headers.get(b"content-type"), (media.JSON,)) is None:
        raise media.unsupported((media.JSON,))
    value = parse(await request.read_body(limit)).check()
    if not isinstance(value, dict):
        raise InvalidParams.of("body", f"must be an object, not {kind_of(value)}")
    for name in value:
        if name not in known:
            raise InvalidParams.of(name[:128], f"is not known here; there is {', '.join(known)}")
    return Fields(value)


def json_reply(document: dict[str, Any], status: int = 200) -> Reply:
    """Return a reply that nobody may keep."""
    headers = [(b"content-type", media.JSON.encode()), (b"cache-control", b"no-store")]
    return Reply(status, headers, msgspec.json.encode(document))
