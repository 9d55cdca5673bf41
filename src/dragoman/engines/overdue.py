"""Ending runs whose time is over: past their deadline, or waiting for their caller for too long."""

import logging
from collections.abc import Callable, Iterable

from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import TaskStore

_LOG = logging.getLogger("dragoman.engine")


class Overdue:
    """Looks for such runs. Whoever serves does so, executing runs or not: a deadline holds without workers."""

    def __init__(
        self, agents: Iterable[AgentRuntime], store: TaskStore, stop: Callable[[str], object]
    ) -> None:
        """Prepare to look; `stop` is called with the task of each run that is ended."""
        agents = list(agents)
        self._store = store
        self._stop = stop
        self._patience = {agent.id: int(agent.settings.parked_deadline * 1000) for agent in agents}
        self._flat = [agent.id for agent in agents if agent.settings.flat_deadline]

    async def expire(self) -> int:
        """End runs that are past their deadline, and return how many.

        Raises:
            Unavailable.
        """
        events = await self._store.expire()
        for event in events:
            _LOG.warning("a run passed its deadline", extra={"task_id": event.task_id})
            self._stop(event.task_id)
        return len(events)

    async def expire_parked(self) -> None:
        """End runs that have waited for their caller for too long.

        Raises:
            Unavailable.
        """
        for event in await self._store.expire_parked(self._patience, self._flat):
            _LOG.warning("a run waited too long for its caller", extra={"task_id": event.task_id})
            self._stop(event.task_id)
