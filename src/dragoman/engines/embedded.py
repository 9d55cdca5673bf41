"""The embedded engine: runs execute in the server's own process, each agent on a loop of its own."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dragoman.engines.agent_loop import AgentLoop
from dragoman.engines.overdue import Overdue
from dragoman.engines.places import Places
from dragoman.engines.showing import FreshRuns
from dragoman.engines.taking_up import TakingUp
from dragoman.gateway.elsewhere import Offers
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import LostRun, RunRef, TaskStore
from dragoman.gateway.remotes import RemoteCalls
from dragoman.model import Scope, TaskEvent

_LOG = logging.getLogger("dragoman.engine")

TAKEN_AT_ONCE = 200
"""Lost runs that are taken over at a time: they share commits, and leave room between them for others."""

_TICK = 0.1


class EmbeddedEngine:
    """Implements `gateway.ports.Engine` in this process. All methods are called on the serving loop."""

    def __init__(
        self,
        agents: Iterable[AgentRuntime],
        store: TaskStore,
        *,
        max_runs: int,
        sweep: float,
        new_loop: Callable[[], asyncio.AbstractEventLoop],
        calls: RemoteCalls | None = None,
        offers: Offers | None = None,
        on_left: Callable[[str], object] = lambda task_id: None,
    ) -> None:
        """Prepare the engine.

        Args:
            agents: the agents to run.
            store: where their runs are.
            max_runs: how many runs go on at once, in all agents together.
            sweep: seconds between two looks for runs that are past their deadline or were left lying.
            new_loop: makes an event loop for an agent.
            calls: reaches remote agents for handlers; without it none can be called.
            offers: where runs are that other servers leave to whoever executes some.
            on_left: called, on any thread, with a task whose run is not here any more.
        """
        self._agents = {agent.id: agent for agent in agents}
        self._store = store
        self._sweep = sweep
        self._serving = asyncio.get_running_loop()
        self._offers = offers
        self._offered = asyncio.Event()
        self._is_full = False
        self._places = Places(max_runs, self._on_room)
        every = self._agents.values()
        self._loops = {
            agent.id: AgentLoop(
                agent,
                store,
                new_loop(),
                self._places,
                [one for one in every if one.home == agent.id and one is not agent],
                calls,
                on_left,
            )
            for agent in every
            if agent.home == agent.id
        }
        self._overdue = Overdue(every, store, self.stop)
        self._taking = TakingUp(self._agents, store)
        self._fresh = FreshRuns(self._agents, store)
        self._tasks: list[asyncio.Task[None]] = []
        self._noticed = asyncio.Event()
        self._due = asyncio.Event()
        self._unserved: set[str] = set()

    async def start(self) -> None:
        """Start the agents, then take over what an earlier server left unfinished, unless its time is over."""
        for loop in self._loops.values():
            await asyncio.to_thread(loop.start)
        while await self._overdue.expire():
            continue
        await self.recover()
        workers = [self._tick_worker(), self._sweep_worker(), self._stop_worker()]
        if self._offers is not None:
            workers.append(self._offer_worker(self._offers))
        self._tasks = [asyncio.create_task(worker) for worker in workers]

    async def stop_serving(self, drain: float) -> None:
        """Let handlers finish for up to `drain` seconds, then end them; the next server takes over what is left.

        What was accepted last, and is not begun any more, shows before, so that whoever waits for it can be told of it.
        """
        for task in self._tasks:
            task.cancel()
        loops = list(self._loops.values())
        showing = asyncio.ensure_future(self._fresh.show_rest(drain))
        # A thread each: a pool would make some wait for the others, and the drain time longer than it says.
        with ThreadPoolExecutor(len(loops) or 1) as threads:
            serving = asyncio.get_running_loop()
            await asyncio.gather(
                *(serving.run_in_executor(threads, loop.drain, drain) for loop in loops), showing
            )
            await asyncio.gather(*(serving.run_in_executor(threads, loop.close) for loop in loops))

    def hurry(self) -> None:
        """End a drain that is under way: wait for handlers no longer."""
        for loop in self._loops.values():
            loop.hurry()

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """See `Engine.reserve`."""
        return self._places.reserve(scope, task_id)

    def release(self, task_id: str) -> None:
        """See `Engine.release`."""
        self._places.release(task_id)

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        """See `Engine.dispatch`."""
        by_agent: defaultdict[str, list[RunRef]] = defaultdict(list)
        for run in runs:
            by_agent[self._agents[run.scope.agent].home].append(run)
        self._fresh.note(runs)
        for agent_id, batch in by_agent.items():
            self._loops[agent_id].dispatch(batch)

    def stop(self, task_id: str) -> None:
        """See `Engine.stop`."""
        for loop in self._loops.values():
            loop.stop(task_id)

    def look_again(self) -> None:
        """Find out whether a run was stopped by another process; called when one has written to the store."""
        self._noticed.set()

    def sweep_soon(self) -> None:
        """Look for lost runs at once; called when another server has died."""
        self._due.set()

    def leave(self, runs: Sequence[RunRef]) -> None:
        """Show runs that nobody has taken after a moment; called when they are left to others."""
        self._fresh.note(runs)

    def offered(self) -> None:
        """Look for runs that others leave to whoever executes some; called when there may be one."""
        self._offered.set()

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be."""
        return any(loop.knows(task_id) for loop in self._loops.values())

    def settle(self, events: Sequence[TaskEvent]) -> None:
        """Take in what was committed: runs that have acted need no showing."""
        self._fresh.settle(events)

    async def unready(self) -> Sequence[str]:
        """Return why runs are not executed here though they should be: nothing keeps them."""
        return ()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, how many runs are running and how many wait."""
        return self._places.counts()

    async def recover(self) -> None:
        """Take over, or end, every run that no living server holds."""
        await self._take_up(await self._store.lost())

    async def _take_up(self, runs: Sequence[LostRun]) -> None:
        served = [run for run in runs if run.scope.agent in self._agents]
        for first in range(0, len(served), TAKEN_AT_ONCE):
            await asyncio.gather(
                *(self._taking.take_up(run) for run in served[first : first + TAKEN_AT_ONCE])
            )
        for agent_id in {run.scope.agent for run in runs} - self._agents.keys() - self._unserved:
            self._unserved.add(agent_id)
            _LOG.warning(
                "unfinished runs of an agent that is not served are left as they are",
                extra={"agent": agent_id},
            )

    async def _tick_worker(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._places.pass_over()
            try:
                await self._fresh.show()
            except Exception as error:  # the next tick must come, whatever became of this one
                _LOG.warning("slow runs could not be shown as working: %s", type(error).__name__)

    async def _sweep_worker(self) -> None:
        while True:
            await self._next_sweep()
            try:
                quiet = await self._store.quiet()
                # When a write is answered, all that was committed before has been dispatched. So what was quiet before
                # this one, and is unknown after it, lies where nobody will ever take it up.
                await self._overdue.expire()
                await self._overdue.expire_parked()
                await self._take_up([run for run in quiet if not self.knows(run.task_id)])
                await self.recover()
            except Exception as error:  # the next sweep must come, whatever became of this one
                _LOG.warning("a sweep failed: %s", type(error).__name__)

    async def _next_sweep(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._sweep):
                await self._due.wait()
        self._due.clear()

    def _on_room(self) -> None:
        """Look for more runs if there was no room for all of them; called on any thread."""
        if self._offers is not None and self._is_full:
            with suppress(RuntimeError):
                self._serving.call_soon_threadsafe(self._offered.set)

    async def _offer_worker(self, offers: Offers) -> None:
        while True:
            self._offered.clear()
            try:
                await self._take_offered(offers)
            except Exception as error:  # the next look must come, whatever became of this one
                _LOG.warning("runs that wait could not be taken: %s", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._sweep):
                    await self._offered.wait()

    async def _take_offered(self, offers: Offers) -> None:
        """Take what others offer, as far as there is room: what is left goes to whoever has some."""
        taken = True
        while taken:
            free, room = self._places.room()
            taken = bool(free and room and await offers.take_offered(room, free))
        free, room = self._places.room()
        self._is_full = not free or len(room) < len(self._agents)
        if self._is_full and self._places.room() != (free, room):
            self._offered.set()

    async def _stop_worker(self) -> None:
        while True:
            await self._noticed.wait()
            self._noticed.clear()
            try:
                for loop in self._loops.values():
                    loop.review()
                    leases = loop.leases()
                    fenced = await self._store.fenced(leases)
                    for lease in leases:
                        if lease.task_id in fenced:
                            loop.stop(lease.task_id, lease)
            except Exception as error:  # the next notice must be heard, whatever became of this one
                _LOG.warning("runs stopped elsewhere could not be looked up: %s", type(error).__name__)
