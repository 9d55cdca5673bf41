"""The connections that read: a pool, from which whoever reads has one for as long as that takes."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from dragoman.stores.postgres.connection import FAILURES, Database, is_clash, is_lost, one_session, open_pool
from dragoman.stores.target import Target

T = TypeVar("T")
Query = Callable[[Database], Coroutine[Any, Any, T]]

READERS = 8
"""Connections that read, at most."""

ACQUIRE_SECONDS = 5.0
"""How long a read waits for a connection."""


class Readers:
    """Lives on the store's loop. What it raises are `FAILURES`, and what queries raise."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pool: Any = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Make the pool; the first connection is opened when it is needed."""
        self._pool = await open_pool(self._target, READERS)

    async def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            with suppress(*FAILURES):
                async with asyncio.timeout(1):
                    await self._pool.close()
            self._pool.terminate()

    def acquire(self) -> Any:
        """Return what has a connection while it is entered."""
        return self._pool.acquire(timeout=ACQUIRE_SECONDS)

    async def renew(self) -> None:
        """Read on new connections only: those that there are may lead to where the database was before."""
        await self._pool.expire_connections()

    async def read(self, query: Query[T], *, snapshot: bool) -> T:
        """Return what a query finds, in one statement, or in one snapshot."""
        try:
            return await self._read(query, snapshot)
        except FAILURES as error:
            # The database may have been started again since this connection was last used, or have a change of
            # the schema go first.
            if not is_clash(error) and (not is_lost(error) or isinstance(error, TimeoutError)):
                raise
        return await self._read(query, snapshot)

    async def read_long(self, query: Query[T]) -> T:
        """Return what a query finds in one snapshot that takes its time.

        One after the other, and on one connection: many at once would leave neither time nor connections for others.
        """
        async with self._turn:
            return await self.read(query, snapshot=True)

    async def _read(self, query: Query[T], snapshot: bool) -> T:
        async with self.acquire() as connection:
            try:
                if not snapshot:
                    async with one_session(connection, self._target):
                        return await query(connection)
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    return await query(connection)
            except FAILURES as error:
                if is_lost(error):
                    # Giving it back would wait for the answer that does not come.
                    connection.terminate()
                raise
