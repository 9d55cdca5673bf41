"""Which client sends for which agent, and with that, where its callers' URLs may lead."""

from collections.abc import Collection

from dragoman.egress.client import Egress
from dragoman.gateway.push import Places


class Ways(Places):
    """The clients: one for all agents, and one with a policy of its own for those that have need of it."""

    def __init__(self, usual: Egress, other: Egress | None = None, agents: Collection[str] = ()) -> None:
        """Take the clients.

        Args:
            usual: sends for every agent but these.
            other: sends for `agents`.
            agents: ids of agents.
        """
        self._usual = usual
        self._other = other
        self._agents = frozenset(agents)

    def of(self, agent: str) -> Egress:
        """Return the client that sends for an agent."""
        return self._other if self._other is not None and agent in self._agents else self._usual

    def place_of(self, url: str, agent: str) -> str:
        """See `Places`."""
        return self.of(agent).policy.place_of(url)

    async def close(self) -> None:
        """Let go of connections."""
        await self._usual.close()
        if self._other is not None:
            await self._other.close()
