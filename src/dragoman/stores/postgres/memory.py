"""What a server remembers of the store, so that most of what it writes needs no reading before.

It may be old: others write to the same store. Whoever goes by it has the database make sure that it still holds.
"""

import time
from collections.abc import Iterable
from typing import Any

from dragoman.stores.postgres.rows import HeldRow
from dragoman.stores.rows import RUNNING

MOST = 10_000
"""Rows that are remembered at most, messages, and contexts; those that came longest ago are forgotten first."""

Key = tuple[int, bytes]
"""A scope's number, and a message or context id in it."""


class Memory:
    """The rows of the runs that this server executes, as it has committed them last; messages; contexts; the clock."""

    def __init__(self) -> None:
        self._rows: dict[str, HeldRow] = {}
        self._messages: dict[Key, None] = {}
        self._contexts: dict[Key, None] = {}
        self._clock: tuple[int, float] | None = None

    def note_clock(self, now: int) -> None:
        """Note what the store's clock said a moment ago."""
        self._clock = now, time.monotonic()

    @property
    def now(self) -> int | None:
        """What the store's clock says, less what the last answer took to come; `None` if it has not been looked at."""
        if self._clock is None:
            return None
        said, at = self._clock
        return said + int((time.monotonic() - at) * 1000)

    def covers(self, task_ids: Iterable[str]) -> bool:
        """Tell whether the rows of all these tasks are remembered."""
        return all(task_id in self._rows for task_id in task_ids)

    def rows(self, task_ids: Iterable[str]) -> list[HeldRow]:
        """Return the rows of tasks, which must be remembered."""
        return [self._rows[task_id] for task_id in task_ids]

    def keep(self, rows: Iterable[HeldRow], owner: int, version: int) -> None:
        """Remember rows that were just written, as that version, if a run of theirs is executed by their `owner`."""
        for row in rows:
            self._rows.pop(row.id, None)
            if row.owner == owner and row.state in RUNNING:
                row.version = version
                self._rows[row.id] = row
        _bound(self._rows)

    def note_messages(self, keys: Iterable[Key]) -> None:
        """Remember messages that have been accepted: now, or at some time."""
        _note(self._messages, keys)

    def is_new(self, message: Key) -> bool:
        """Tell whether a message may be new: it is not remembered to have been accepted."""
        return message not in self._messages

    def note_contexts(self, keys: Iterable[Key]) -> None:
        """Remember contexts that have counters."""
        _note(self._contexts, keys)

    def is_counted(self, context: Key) -> bool:
        """Tell whether a context is remembered to have counters."""
        return context in self._contexts

    def forget(self, task_ids: Iterable[str]) -> None:
        """Forget the rows of tasks."""
        for task_id in task_ids:
            self._rows.pop(task_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._messages.clear()
        self._contexts.clear()
        self._clock = None


def _note(remembered: dict[Key, None], keys: Iterable[Key]) -> None:
    for key in keys:
        remembered.pop(key, None)
        remembered[key] = None
    _bound(remembered)


def _bound(remembered: dict[Any, Any]) -> None:
    while len(remembered) > MOST:
        del remembered[next(iter(remembered))]
