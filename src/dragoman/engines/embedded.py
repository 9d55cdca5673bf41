"""The embedded engine: runs execute in the server's own process, each agent on a loop of its own."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dragoman.engines.agent_loop import AgentLoop
from dragoman.engines.places import Places
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import Lease, LostRun, RunRef, TaskStore
from dragoman.gateway.remotes import RemoteCalls
from dragoman.model import Scope, TaskState

_LOG = logging.getLogger("dragoman.engine")

SHOW_AFTER = 0.25
"""Seconds after which a run that did nothing yet shows as a WORKING task."""

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
    ) -> None:
        """Prepare the engine.

        Args:
            agents: the agents to run.
            store: where their runs are.
            max_runs: how many runs go on at once, in all agents together.
            sweep: seconds between two looks for runs that are past their deadline or were left lying.
            new_loop: makes an event loop for an agent.
            calls: reaches remote agents for handlers; without it none can be called.
        """
        self._agents = {agent.id: agent for agent in agents}
        self._store = store
        self._sweep = sweep
        self._places = Places(max_runs)
        every = self._agents.values()
        self._loops = {
            agent.id: AgentLoop(
                agent,
                store,
                new_loop(),
                self._places,
                [one for one in every if one.home == agent.id and one is not agent],
                calls,
            )
            for agent in every
            if agent.home == agent.id
        }
        self._patience = {
            agent.id: int(agent.settings.parked_deadline * 1000) for agent in self._agents.values()
        }
        self._flat = [agent.id for agent in self._agents.values() if agent.settings.flat_deadline]
        self._fresh: dict[str, tuple[float, Lease]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._noticed = asyncio.Event()
        self._due = asyncio.Event()
        self._unserved: set[str] = set()

    async def start(self) -> None:
        """Start the agents, then take over what an earlier server left unfinished, unless its time is over."""
        for loop in self._loops.values():
            await asyncio.to_thread(loop.start)
        while await self._expire():
            continue
        await self.recover()
        workers = (self._tick_worker(), self._sweep_worker(), self._stop_worker())
        self._tasks = [asyncio.create_task(worker) for worker in workers]

    async def stop_serving(self, drain: float) -> None:
        """Let handlers finish for up to `drain` seconds, then end them; the next server takes over what is left."""
        for task in self._tasks:
            task.cancel()
        loops = list(self._loops.values())
        # A thread each: a pool would make some wait for the others, and the drain time longer than it says.
        with ThreadPoolExecutor(len(loops) or 1) as threads:
            serving = asyncio.get_running_loop()
            await asyncio.gather(*(serving.run_in_executor(threads, loop.drain, drain) for loop in loops))
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
        due = time.monotonic() + SHOW_AFTER
        by_agent: defaultdict[str, list[RunRef]] = defaultdict(list)
        for run in runs:
            agent = self._agents[run.scope.agent]
            by_agent[agent.home].append(run)
            shows = agent.settings.replies != "message"
            if shows and run.state is TaskState.SUBMITTED:
                self._fresh[run.lease.task_id] = due, run.lease
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

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be."""
        return any(loop.knows(task_id) for loop in self._loops.values())

    def settle(self, task_id: str) -> None:
        """Note that a run has acted: it needs no showing."""
        self._fresh.pop(task_id, None)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, how many runs are running and how many wait."""
        return self._places.counts()

    async def recover(self) -> None:
        """Take over, or end, every run that no living server holds."""
        await self._take_up(await self._store.lost())

    async def _take_up(self, runs: Sequence[LostRun]) -> None:
        served = [run for run in runs if run.scope.agent in self._agents]
        for first in range(0, len(served), TAKEN_AT_ONCE):
            await asyncio.gather(*(self._take_up_one(run) for run in served[first : first + TAKEN_AT_ONCE]))
        for agent_id in {run.scope.agent for run in runs} - self._agents.keys() - self._unserved:
            self._unserved.add(agent_id)
            _LOG.warning(
                "unfinished runs of an agent that is not served are left as they are",
                extra={"agent": agent_id},
            )

    async def _take_up_one(self, run: LostRun) -> None:
        settings = self._agents[run.scope.agent].settings
        if run.entered and settings.on_lost_worker == "fail":
            await self._give_up(
                run, "The server was interrupted; the outcome is unknown and was not retried."
            )
        elif run.entered and run.attempt >= settings.max_attempts:
            await self._give_up(
                run, f"The run was interrupted in each of its {run.attempt} attempts and is not tried again."
            )
        elif await self._store.take_over(run):
            attempt = run.attempt + run.entered
            _LOG.info("took over a lost run", extra={"task_id": run.task_id, "attempt": attempt})

    async def _give_up(self, run: LostRun, text: str) -> None:
        reveal = self._agents[run.scope.agent].settings.replies != "message"
        await self._store.give_up(run, text, reveal=reveal)

    async def _tick_worker(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._places.pass_over()
            now = time.monotonic()
            slow = [(task_id, lease) for task_id, (due, lease) in self._fresh.items() if due <= now]
            if not slow:
                continue
            try:
                await self._store.begin_work([lease for _, lease in slow])
                for task_id, _ in slow:
                    self._fresh.pop(task_id, None)
            except Exception as error:  # the next tick must come, whatever became of this one
                _LOG.warning("slow runs could not be shown as working: %s", type(error).__name__)

    async def _sweep_worker(self) -> None:
        while True:
            await self._next_sweep()
            try:
                quiet = await self._store.quiet()
                # When a write is answered, all that was committed before has been dispatched. So what was quiet before
                # this one, and is unknown after it, lies where nobody will ever take it up.
                await self._expire()
                for event in await self._store.expire_parked(self._patience, self._flat):
                    _LOG.warning("a run waited too long for its caller", extra={"task_id": event.task_id})
                    self.stop(event.task_id)
                await self._take_up([run for run in quiet if not self._is_known(run)])
                await self.recover()
            except Exception as error:  # the next sweep must come, whatever became of this one
                _LOG.warning("a sweep failed: %s", type(error).__name__)

    async def _next_sweep(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._sweep):
                await self._due.wait()
        self._due.clear()

    async def _expire(self) -> int:
        """End runs that are past their deadline, and return how many."""
        events = await self._store.expire()
        for event in events:
            _LOG.warning("a run passed its deadline", extra={"task_id": event.task_id})
            self.stop(event.task_id)
        return len(events)

    def _is_known(self, run: LostRun) -> bool:
        loop = self._loops.get(run.scope.agent)
        return loop is not None and loop.knows(run.task_id)

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
