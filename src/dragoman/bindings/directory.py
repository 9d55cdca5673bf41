"""The agents as the bindings see them, and the protocol versions that each is served in."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from dragoman.gateway.policy import OPEN, Policy
from dragoman.gateway.ports import AgentSettings
from dragoman.model import Principal, Right
from dragoman.model.allowance import Allowance
from dragoman.model.errors import AgentNotFound, RateLimited
from dragoman.protocol.negotiation import UNNAMED
from dragoman.protocol.spec import HttpDialect, ProtocolSpec

NO_CARDS: Mapping[str, "CardForm"] = MappingProxyType({})


class CardForm(Protocol):
    """One form of a card, ready to be sent (see `cards.CardFile`)."""

    body: bytes
    etag: str
    modified: str
    max_age: int

    def is_known(self, if_none_match: bytes | None, if_modified_since: bytes | None) -> bool:
        """Tell whether the asker has this form already."""
        ...


class Gate(Protocol):
    """Tells who calls (see `identity.Gate`)."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has to show who they are."""
        ...

    async def identify(
        self,
        credentials: Sequence[bytes],
        address: str,
        *,
        tenant: str = "",
        public: bool = False,
        right: Right = Right.ANSWER,
    ) -> Principal:
        """Return who sends a request, by its Authorization headers and the address it comes from.

        Without `right` their credential allows nothing.

        Raises:
            Unauthenticated, Forbidden, RateLimited, Unavailable.
        """
        ...

    def draw(self, principal: Principal) -> RateLimited | None:
        """Count a request of a principal; return why it is to be refused, if it is one too many."""
        ...

    def allowance(self, principal: Principal) -> Allowance | None:
        """Return what bounds a principal and its tenant; `None` if nothing does."""
        ...

    def confirm(self, principal: Principal) -> None:
        """Make sure that somebody who was let in before would be let in now.

        Raises:
            Unauthenticated.
        """
        ...


class HostedGate(Gate, Protocol):
    """Tells also what a principal is granted."""

    def is_let_in(self, principal: Principal, tenant: str) -> bool:
        """Tell whether a principal may call hosted agents of a tenant."""
        ...

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace, now."""
        ...

    def may_use(self, principal: Principal, source: str) -> bool:
        """Tell whether a principal is granted a source, now."""
        ...


class ServedAgent(Struct, frozen=True, kw_only=True):
    """An agent that is served.

    `versions` are those it is served in, newest first; `cards` holds the pure form of its card for each.
    `unnamed_card` is the form for a request that names no version, and `unnamed` the version that it counts as.
    `extended` holds the extended card, if there is one, in the pure form of each version.
    Principals of other tenants than `tenant`, if there is one, never learn of it. A `public` one may be called by
    anybody. `workspace` is what a principal must be granted to be served by a hosted one, under its `policy`.
    """

    id: str
    settings: AgentSettings
    versions: Mapping[str, ProtocolSpec]
    cards: Mapping[str, CardForm]
    unnamed: str
    unnamed_card: CardForm
    extended: Mapping[str, CardForm] = NO_CARDS
    tenant: str = ""
    public: bool = False
    workspace: str = ""
    policy: Policy = OPEN


class Directory:
    """Finds agents, and the HTTP dialects of a path."""

    def __init__(
        self, agents: Mapping[str, ServedAgent], versions: Mapping[str, ProtocolSpec], default: str | None
    ) -> None:
        """Prepare the directory.

        Args:
            agents: the agents by id.
            versions: the protocol versions of this build, newest first.
            default: the agent whose card also stands at the root, if any.
        """
        self.agents = agents
        self.versions = versions
        self.newest = next(iter(versions.values()))
        self.unnamed = UNNAMED if UNNAMED in versions else self.newest.version
        self.default = default
        self._by_mount: dict[str, dict[str, HttpDialect]] = {}
        for spec in versions.values():
            for dialect in spec.http:
                self._by_mount.setdefault(dialect.mount, {})[spec.version] = dialect
        self._mounts = sorted(self._by_mount, key=len, reverse=True)

    def find(self, agent_id: str, principal: Principal | None = None) -> ServedAgent:
        """Return an agent, to a principal only one that is not another tenant's.

        Raises:
            AgentNotFound: there is none of this id.
        """
        agent = self.agents.get(agent_id)
        if agent is None or (principal is not None and agent.tenant and principal.tenant != agent.tenant):
            raise AgentNotFound("There is no such agent here")
        return agent

    def dialects(self, path: str) -> Mapping[str, HttpDialect]:
        """Return the dialects, by version, of the longest mount that a path below an agent's base stands under."""
        for mount in self._mounts:
            if not mount or path == mount or path.startswith(mount + "/"):
                return self._by_mount[mount]
        return {}
