"""The loop on which everything that talks to the database runs, on a thread of its own.

A connection of asyncpg belongs to one loop, and the store is asked from many: the serving loop, and that of each agent.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from dragoman.model.errors import Unavailable

T = TypeVar("T")


def closed() -> Unavailable:
    """Return what is said by a store that was closed."""
    return Unavailable("The task store is closed; the server is stopping")


class StoreLoop:
    """An event loop on a thread."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._begun: set[asyncio.Task[object]] = set()
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result; blocks the calling thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run what `work` makes on the loop and return its result; may be called on any loop.

        Raises:
            Unavailable: the loop has ended.
        """
        if self.loop.is_closed():
            raise closed()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self.loop))

    def begin(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have what `work` makes run on the loop, for nobody who waits; nothing happens if the loop has ended."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: self._keep(self.loop.create_task(work())))

    def _keep(self, task: asyncio.Task[object]) -> None:
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    def close(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
