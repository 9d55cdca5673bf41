"""The hosted profile: agents of tenants, each with a card and a JSON-RPC endpoint, both behind a credential."""

from dragoman.bindings.directory import Directory, HostedGate, ServedAgent
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.bindings.fixed import CARD_OPERATION, CARD_PATH, FixedEndpoints, check_reading, kept
from dragoman.bindings.http import Decoded, check_rate, check_right
from dragoman.bindings.jsonrpc import JsonRpcBinding
from dragoman.model import Principal
from dragoman.model.errors import AgentNotFound, MethodNotFound
from dragoman.model.operation import Operation
from dragoman.protocol.media import JSON

PREFIX = "/v1/a2a/agents/"
BODY_LIMIT = 64 * 1024

_ENTERS = (Operation.SEND_MESSAGE, Operation.SEND_STREAMING_MESSAGE)
"""What needs the grant on the agent's workspace itself; what is read is withheld instead where that is missing."""


class HostedRpc(JsonRpcBinding):
    """The JSON-RPC endpoints. Whether an agent is there is found out last, so that nobody else can tell."""

    def __init__(self, directory: Directory, gate: HostedGate) -> None:
        super().__init__(directory, body_limit=BODY_LIMIT)
        self._gate = gate

    def find(self, agent_id: str, principal: Principal) -> ServedAgent | None:
        """See `JsonRpcBinding`."""
        return None

    def tenant(self, agent_id: str) -> str:
        """See `JsonRpcBinding`."""
        return ""

    def admit(self, agent_id: str, principal: Principal, operation: Operation) -> ServedAgent:
        """See `JsonRpcBinding`."""
        agent = self._directory.agents.get(agent_id)
        if agent is None or not self._gate.is_let_in(principal, agent.tenant):
            raise AgentNotFound(_NO_AGENT)
        if operation in _ENTERS and not self._gate.may_enter(principal, agent.workspace):
            raise AgentNotFound(_NO_AGENT)
        return agent


class HostedSurface:
    """Serves what is below `PREFIX`."""

    def __init__(self, directory: Directory, gate: HostedGate, fixed: FixedEndpoints) -> None:
        """Serve the agents of `directory`; `fixed` negotiates for their cards."""
        self._rpc = HostedRpc(directory, gate)
        self._gate = gate
        self._fixed = fixed
        self._versions = directory.versions

    async def serve(self, exchange: Exchange) -> Reply | tuple[Decoded, Principal]:
        """Return the card that is asked for, or what is asked of an agent and by whom.

        Raises:
            DragomanError: it is refused; nothing was done.
        """
        agent_id, slash, rest = exchange.request.path[len(PREFIX) :].partition("/")
        rest = slash + rest
        exchange.route = _BELOW
        if rest == CARD_PATH:
            return await self._card(exchange, agent_id)
        if rest not in ("/rpc", "/rpc/"):
            raise MethodNotFound("There is no such path here; a hosted agent has a card and /rpc")
        exchange.route = _RPC
        form, refusal = self._rpc.negotiate(exchange, agent_id)
        principal = await self._identify(exchange)
        return await self._rpc.decode(exchange, agent_id, form, refusal, principal), principal

    def confirm(self, agent: ServedAgent, principal: Principal) -> None:
        """Make sure that a principal who was let in to an agent would be let in now.

        Raises:
            AgentNotFound: it would not.
        """
        if not self._gate.is_let_in(principal, agent.tenant):
            raise AgentNotFound(_NO_AGENT)

    async def _card(self, exchange: Exchange, agent_id: str) -> Reply:
        exchange.operation = CARD_OPERATION
        version = self._fixed.negotiate(exchange, self._versions) or next(iter(self._versions))
        self._fixed.speak(exchange, version)
        check_reading(exchange)
        principal = await self._identify(exchange)
        check_right(principal, Operation.GET_TASK)
        check_rate(exchange, Operation.GET_TASK)
        agent = self._rpc.admit(agent_id, principal, Operation.SEND_MESSAGE)
        exchange.agent = agent.id
        return kept(exchange, agent.cards[version], JSON, by="private")

    async def _identify(self, exchange: Exchange) -> Principal:
        request = exchange.request
        principal = await self._gate.identify(request.headers.all(b"authorization"), request.address)
        exchange.principal = principal
        exchange.excess = self._gate.draw(principal)
        return principal


_BELOW = f"{PREFIX}{{agent}}"
_RPC = f"{_BELOW}/rpc"
_NO_AGENT = "There is no such agent here"
