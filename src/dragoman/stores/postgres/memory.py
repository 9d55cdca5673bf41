"""What a server remembers of the store, so that most of what it writes needs no reading before.

It may be old: others write to the same store. Whoever goes by it has the database make sure that it still holds.
"""

import time
from collections.abc import Iterable

from dragoman.stores.postgres.rows import HeldRow
from dragoman.stores.rows import RUNNING

MOST_ROWS = 10_000
"""Rows that are remembered at most; those that were written longest ago are forgotten first."""


class Memory:
    """The rows of the runs that this server executes, as it has committed them last, and the store's clock."""

    def __init__(self) -> None:
        self._rows: dict[str, HeldRow] = {}
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
        while len(self._rows) > MOST_ROWS:
            del self._rows[next(iter(self._rows))]

    def forget(self, task_ids: Iterable[str]) -> None:
        """Forget the rows of tasks."""
        for task_id in task_ids:
            self._rows.pop(task_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._clock = None
