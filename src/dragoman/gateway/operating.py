"""What operators see of runs, whosever they are: facts alone, nothing of what was said."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dragoman.model import Scope, TaskState


class RunFilters(Struct, frozen=True, kw_only=True):
    """Which runs are asked for; what is empty or `None` leaves all."""

    tenant: str = ""
    principal: str = ""
    agent: str = ""
    state: TaskState | None = None


class RunView(Struct, frozen=True, kw_only=True):
    """A run. Times are milliseconds since 1970 UTC; `waits` if it waits for room, `parked` if for its caller."""

    task_id: str
    scope: Scope
    context_id: str
    state: TaskState
    since: int
    created_at: int
    deadline_at: int
    attempt: int
    waits: bool
    parked: bool


class RunStore(Protocol):
    """Where runs are, for operators."""

    async def runs(self, filters: RunFilters, *, before: str, limit: int) -> tuple[Sequence[RunView], str]:
        """Return runs, the ones begun last first, of those begun before the one with the id `before`.

        And the place where the next page begins, empty after the last one. A page may hold fewer than `limit`, or
        none, before the last one: only so many runs are looked at for it.

        Raises:
            Unavailable.
        """
        ...

    async def run(self, task_id: str) -> RunView | None:
        """Return a run; `None` if there is none of this id.

        Raises:
            Unavailable.
        """
        ...
