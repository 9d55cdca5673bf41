"""The fixed endpoints: cards, their keys, descriptions, health, readiness, metrics.

Those of open agents need no credential.
"""

from collections.abc import Callable, Collection

from dragoman.bindings.describing import Descriptions
from dragoman.bindings.directory import CardForm, Directory, ServedAgent
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.bindings.forms import HttpForm
from dragoman.bindings.health import PATHS, Check, Health
from dragoman.model.errors import MethodNotAllowed, VersionNotSupported
from dragoman.protocol import media
from dragoman.protocol.negotiation import http_version, requested_version
from dragoman.telemetry.metrics import REJECTED, Metrics

CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"
JWKS_PATH = "/.well-known/jwks.json"
JWKS_TYPE = "application/jwk-set+json"
OPENAPI_PATH = "/openapi.json"
CARD_OPERATION = "GetAgentCard"


class FixedEndpoints:
    """Serves what is no operation.

    Attributes:
        jwks: the public keys that cards are signed with, if any; replaced when they change.
    """

    def __init__(
        self,
        directory: Directory,
        metrics: Metrics,
        unready: Check,
        descriptions: Descriptions | None = None,
        jwks: CardForm | None = None,
    ) -> None:
        """Prepare the endpoints.

        Args:
            directory: the agents.
            metrics: what `/metrics` shows.
            unready: gives the reasons for which the server cannot work, none if it can.
            descriptions: the OpenAPI documents; they are kept and sent as cards are.
            jwks: the public keys that cards are signed with.
        """
        self._directory = directory
        self._health = Health(metrics, unready)
        self._descriptions = descriptions
        self.jwks = jwks

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of these paths; `None` for any other path.

        Raises:
            MethodNotAllowed: the path is here, but is only for reading.
            AgentNotFound, VersionNotSupported: of a card at the root, or of a description.
            Unauthenticated, Forbidden, RateLimited, Unavailable: of a description.
        """
        path = exchange.request.path
        if path in (CARD_PATH, OLD_CARD_PATH):
            return self.card(exchange, self._directory.default or "")
        if path == JWKS_PATH and self.jwks is not None:
            return self.keys(exchange, self.jwks)
        if path == OPENAPI_PATH and self._descriptions is not None:
            return await self._description(exchange, self._descriptions)
        if path not in PATHS:
            self.negotiate(exchange, self._directory.versions)
            return None
        exchange.route = path
        check_reading(exchange)
        return await self._health.reply(path)

    def keys(self, exchange: Exchange, jwks: CardForm) -> Reply:
        """Return the public keys. They are in no version of A2A.

        Raises:
            MethodNotAllowed.
        """
        exchange.route = JWKS_PATH
        check_reading(exchange)
        return kept(exchange, jwks, JWKS_TYPE)

    def card(self, exchange: Exchange, agent_id: str) -> Reply:
        """Return an agent's card in the form that is asked for: of a version alone, or for everybody.

        Raises:
            MethodNotAllowed, AgentNotFound, VersionNotSupported.
        """
        agent = self._directory.agents.get(agent_id)
        version = self.negotiate(exchange, agent.cards if agent else self._directory.versions)
        if version is not None:
            return self.card_of(exchange, agent_id, version)
        self.speak(exchange, agent.unnamed if agent else self._directory.unnamed)
        types = self._directory.newest.http[0].media_types
        return self._card(exchange, agent_id, lambda found: found.unnamed_card, types)

    def card_of(self, exchange: Exchange, agent_id: str, version: str) -> Reply:
        """Return an agent's card in the form of the version that was negotiated.

        Raises:
            MethodNotAllowed, AgentNotFound.
        """
        types = exchange.form.media_types
        return self._card(exchange, agent_id, lambda found: found.cards[version], types)

    def _card(
        self,
        exchange: Exchange,
        agent_id: str,
        form: Callable[[ServedAgent], CardForm],
        types: Collection[str],
    ) -> Reply:
        exchange.route = CARD_PATH
        exchange.operation = CARD_OPERATION
        check_reading(exchange)
        agent = self._directory.find(agent_id)
        exchange.agent = agent.id
        accept = exchange.request.headers.joined(b"accept")
        wants_a2a = media.A2A_JSON in types and media.names(accept, media.A2A_JSON)
        return kept(exchange, form(agent), media.A2A_JSON if wants_a2a else media.JSON)

    async def _description(self, exchange: Exchange, descriptions: Descriptions) -> Reply | None:
        """Return the OpenAPI document of a version: the one that is asked for, or the newest."""
        documents = await descriptions.of(exchange)
        if not documents:
            self.negotiate(exchange, self._directory.versions)
            return None
        exchange.route = OPENAPI_PATH
        version = self.negotiate(exchange, documents)
        if version is None:
            version = next(iter(documents))
            self.speak(exchange, version)
        check_reading(exchange)
        return kept(
            exchange, documents[version], media.JSON, by="private" if descriptions.differ else "public"
        )

    def negotiate(self, exchange: Exchange, served: Collection[str]) -> str | None:
        """Return the version that a request names, and give its replies their form; `None` if it names none.

        Raises:
            VersionNotSupported: it is not among those that are served.
        """
        request = exchange.request
        try:
            named = requested_version(
                request.headers.all(b"a2a-version"), request.query.get("A2A-Version", ()), served
            )
            if named is None:
                return None
            self.speak(exchange, http_version(named, served))
        except VersionNotSupported:
            exchange.version = REJECTED
            raise
        return exchange.version

    def speak(self, exchange: Exchange, version: str) -> None:
        """Give the replies to a request the form of a version, for what belongs to no dialect."""
        exchange.version = version
        exchange.form = HttpForm(self._directory.versions[version].http[0], version, exchange.request)


def kept(exchange: Exchange, form: CardForm, content_type: str, *, by: str = "public") -> Reply:
    """Return what whoever asks may keep (`by` "private": the caller alone), or tell that it is as it was."""
    asked = exchange.request.headers
    headers = [
        (b"cache-control", f"{by}, max-age={form.max_age}".encode()),
        (b"etag", form.etag.encode()),
        (b"last-modified", form.modified.encode()),
        *exchange.form.headers(),
    ]
    if form.is_known(asked.get(b"if-none-match"), asked.get(b"if-modified-since")):
        return Reply(304, headers)
    return Reply(200, [(b"content-type", content_type.encode()), *headers], form.body)


def check_reading(exchange: Exchange) -> None:
    """Refuse a method that does more than read.

    Raises:
        MethodNotAllowed.
    """
    if exchange.request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed(exchange.request.method, ["GET", "HEAD"])
