"""The time within which something has to come over a connection."""

import asyncio
from collections.abc import Callable


class Deadline:
    """One deadline that moves with every request, and one timer that seldom does: mostly it is set far too early."""

    __slots__ = ("_due", "_loop", "_on_due", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[], None]) -> None:
        """Call `on_due` when time is up; it may be up for something that is no longer waited for."""
        self._loop = loop
        self._on_due = on_due
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, seconds: float) -> None:
        """Have the deadline in so many seconds, in place of the one before."""
        self._due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self._set()

    def end(self) -> None:
        """Have no deadline ever again, and forget whom to call: that is mostly who has this."""
        if self._timer is not None:
            self._timer.cancel()
        self._on_due = _nothing

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() < self._due:
            self._set()
        else:
            self._on_due()


def _nothing() -> None:
    return
