"""The engine of a server, or a worker, whose runs Temporal executes."""

import asyncio
from collections.abc import Sequence

from dragoman.engines.backlog import Backlog
from dragoman.engines.embedded import EmbeddedEngine
from dragoman.engines.offering import OfferingEngine
from dragoman.engines.temporal.dispatcher import Dispatcher
from dragoman.engines.temporal.entering import Entering
from dragoman.gateway.ports import RunRef
from dragoman.model import Scope, TaskEvent

CLOSE_SECONDS = 2.0
"""Seconds that Temporal may take to hear that this process works for it no longer."""


class TemporalEngine:
    """Implements `gateway.ports.Engine`: Temporal is told of runs, and this process may execute some for it.

    Handlers run as with the embedded engine, which also looks after deadlines, and after runs that were begun before
    Temporal was the engine. All methods are called on the serving loop.
    """

    def __init__(
        self,
        handlers: EmbeddedEngine | OfferingEngine,
        backlog: Backlog,
        dispatcher: Dispatcher,
        entering: Entering | None,
    ) -> None:
        """Put the parts together.

        Args:
            handlers: runs handlers; or, where none run here, looks after deadlines alone.
            backlog: counts what waits.
            dispatcher: tells Temporal.
            entering: executes runs for Temporal, if any are executed here.
        """
        self._handlers = handlers
        self._backlog = backlog
        self._dispatcher = dispatcher
        self._entering = entering
        self._tasks: list[asyncio.Task[None]] = []
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to work. Temporal need not be there: runs are accepted, and executed when it is."""
        await self._handlers.start()
        workers = (self._backlog.run(), self._dispatcher.run())
        self._tasks = [asyncio.create_task(worker) for worker in workers]
        if self._entering is not None:
            self._work = asyncio.create_task(self._entering.run())

    async def stop_serving(self, drain: float) -> None:
        """Let handlers finish for up to `drain` seconds, then end them; others execute what is left."""
        if self._entering is not None:
            self._entering.close()
        await self._handlers.stop_serving(drain)
        if self._work is not None and self._entering is not None:
            self._entering.hand_back()
            await asyncio.wait([self._work], timeout=CLOSE_SECONDS)
            self._work.cancel()
        for task in self._tasks:
            task.cancel()

    async def unready(self) -> Sequence[str]:
        """Return why no runs are executed here though they should be; nothing where none are meant to be."""
        if self._entering is None or await self._entering.is_reachable():
            return []
        return ["Temporal cannot be reached: runs are accepted and wait"]

    def hurry(self) -> None:
        """End a drain that is under way."""
        self._handlers.hurry()

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """See `Engine.reserve`."""
        return self._backlog.reserve(scope, task_id)

    def release(self, task_id: str) -> None:
        """See `Engine.release`."""
        self._backlog.release(task_id)

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        """See `Engine.dispatch`: these were taken here."""
        self._handlers.dispatch(runs)

    def leave(self, runs: Sequence[RunRef]) -> None:
        """Have Temporal told of runs, and show those that nobody has taken after a moment."""
        self._handlers.leave(runs)
        self._dispatcher.wake()

    def stop(self, task_id: str) -> None:
        """See `Engine.stop`: Temporal is told that the run is over."""
        self._handlers.stop(task_id)
        self._dispatcher.wake()

    def look_again(self) -> None:
        """Find out whether a run was stopped by another process; called when one has written to the store."""
        self._handlers.look_again()

    def sweep_soon(self) -> None:
        """Look for lost runs at once; called when another server has died."""
        self._handlers.sweep_soon()

    def offered(self) -> None:
        """Look for runs that others leave to whoever executes some; called when there may be one."""
        self._handlers.offered()

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be."""
        return self._handlers.knows(task_id)

    def settle(self, events: Sequence[TaskEvent]) -> None:
        """Take in what was committed: runs that have acted need no showing."""
        self._handlers.settle(events)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, how many runs are running here, and how many wait, here or in the store."""
        waiting = self._backlog.counts()
        return {
            agent: (running, here + waiting.get(agent, 0))
            for agent, (running, here) in self._handlers.counts().items()
        }
