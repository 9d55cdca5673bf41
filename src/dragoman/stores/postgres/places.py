"""Places that servers which share a store have together, a number for each name: who observes, of all, has one.

A place is an advisory lock of a session: the death of a server gives back what it had, and nothing has to be looked
after. Behind a pooler by transaction there are no such locks, and each server has as many places.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.gateway.watching import SharedPlaces
from dragoman.stores.postgres.connection import FAILURES, connect, is_lost, unavailable
from dragoman.stores.postgres.loop import StoreLoop
from dragoman.stores.target import Target

# For each name the first place that nobody has. This session could lock its own again, and would have to give it back
# as often: hence CASE, which is evaluated in its order.
_TAKE = (
    "SELECT s.key FROM unnest($1::bigint[], $2::integer[]) w (first, bound) LEFT JOIN LATERAL"
    " (SELECT w.first + n AS key FROM generate_series(0, w.bound - 1) n"
    " WHERE CASE WHEN w.first + n = ANY($3::bigint[]) THEN false ELSE pg_try_advisory_lock(w.first + n) END LIMIT 1)"
    " s ON true"
)
_KEEP = "SELECT pg_try_advisory_lock(key) FROM unnest($1::bigint[]) key"
_GIVE_BACK = "SELECT pg_advisory_unlock(key) FROM unnest($1::bigint[]) key"


class PostgresPlaces(SharedPlaces):
    """See `SharedPlaces`. The connection that holds the locks is opened when the first place is asked for."""

    def __init__(self, loop: StoreLoop, target: Target) -> None:
        self._loop = loop
        self._target = target
        self._turn = asyncio.Lock()
        self._connection: Any = None
        self._held: set[int] = set()

    async def take(self, bounds: Mapping[str, int]) -> Sequence[int] | None:
        """See `SharedPlaces.take`."""
        if self._target.by_transaction:
            return ()
        taking = asyncio.ensure_future(self._loop.call(lambda: self._take(bounds)))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._not_wanted)
            raise

    def give_back(self, places: Sequence[int]) -> None:
        """See `SharedPlaces.give_back`."""
        if places:
            self._loop.begin(lambda: self._give_back(places))

    def _not_wanted(self, taking: asyncio.Future[Sequence[int] | None]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self.give_back(taking.result() or ())

    async def close(self) -> None:
        """Give all places back; on the store's loop."""
        if self._connection is not None:
            self._connection.terminate()

    async def _take(self, bounds: Mapping[str, int]) -> Sequence[int] | None:
        values = [_first_of(name) for name in bounds], list(bounds.values())
        async with self._turn:
            try:
                db = await self._connected()
                taken = [key for (key,) in await db.fetch(_TAKE, *values, list(self._held))]
                found = [key for key in taken if key is not None]
                self._held.update(found)
                if len(found) == len(taken):
                    return found
                await self._unlock(db, found)
            except FAILURES as error:
                self._drop(error)
                raise unavailable(error) from error
        return None

    async def _give_back(self, places: Sequence[int]) -> None:
        async with self._turn:
            try:
                if self._connection is not None:
                    await self._unlock(self._connection, places)
            except FAILURES as error:
                self._drop(error)
            self._held.difference_update(places)

    async def _unlock(self, db: Any, places: Sequence[int]) -> None:
        await db.execute(_GIVE_BACK, list(places))
        self._held.difference_update(places)

    async def _connected(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._target)
            await self._connection.execute(_KEEP, list(self._held))
        return self._connection

    def _drop(self, error: BaseException) -> None:
        if self._connection is not None and is_lost(error):
            self._connection.terminate()
            self._connection = None


def _first_of(name: str) -> int:
    """Return the number of the first place of a name; further ones follow it. 62 bits: two names never meet."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 2
