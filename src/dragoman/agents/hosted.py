"""An agent as the hosted profile serves it: the same handler, with text in and one verified text out."""

from collections.abc import Awaitable

from msgspec import structs

from dragoman.agents.agent import Agent
from dragoman.gateway.execute import Execution
from dragoman.gateway.result import MEDIA_TYPE
from dragoman.model import AgentCard, AgentInterface, Capabilities


class HostedAgent:
    """Implements `gateway.execute.AgentRuntime` with another agent's handler, on that agent's loop.

    Its tasks are its own: the open surfaces never see them.
    """

    def __init__(self, agent: Agent, *, deadline: float) -> None:
        """Serve `agent`; `deadline` is in seconds."""
        self._agent = agent
        # No id of an agent has a colon, so this one cannot be taken.
        self.id = f"{agent.id}:hosted"
        self.home = agent.id
        self.settings = structs.replace(
            agent.settings,
            replies="task",
            capabilities=Capabilities(streaming=agent.settings.capabilities.streaming),
            input_modes=("text/*",),
            strict_input_modes=True,
            idempotency="always",
            deadline=deadline,
            one_result=True,
            flat_deadline=True,
        )

    def card(self, interfaces: tuple[AgentInterface, ...]) -> AgentCard:
        """Return the card, with the interfaces that it is served at. Its callers must show a token."""
        card = self._agent.card(interfaces, bearer=True)
        return structs.replace(
            card,
            capabilities=self.settings.capabilities,
            input_modes=("text/plain", MEDIA_TYPE),
            output_modes=(MEDIA_TYPE,),
        )

    async def startup(self) -> None:
        """Do nothing: the agent itself is started once."""

    async def shutdown(self) -> None:
        """Do nothing: the agent itself is stopped once."""

    def run(self, execution: Execution) -> Awaitable[None]:
        """See `gateway.execute.AgentRuntime`."""
        return self._agent.run(execution)
