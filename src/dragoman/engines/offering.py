"""The engine of a server that executes no runs itself: workers that share its store take them from there."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from dragoman.engines.backlog import Backlog
from dragoman.engines.overdue import Overdue
from dragoman.engines.showing import FreshRuns
from dragoman.gateway.elsewhere import Backlogged
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import RunRef, TaskStore
from dragoman.model import Scope, TaskEvent

TICK = 0.1

_LOG = logging.getLogger("dragoman.engine")


class OfferingEngine:
    """Implements `gateway.ports.Engine` by leaving runs in the store. All methods are called on the serving loop."""

    def __init__(
        self, agents: Iterable[AgentRuntime], store: TaskStore, backlogged: Backlogged, *, sweep: float
    ) -> None:
        """Prepare the engine.

        Args:
            agents: the agents whose runs are accepted.
            store: where their runs are.
            backlogged: the same, as far as it counts what waits.
            sweep: seconds between two looks for runs that are past their deadline.
        """
        agents = list(agents)
        self._backlog = Backlog(agents, backlogged)
        self._overdue = Overdue(agents, store, self.stop)
        self._fresh = FreshRuns({agent.id: agent for agent in agents}, store)
        self._sweep = sweep
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to count and to look for overdue runs."""
        workers = (self._backlog.run(), self._tick_worker(), self._sweep_worker())
        self._tasks = [asyncio.create_task(worker) for worker in workers]

    async def stop_serving(self, drain: float) -> None:
        """Stop counting. What was accepted last shows before, so that whoever waits for it can be told of it."""
        for task in self._tasks:
            task.cancel()
        await self._fresh.show_rest(drain)

    def hurry(self) -> None:
        """Nothing runs here."""

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """See `Engine.reserve`."""
        return self._backlog.reserve(scope, task_id)

    def release(self, task_id: str) -> None:
        """See `Engine.release`."""
        self._backlog.release(task_id)

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        """See `Engine.dispatch`: the store gives this server none."""
        raise AssertionError(f"{len(runs)} runs were given to a server that executes none")

    def stop(self, task_id: str) -> None:
        """See `Engine.stop`: whoever executes the run learns of its end from the store."""

    def look_again(self) -> None:
        """Nothing runs here that others could stop."""

    def sweep_soon(self) -> None:
        """Nothing is taken over here."""

    def offered(self) -> None:
        """Nothing is taken here."""

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here: none is."""
        return False

    def leave(self, runs: Sequence[RunRef]) -> None:
        """Show runs that nobody has taken after a moment; called when they are left to others."""
        self._fresh.note(runs)

    def settle(self, events: Sequence[TaskEvent]) -> None:
        """Take in what was committed: runs that have acted need no showing."""
        self._fresh.settle(events)

    async def unready(self) -> Sequence[str]:
        """Return why runs are not executed here though they should be: nothing keeps them."""
        return ()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, that none of its runs is running here, and how many wait in the store."""
        return {agent: (0, waiting) for agent, waiting in self._backlog.counts().items()}

    async def _tick_worker(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                await self._fresh.show()
            except Exception as error:  # the next tick must come, whatever became of this one
                _LOG.warning("slow runs could not be shown as working: %s", type(error).__name__)

    async def _sweep_worker(self) -> None:
        while True:
            try:
                await self._overdue.expire()
                await self._overdue.expire_parked()
            except Exception as error:  # the next sweep must come, whatever became of this one
                _LOG.warning("a sweep failed: %s", type(error).__name__)
            await asyncio.sleep(self._sweep)
