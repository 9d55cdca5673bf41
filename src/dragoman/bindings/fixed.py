"""The fixed endpoints: cards, health, readiness, metrics. None of them needs a credential."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dragoman.bindings.directory import CardForm, Directory, ServedAgent
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.bindings.forms import VARY
from dragoman.model.errors import AgentNotFound, MethodNotAllowed, VersionNotSupported
from dragoman.protocol import media
from dragoman.protocol.negotiation import http_version, requested_version
from dragoman.telemetry.metrics import REJECTED, Metrics

CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"

Check = Callable[[], Awaitable[Sequence[str]]]


class FixedEndpoints:
    """Serves what is no operation."""

    def __init__(self, directory: Directory, metrics: Metrics, unready: Check) -> None:
        """Prepare the endpoints.

        Args:
            directory: the agents.
            metrics: what `/metrics` shows.
            unready: gives the reasons for which the server cannot work, none if it can.
        """
        self._directory = directory
        self._metrics = metrics
        self._unready = unready

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of these paths; `None` for any other path.

        Raises:
            MethodNotAllowed: the path is here, but is only for reading.
            AgentNotFound, VersionNotSupported: of a card at the root.
        """
        path = exchange.request.path
        if path in (CARD_PATH, OLD_CARD_PATH):
            return self.card(exchange, self._directory.default or "")
        if path not in ("/healthz", "/readyz", "/metrics"):
            return None
        exchange.route = path
        _check_reading(exchange)
        if path == "/healthz":
            return _json(200, {"status": "ok"})
        if path == "/readyz":
            reasons = await self._unready()
            return (
                _json(503, {"status": "unready", "reasons": reasons})
                if reasons
                else _json(200, {"status": "ready"})
            )
        return Reply(
            200, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")], self._metrics.text()
        )

    def card(self, exchange: Exchange, agent_id: str) -> Reply:
        """Return an agent's card in the form that is asked for.

        Raises:
            MethodNotAllowed, AgentNotFound, VersionNotSupported.
        """
        request = exchange.request
        exchange.route = CARD_PATH
        exchange.operation = "GetAgentCard"
        _check_reading(exchange)
        agent = self._directory.agents.get(agent_id)
        if agent is None:
            raise AgentNotFound("There is no such agent here")
        exchange.agent = agent.id
        version, form = self._form(exchange, agent)
        headers = [
            (b"cache-control", f"public, max-age={form.max_age}".encode()),
            (b"etag", form.etag.encode()),
            (b"last-modified", form.modified.encode()),
            VARY,
            (b"a2a-version", version.encode()),
        ]
        if form.is_known(request.headers.get(b"if-none-match"), request.headers.get(b"if-modified-since")):
            return Reply(304, headers)
        content_type = (
            media.A2A_JSON if media.names(request.headers.get(b"accept"), media.A2A_JSON) else media.JSON
        )
        return Reply(200, [(b"content-type", content_type.encode()), *headers], form.body)

    def _form(self, exchange: Exchange, agent: ServedAgent) -> tuple[str, CardForm]:
        request = exchange.request
        try:
            named = requested_version(
                request.headers.all(b"a2a-version"), request.query.get("A2A-Version", ()), agent.cards
            )
            version = http_version(named, agent.cards) if named is not None else agent.unnamed
        except VersionNotSupported:
            exchange.version = REJECTED
            raise
        exchange.version = version
        return version, agent.cards[version]


def _check_reading(exchange: Exchange) -> None:
    if exchange.request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed(exchange.request.method, ["GET", "HEAD"])


def _json(status: int, value: object) -> Reply:
    headers = [(b"content-type", media.JSON.encode()), (b"cache-control", b"no-store")]
    return Reply(status, headers, msgspec.json.encode(value))
