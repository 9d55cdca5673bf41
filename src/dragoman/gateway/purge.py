"""Purging in the background, of tasks and of the audit: round after round, so slowly that nobody notices."""

import asyncio
import logging
import time
from collections.abc import Mapping

from dragoman.gateway.ports import TaskStore
from dragoman.gateway.tenants import TenantStore
from dragoman.model import TaskState

_LOG = logging.getLogger("dragoman.purge")

STEP_REST = 9
LONGEST_REST = 0.1
"""After a step, rest so many times as long as it took, and so many seconds at most: in a busy store a step mostly waits
for its turn, and whoever sends all day must not be able to keep the purger from following."""

ROUND_REST = 100
"""After a round, rest at least so many times as long as its steps took: looking costs 1 % at most."""

THOROUGH_SECONDS = 3600.0
"""Seconds between two thorough rounds: what nobody can see may lie a little longer."""


class Purger:
    """Deletes tasks that ended longer ago than the age of their final state. Lives on the serving loop."""

    def __init__(self, store: TaskStore, ages: Mapping[TaskState, int], *, every: float) -> None:
        """Prepare a purger.

        Args:
            store: whose tasks.
            ages: milliseconds that a task is kept, by its final state; a state that is left out is kept for ever.
            every: seconds from one round to the next.
        """
        self._store = store
        self._ages = ages
        self._every = every

    async def run(self) -> None:
        """Purge until cancelled."""
        thorough_at = time.monotonic()
        while True:
            thorough = time.monotonic() >= thorough_at
            busy = 0.0
            try:
                busy = await self.round(thorough=thorough)
            except Exception as error:  # the next round must come, whatever became of this one
                _LOG.warning("a round of purging failed: %s", type(error).__name__)
            else:
                if thorough:
                    thorough_at = time.monotonic() + THOROUGH_SECONDS
            await asyncio.sleep(max(self._every, busy * ROUND_REST))

    async def round(self, *, thorough: bool) -> float:
        """Go over the store once and return how many seconds the steps took together.

        Raises:
            Unavailable: the store cannot do its work just now.
        """
        place, tasks, busy = "", 0, 0.0
        while True:
            began = time.monotonic()
            purged = await self._store.purge(self._ages, place, thorough=thorough)
            took = time.monotonic() - began
            tasks, busy, place = tasks + purged.tasks, busy + took, purged.place
            if not place:
                break
            await asyncio.sleep(min(took * STEP_REST, LONGEST_REST))
        if tasks:
            _LOG.info("tasks purged because their time was over: %d", tasks)
        return busy


class AuditPurger:
    """Deletes what the audit tells of longer ago than an age. Lives on the serving loop."""

    def __init__(self, store: TenantStore, age: int, *, every: float) -> None:
        """Prepare a purger of the audit in `store`: `age` is in milliseconds, `every` seconds between two rounds."""
        self._store = store
        self._age = age
        self._every = every

    async def run(self) -> None:
        """Purge until cancelled."""
        while True:
            try:
                await self.round()
            except Exception as error:  # the next round must come, whatever became of this one
                _LOG.warning("a round of purging the audit failed: %s", type(error).__name__)
            await asyncio.sleep(self._every)

    async def round(self) -> None:
        """Delete everything that is too old now.

        Raises:
            Unavailable: the store cannot do its work just now.
        """
        entries = 0
        while True:
            began = time.monotonic()
            purged = await self._store.purge_audit(self._age)
            if not purged:
                break
            entries += purged
            await asyncio.sleep(min((time.monotonic() - began) * STEP_REST, LONGEST_REST))
        if entries:
            _LOG.info("entries of the audit purged because their time was over: %d", entries)
