"""How many runs wait in the store for whoever executes them, and whether one more may come."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from dragoman.gateway.elsewhere import Backlogged
from dragoman.gateway.execute import AgentRuntime
from dragoman.model import Scope
from dragoman.model.errors import Unavailable

COUNT_SECONDS = 0.1
"""Seconds between two counts while runs are accepted."""

IDLE_SECONDS = 5.0
"""Seconds between two counts while none is."""

_LOG = logging.getLogger("dragoman.engine")


class Backlog:
    """Counts runs that nobody has been given yet, by their agent. Lives on the serving loop.

    What was accepted here since the last count is added to it, so this server never goes over the bound by itself;
    several servers may, by what they accept between two counts.
    """

    def __init__(self, agents: Iterable[AgentRuntime], store: Backlogged) -> None:
        agents = list(agents)
        self._homes = {agent.id: agent.home for agent in agents}
        self._most = {agent.id: agent.settings.max_waiting for agent in agents}
        self._store = store
        self._counted: Counter[str] = Counter()
        self._since: Counter[str] = Counter()
        self._reserved: dict[str, str] = {}
        self._stir = asyncio.Event()

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """Keep room for a run that may be accepted; false if as many wait as may."""
        home = self._homes[scope.agent]
        self._stir.set()
        if self._counted[home] + self._since[home] >= self._most[home]:
            return False
        self._since[home] += 1
        self._reserved[task_id] = home
        return True

    def release(self, task_id: str) -> None:
        """Know that it is decided what became of a run: the next count tells whether it waits."""
        self._reserved.pop(task_id, None)

    def counts(self) -> Mapping[str, int]:
        """Return how many runs of each agent waited at the last count."""
        return {agent: self._counted[agent] for agent, home in self._homes.items() if agent == home}

    async def run(self) -> None:
        """Count, again and again, until cancelled."""
        while True:
            try:
                await self.count()
            except Unavailable as error:
                _LOG.warning("runs that wait could not be counted: %s", error.message)
            await asyncio.sleep(COUNT_SECONDS)
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._stir.wait()
            except TimeoutError:
                pass
            self._stir.clear()

    async def count(self) -> None:
        """Count once.

        Raises:
            Unavailable.
        """
        # What is accepted while the store counts may be in the count or not: it is counted here as well.
        before = self._since.copy()
        for home in self._reserved.values():
            before[home] -= 1
        offered = await self._store.offered()
        self._counted = Counter()
        for agent, number in offered.items():
            if agent in self._homes:
                self._counted[self._homes[agent]] += number
        self._since -= before
