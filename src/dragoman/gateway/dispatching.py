"""What a store keeps for an engine outside of it: which runs that executes, and what it is still to be told.

Each notice is written in the transaction that makes it necessary, and told after the commit, again and again until it
is certain that it has come: an engine that cannot be reached costs time, never a run. Whoever executes a run takes it
in the store first, so a notice that comes twice does nothing.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct

from dragoman.gateway.ports import LostRun
from dragoman.model import TaskState


class Notice(Enum):
    """What an engine is to be told of a run: to execute it, to go on, that it is over; or nothing."""

    START = "start"
    RESUME = "resume"
    STOP = "stop"
    NONE = "none"


class DispatchedRun(Struct, frozen=True, kw_only=True):
    """A run that an engine outside executes, as the store knows it.

    `state` is `None` if its task is gone. `is_held`: a living server other than this one executes it. `epoch` is that
    of the notice, while `run` has that of now; `tries` is how often the notice was told in vain.
    """

    task_id: str
    notice: Notice
    epoch: int
    tries: int
    run: LostRun | None
    state: TaskState | None
    is_held: bool = False


class DispatchStore(Protocol):
    """A store with runs for an engine outside. Any method raises Unavailable when it cannot do its work just now."""

    async def offered(self) -> Mapping[str, int]:
        """Return how many runs of each agent nobody has been given yet."""
        ...

    async def due(self, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
        """Return runs of which something is to be told, or that are to be looked at, those due longest first.

        For `hold` milliseconds nobody else gets them.
        """
        ...

    async def told_engine(self, run: DispatchedRun, wait: int) -> None:
        """Note that an engine knows what was to be told; the run is looked at again in `wait` milliseconds.

        One that is over is forgotten. If there is something else to tell by now, that stays.
        """
        ...

    async def not_told_engine(self, run: DispatchedRun, wait: int) -> None:
        """Note that something was told in vain; it is due again in `wait` milliseconds."""
        ...

    async def standing(self, task_id: str) -> DispatchedRun | None:
        """Return a run that an engine was told of, `None` if it knows none of this id or the run is over."""
        ...
