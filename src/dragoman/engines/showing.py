"""Runs that did nothing yet: after a moment they show as WORKING tasks, so that their callers get an answer."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import Lease, RunRef, TaskStore
from dragoman.model import ArtifactChunk, Reply, StatusChange, TaskEvent, TaskState
from dragoman.model.errors import Unavailable

SHOW_AFTER = 0.25
"""Seconds after which a run that did nothing yet shows as a WORKING task."""

LOOK_SECONDS = 0.05


class FreshRuns:
    """Those of them that are known here. Lives on the serving loop."""

    def __init__(self, agents: Mapping[str, AgentRuntime], store: TaskStore) -> None:
        self._agents = agents
        self._store = store
        self._after = SHOW_AFTER
        self._fresh: dict[str, tuple[float, Lease]] = {}

    def note(self, runs: Iterable[RunRef]) -> None:
        """Begin to wait for the first act of runs, unless their agents never show tasks."""
        due = time.monotonic() + self._after
        for run in runs:
            shows = self._agents[run.scope.agent].settings.replies != "message"
            if shows and run.state is TaskState.SUBMITTED:
                self._fresh[run.lease.task_id] = due, run.lease

    def settle(self, events: Iterable[TaskEvent]) -> None:
        """Take in what was committed: a run that has acted or answered needs no showing."""
        for event in events:
            if isinstance(event.change, (StatusChange, ArtifactChunk, Reply)):
                self._fresh.pop(event.task_id, None)

    async def show_rest(self, within: float) -> None:
        """Show all of them when their time has come, if they still did nothing: nobody looks after them later.

        It is given up after `within` seconds, and where the store does not answer.
        """
        with suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(within):
                while self._fresh:
                    await asyncio.sleep(LOOK_SECONDS)
                    await self.show()

    async def show(self) -> None:
        """Show those that have waited for long enough.

        Raises:
            Unavailable.
        """
        now = time.monotonic()
        slow = [(task_id, lease) for task_id, (due, lease) in self._fresh.items() if due <= now]
        if slow:
            await self._store.begin_work([lease for _, lease in slow])
            for task_id, _ in slow:
                self._fresh.pop(task_id, None)
