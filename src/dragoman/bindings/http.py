"""The HTTP+JSON binding: a path, a method and a body to an operation, in whichever version is negotiated."""

import asyncio

from msgspec import Struct

from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.exchange import Exchange, RawRequest
from dragoman.bindings.forms import HttpForm
from dragoman.gateway.capability import check_capability
from dragoman.model import Principal
from dragoman.model.errors import AgentNotFound, Forbidden, InvalidParams, VersionNotSupported
from dragoman.model.operation import Operation, Request
from dragoman.protocol import media
from dragoman.protocol.negotiation import http_version, requested_version
from dragoman.protocol.protojson import kind_of, parse
from dragoman.protocol.spec import HttpCall, HttpDialect, ProtocolSpec
from dragoman.telemetry.metrics import REJECTED

_HAS_BODY = frozenset({"POST", "PUT", "PATCH"})


class Decoded(Struct, frozen=True):
    """A request that was understood: who is called, in which version, and what is asked."""

    agent: ServedAgent
    spec: ProtocolSpec
    operation: Operation
    request: Request


LIGHT = 64 * 1024
"""Bodies up to this size are worked on by the serving loop itself; larger ones in a thread, so that nobody waits."""


def check_right(principal: Principal, operation: Operation) -> None:
    """Refuse an operation that a principal's credential does not allow; nobody else's right is ever looked at.

    Raises:
        Forbidden: it does not.
    """
    right = operation.right
    if right not in principal.rights:
        raise Forbidden(right)


def check_rate(exchange: Exchange, operation: Operation) -> None:
    """Refuse a request that is one too many. Cancelling never is.

    Raises:
        RateLimited: it is.
    """
    if exchange.excess is not None and operation is not Operation.CANCEL_TASK:
        raise exchange.excess


class HttpBinding:
    """Reads HTTP+JSON requests."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def negotiate(self, exchange: Exchange, agent_id: str, path: str) -> tuple[str, HttpDialect]:
        """Return the version and its dialect, and give every reply from here on their form.

        Raises:
            VersionNotSupported: the version asked for is not served at this path.
        """
        request = exchange.request
        dialects = self._directory.dialects(path)
        agent = self._directory.agents.get(agent_id)
        served = [version for version in dialects if agent is None or version in agent.versions]
        try:
            requested = requested_version(
                request.headers.all(b"a2a-version"), request.query.get("A2A-Version", ()), served
            )
            version = http_version(requested, served)
        except VersionNotSupported:
            exchange.version = REJECTED
            raise
        exchange.version = version
        dialect = dialects[version]
        if agent is not None and agent.versions[version] is not self._directory.versions[version]:
            # An agent may be served in another revision than all others.
            dialect = agent.versions[version].dialect(dialect.mount)
        if dialect.choose is not None:
            dialect = dialect.choose(request.headers) or dialect
        exchange.form = HttpForm(dialect, version, request, self._answer_type(request, dialect))
        return version, dialect

    def refusal_form(self, request: RawRequest) -> HttpForm:
        """Return the form of errors before anything was negotiated: the newest version's."""
        return HttpForm(self._directory.newest.http[0], "", request)

    async def decode(
        self,
        exchange: Exchange,
        agent_id: str,
        path: str,
        version: str,
        dialect: HttpDialect,
        principal: Principal,
    ) -> Decoded:
        """Return what a principal asks.

        Raises:
            DragomanError: it cannot be read or is not allowed; nothing was done.
        """
        request = exchange.request
        agent = self._directory.find(agent_id, principal)
        if version not in agent.versions:
            raise AgentNotFound("There is no such agent here")
        exchange.agent = agent.id
        match = dialect.routes.match(request.method, path[len(dialect.mount) :])
        exchange.operation = match.endpoint.operation.value
        check_right(principal, match.endpoint.operation)
        check_rate(exchange, match.endpoint.operation)
        check_capability(agent.settings, match.endpoint.operation)
        exchange.route = f"/agents/{{agent}}{dialect.mount}{match.template}"
        body = await self._read(request, dialect) if request.method in _HAS_BODY else None

        def decode() -> Request:
            return match.endpoint.decode(HttpCall(match.variables, request.query, _parse(body), agent_id))

        is_light = body is None or len(body) <= LIGHT
        asked = decode() if is_light else await asyncio.to_thread(decode)
        return Decoded(agent, agent.versions[version], match.endpoint.operation, asked)

    async def _read(self, request: RawRequest, dialect: HttpDialect) -> bytes | None:
        named = media.check_content_type(request.headers.get(b"content-type"), dialect.media_types)
        body = await request.read_body()
        if not body:
            return None
        if named is None:
            raise media.unsupported(dialect.media_types)
        return body

    def _answer_type(self, request: RawRequest, dialect: HttpDialect) -> str:
        """Choose among the dialect's types: the first, unless Content-Type or Accept names another."""
        content_type, accept = request.headers.get(b"content-type"), request.headers.joined(b"accept")
        for other in dialect.media_types[1:]:
            if (content_type is not None and media.essence(content_type) == other) or media.names(
                accept, other
            ):
                return other
        return dialect.media_types[0]


def _parse(body: bytes | None) -> dict[str, object] | None:
    if body is None:
        return None
    value = parse(body).check()
    if not isinstance(value, dict):
        raise InvalidParams.of("body", f"must be an object, not {kind_of(value)}")
    return value
