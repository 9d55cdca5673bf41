"""The event loop, on a thread of its own, on which one agent's handlers run.

Nothing that a handler does to its loop or thread reaches the loop that serves requests, or another agent's.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dragoman.engines.places import Places
from dragoman.engines.waiting import WaitingRuns
from dragoman.gateway.execute import AgentRuntime, Execution, execute
from dragoman.gateway.ports import Lease, RunRef, TaskStore
from dragoman.gateway.remotes import RemoteCalls
from dragoman.model.errors import Unavailable

_LOG = logging.getLogger("dragoman.engine")

GRACE = 10.0
"""Seconds that a stopped or parked handler may take to end before its place is given to another run."""

MAX_THREADS = 100_000
CLOSE_SECONDS = 2.0
"""Seconds that closing waits for handlers to take their cancellation, and again for the shutdown hooks."""


class _Entry:
    """A handler that was entered and has not ended yet.

    Attributes:
        task: what runs it.
        execution: what it acts through.
        grace: abandons it, if it is on its way out.
    """

    __slots__ = ("execution", "grace", "task")

    def __init__(self, task: asyncio.Task[None], execution: Execution) -> None:
        self.task = task
        self.execution = execution
        self.grace: asyncio.TimerHandle | None = None


class AgentLoop:
    """Runs one agent's handlers, each in a place of its own, its callers in turn.

    The handlers are the agent's own, and those of its variants: the same ones, served in another way.
    """

    def __init__(
        self,
        agent: AgentRuntime,
        store: TaskStore,
        loop: asyncio.AbstractEventLoop,
        places: Places,
        variants: Iterable[AgentRuntime] = (),
        calls: RemoteCalls | None = None,
        on_left: Callable[[str], object] = lambda task_id: None,
    ) -> None:
        """Prepare the loop; `on_left` is called, on any thread, with a task whose run is not here any more."""
        self._on_left = on_left
        self._agent = agent
        self._by_id = {one.id: one for one in (agent, *variants)}
        self._store = store
        self._calls = calls
        self._loop = loop
        self._places = places
        self._waiting = WaitingRuns()
        self._running: dict[str, _Entry] = {}
        self._returning: dict[str, RunRef] = {}
        self._known: dict[str, int] = {}
        self._counting = threading.Lock()
        self._noted: set[str] = set()
        self._notes: set[asyncio.Task[None]] = set()
        self._draining = False
        self._closing = False
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._serve, name=f"agent-{agent.id}", daemon=True)
        places.add(agent.id, agent.settings, self._wake, self._by_id)

    def start(self) -> None:
        """Start the thread and run the agent's startup hooks.

        Raises:
            Exception: as a startup hook raised it.
        """
        # As many threads as it takes: their number is bounded by the runs, plus those that were abandoned.
        threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix=f"agent-{self._agent.id}")
        self._loop.set_default_executor(threads)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._agent.startup(), self._loop).result()

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        """Have runs executed as soon as there is room; may be called from any thread."""
        self._idle.clear()
        self._places.arrive(runs)
        with self._counting:
            for run in runs:
                task_id = run.lease.task_id
                self._known[task_id] = self._known.get(task_id, 0) + 1
        self._loop.call_soon_threadsafe(self._arrive, runs)

    def stop(self, task_id: str, lease: Lease | None = None) -> None:
        """Stop the handler of a run, or only one that has `lease`; may be called from any thread."""
        with self._counting:
            if task_id not in self._known:
                return
        entry = self._running.get(task_id)
        if entry is not None and lease in (None, entry.execution.ref.lease):
            # A handler in a thread looks at this flag, also when the loop is blocked.
            entry.execution.stop()
        self._loop.call_soon_threadsafe(self._stop, task_id, lease)

    def review(self) -> None:
        """Leave out those waiting runs that were stopped by another process; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._review)

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be; may be called from any thread."""
        with self._counting:
            return task_id in self._known

    def leases(self) -> list[Lease]:
        """Return the leases of what is running here."""
        return [entry.execution.ref.lease for entry in list(self._running.values())]

    def drain(self, timeout: float) -> bool:
        """Let what is running end, start nothing new; return whether all ended within `timeout` seconds."""
        self._draining = True
        self._loop.call_soon_threadsafe(self._check_idle)
        return self._idle.wait(timeout)

    def hurry(self) -> None:
        """End a drain that is under way."""
        self._idle.set()

    def close(self) -> None:
        """Cancel what is left, run the shutdown hooks and end the thread, waiting for neither for long."""
        ended = threading.Event()

        def begin() -> None:
            shutdown = self._loop.create_task(self._shutdown())
            self._notes.add(shutdown)
            shutdown.add_done_callback(lambda _: ended.set())

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(begin)
            ended.wait(CLOSE_SECONDS)
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            # A task or callback that a handler left behind can end the loop, but not the agent: others run on it.
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                _LOG.error("something of a handler tried to end the loop of its agent", exc_info=error)

    def _arrive(self, runs: Sequence[RunRef]) -> None:
        for run in runs:
            if run.lease.task_id in self._running:
                # It was parked and is answered already, but its handler has not quite ended.
                self._returning[run.lease.task_id] = run
            else:
                self._waiting.add(run)
        self._fill()
        waiting = [run.lease for run in runs if not self._has_entered(run)]
        if waiting:
            # So that a restart does not count as an attempt for those who were never entered.
            self._noted.update(lease.task_id for lease in waiting)
            self._keep(self._loop.create_task(self._note(waiting)))

    def _keep(self, note: asyncio.Task[None]) -> None:
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    def _has_entered(self, run: RunRef) -> bool:
        entry = self._running.get(run.lease.task_id)
        return entry is not None and entry.execution.ref is run

    async def _note(self, leases: Sequence[Lease]) -> None:
        try:
            await self._store.wait(leases)
        except Unavailable as error:
            _LOG.warning("waiting runs could not be noted: %s", error.message)

    def _review(self) -> None:
        if leases := self._waiting.leases():
            self._keep(self._loop.create_task(self._drop_fenced(leases)))

    async def _drop_fenced(self, leases: Sequence[Lease]) -> None:
        try:
            fenced = set(await self._store.fenced(leases))
        except Unavailable as error:
            _LOG.warning("waiting runs that were stopped elsewhere could not be looked up: %s", error.message)
            return
        for lease in leases:
            if lease.task_id in fenced:
                self._drop(self._waiting.remove(lease.task_id, lease))
        self._check_idle()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._fill)

    def _fill(self) -> None:
        while self._waiting and not self._draining and self._places.take(self._waiting.first):
            run = self._waiting.first
            self._waiting.remove_first()
            waited = run.lease.task_id in self._noted
            self._noted.discard(run.lease.task_id)
            agent = self._by_id[run.scope.agent]
            execution = Execution(self._store, run, agent.settings, waited=waited, calls=self._calls)
            task = self._loop.create_task(execute(execution, agent.run))
            entry = self._running[run.lease.task_id] = _Entry(task, execution)
            execution.on_parked = self._parked
            task.add_done_callback(partial(self._done, entry))
        if self._draining or not self._waiting:
            self._places.decline(self._agent.id)

    def _parked(self, task_id: str) -> None:
        if (entry := self._running.get(task_id)) is not None:
            self._part(entry)

    def _part(self, entry: _Entry) -> None:
        """See to it that a handler that was stopped or parked gives its place up."""
        if entry.grace is None:
            entry.grace = self._loop.call_later(GRACE, self._abandon, entry)

    def _done(self, entry: _Entry, task: asyncio.Task[None]) -> None:
        self._leave(entry)
        run = entry.execution.ref
        if not task.cancelled() and task.exception() is not None:
            _LOG.error(
                "a run could not be ended", exc_info=task.exception(), extra={"task_id": run.lease.task_id}
            )

    def _leave(self, entry: _Entry) -> None:
        if entry.grace is not None:
            entry.grace.cancel()
        task_id = entry.execution.ref.lease.task_id
        if self._running.get(task_id) is not entry:
            return
        del self._running[task_id]
        self._forget(task_id)
        self._places.leave(self._agent.id)
        returning = self._returning.pop(task_id, None)
        if returning is not None:
            self._waiting.add(returning)
        self._fill()
        self._check_idle()

    def _forget(self, task_id: str) -> None:
        with self._counting:
            left = self._known.pop(task_id) - 1
            if left:
                self._known[task_id] = left
        if not left:
            self._on_left(task_id)

    def _check_idle(self) -> None:
        if not self._running and (self._draining or not self._waiting):
            self._idle.set()

    def _stop(self, task_id: str, lease: Lease | None) -> None:
        entry = self._running.get(task_id)
        if entry is not None and lease in (None, entry.execution.ref.lease):
            entry.execution.stop()
            entry.task.cancel()
            self._part(entry)
        if lease is None:
            # Those that nobody has entered yet are simply left out.
            self._drop(self._waiting.remove(task_id) or self._returning.pop(task_id, None))
            self._check_idle()

    def _drop(self, run: RunRef | None) -> None:
        if run is not None:
            self._places.drop(run)
            self._forget(run.lease.task_id)
            self._noted.discard(run.lease.task_id)

    def _abandon(self, entry: _Entry) -> None:
        _LOG.warning(
            "a stopped or parked handler did not end within %g s and was abandoned",
            GRACE,
            extra={"task_id": entry.execution.ref.lease.task_id},
        )
        entry.execution.stop()
        entry.task.cancel()
        self._leave(entry)

    async def _shutdown(self) -> None:
        tasks = [entry.task for entry in self._running.values()]
        for entry in list(self._running.values()):
            entry.execution.stop()
            entry.task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS / 2)
        await self._agent.shutdown()
