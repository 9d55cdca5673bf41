"""Following what other servers commit to the same store.

They tell which events they have committed. That is a hint: what is observed here is read from the store and handed
to its observers as if it had been committed here. A hint that was lost costs time, never an event: now and then the
store is asked how far the tasks are that are observed.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dragoman.gateway.observe import Hub
from dragoman.gateway.watching import SharedPlaces
from dragoman.model import TaskEvent
from dragoman.model.errors import Unavailable

GATHER_SECONDS = 0.005
"""How long hints gather before the store is read: the number of reads is set by this, not by that of events."""

RETRY_SECONDS = 0.5
SWEEP_SECONDS = 2.0
ASKED_AT_ONCE = 5000
"""Tasks that are asked for in one read at most."""

_LOG = logging.getLogger("dragoman.store")

Spans = Mapping[str, tuple[int, int]]
"""Task → the first and the last of its events that were committed."""


class Shared(Protocol):
    """A store that other servers write to as well.

    Attributes:
        places: places that its servers have together.
    """

    @property
    def places(self) -> SharedPlaces:
        """See the class."""
        ...

    async def committed(self, spans: Spans) -> Sequence[TaskEvent]:
        """Return events of tasks that were reached through their scopes before, in order; purged ones are left out.

        Raises:
            Unavailable.
        """
        ...

    async def heads(self, task_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the last sequence number of each of these tasks; purged ones are left out.

        Raises:
            Unavailable.
        """
        ...

    async def tell_spent(self, spent: Sequence[str]) -> None:
        """Tell other servers what callers have drawn here; words without spaces, whose form is the teller's.

        Raises:
            Unavailable.
        """
        ...


class Backlogged(Protocol):
    """A store in which runs may wait for whoever executes them."""

    async def offered(self) -> Mapping[str, int]:
        """Return how many there are of each agent.

        Raises:
            Unavailable.
        """
        ...


class Offers(Backlogged, Protocol):
    """One that others take such runs from."""

    async def take_offered(self, room: Mapping[str, int], most: int) -> int:
        """Take runs for this server, and return how many: they are committed as runs to execute.

        Of each agent as many as there is `room` for, its callers in turn, and not more than `most` in all. A run that
        was never entered loses no attempt.

        Raises:
            Unavailable.
        """
        ...


class Elsewhere:
    """Hands what others have committed to the observers here. Lives on the serving loop."""

    def __init__(
        self, store: Shared, hub: Hub, *, runs_here: Callable[[str], bool], stopped: Callable[[], None]
    ) -> None:
        """Prepare to follow.

        Args:
            store: what others write to.
            hub: who observes here.
            runs_here: tells whether the run of a task is executed here.
            stopped: called when such a run may have been stopped by another server.
        """
        self._store = store
        self._hub = hub
        self._runs_here = runs_here
        self._stopped = stopped
        self._told: dict[str, tuple[int, int]] = {}
        self._wake = asyncio.Event()
        self._swept = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to follow."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._sweep())]

    def close(self) -> None:
        """Follow no longer."""
        for task in self._tasks:
            task.cancel()

    def hear(self, spans: Spans) -> None:
        """Take a hint."""
        for task_id, (first, last) in spans.items():
            if self._hub.is_observed(task_id):
                known = self._told.get(task_id, (first, last))
                self._told[task_id] = min(first, known[0]), max(last, known[1])
                self._wake.set()
        if any(map(self._runs_here, spans)):
            self._stopped()

    def miss(self) -> None:
        """Look at once how far tasks are: hints may have been lost."""
        self._swept.set()
        self._stopped()

    async def _read(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._wake.clear()
            told, self._told = self._told, {}
            try:
                self._hub.publish(await self._store.committed(told))
            except Unavailable:
                _LOG.warning("events of other servers cannot be read just now: %d tasks", len(told))
                await asyncio.sleep(RETRY_SECONDS)
                self._swept.set()

    async def _sweep(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._swept.wait()
            except TimeoutError:
                pass
            self._swept.clear()
            observed = self._hub.observed()
            for first in range(0, len(observed), ASKED_AT_ONCE):
                asked = observed[first : first + ASKED_AT_ONCE]
                try:
                    heads = await self._store.heads(asked)
                except Unavailable:
                    await asyncio.sleep(RETRY_SECONDS)
                    break
                self._hub.catch_up(heads)
                self._hub.lose(task_id for task_id in asked if task_id not in heads)
