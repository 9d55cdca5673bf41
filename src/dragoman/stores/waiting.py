"""Operations that wait in a store's queue, and whoever waits for them, each on an event loop of their own."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Work = TypeVar("Work")


class Operation(Generic[Work]):
    """One piece of work and the future, on its caller's loop, that waits for it.

    Attributes:
        work: what is to be done.
        result: what it gave.
        error: what it failed by, or `None`.
        future: given the one or the other by `resolve`.
    """

    __slots__ = ("_decided", "error", "future", "loop", "result", "work")

    def __init__(self, work: Work, decided: Callable[[], object] | None) -> None:
        """Make an operation of the caller on the running loop; `decided` is called there when it is resolved."""
        self.work = work
        self._decided = decided
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None

    def settle(self) -> None:
        """Tell the caller, whether somebody still waits or not; called on the caller's loop."""
        if self._decided is not None:
            self._decided()
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def resolve(batch: Sequence[Operation[Any]]) -> None:
    """Hand the results over, in order, waking each loop once; for any thread."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Operation[Any]]] = defaultdict(list)
    for operation in batch:
        by_loop[operation.loop].append(operation)
    for loop, operations in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, operations)
        except RuntimeError:
            # The loop is closed: whoever waited has gone, and what was committed stays committed.
            continue


def _settle(operations: Sequence[Operation[Any]]) -> None:
    for operation in operations:
        operation.settle()
