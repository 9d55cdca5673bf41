"""The public keys of an issuer (RFC 7517), and how fresh they have to be."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Protocol

from dragoman import jose
from dragoman.identity.issuer import Document, FetchError, read_object
from dragoman.model.errors import Unavailable

_LOG = logging.getLogger("dragoman.identity")

PATIENCE = 5.0
"""Seconds that requests wait for fresh keys while older ones would still do."""

LONGEST_WAIT = 10.0
"""Seconds that a request waits for keys that it cannot do without."""

SHORTEST_AGE = 60.0
"""Seconds that keys count as fresh even if their server says less: it must not be asked for every request."""


class PublicKeys(jose.PublicKeys):
    """The issuer's keys."""

    @classmethod
    def read(cls, body: bytes) -> "PublicKeys":
        """Return the keys in a document.

        Raises:
            FetchError: it is no JWK Set.
        """
        found = read_object(body, "the address of the keys").get("keys")
        if not isinstance(found, list):
            raise FetchError("the address of the keys answers with something else than a JWK Set")
        return cls([one for one in found if jose.is_usable(one)])


class KeySource(Protocol):
    """Where keys come from (see `issuer.Issuer`)."""

    async def keys(self) -> Document:
        """Return the JWK Set.

        Raises:
            FetchError: it cannot be had.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class KeyRing:
    """Keeps an issuer's keys, and fetches them when they are needed: one fetch at a time, and never too often.

    Fresh keys are used as they are. Older ones are replaced first; if that fails they still count for a while, so
    that a short outage of the issuer locks nobody out. Keys that are not in the newest set count no more.
    """

    def __init__(
        self,
        source: KeySource,
        *,
        max_age: float,
        refetch: float,
        stale: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the ring.

        Args:
            source: where they come from.
            max_age: seconds that keys are fresh at most; their server may say less.
            refetch: seconds between two fetches at least, whatever asks for them.
            stale: seconds that keys still count after that if no newer ones can be had.
            clock: seconds that only grow.
        """
        self._source = source
        self._max_age = max_age
        self._refetch = refetch
        self._stale = stale
        self._clock = clock
        self._keys: PublicKeys | None = None
        self._fresh_until = -math.inf
        self._tried = -math.inf
        self._failed = False
        self._flight: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch, so that the first request need not wait, and a wrong address shows at once."""
        self._fly()

    async def close(self) -> None:
        """Stop fetching, and let the source go."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait({self._flight})
        await self._source.close()

    async def current(self) -> PublicKeys:
        """Return the keys that count now.

        Raises:
            Unavailable: there are none, and none can be had.
        """
        now = self._clock()
        if self._keys is not None and now < self._fresh_until:
            return self._keys
        usable = self._keys is not None and now < self._fresh_until + self._stale
        flight = self._fly()
        # After a failure nobody waits for the next try: it may take as long as the last one.
        if flight is not None and not (usable and self._failed):
            await self._wait(flight, max(0.0, self._tried + PATIENCE - now) if usable else LONGEST_WAIT)
        if self._keys is None or self._clock() >= self._fresh_until + self._stale:
            raise self._unavailable()
        return self._keys

    async def looked_for(self, kid: str) -> PublicKeys:
        """Return the keys that count now, fetched once more if that may bring one that is not among them.

        Raises:
            Unavailable: whether it is one of the issuer's cannot be told now.
        """
        keys = await self.current()
        if kid in keys:
            return keys
        flight = self._fly()
        landed = flight is None or await self._wait(flight, LONGEST_WAIT)
        keys = self._keys if self._keys is not None else keys
        if kid not in keys and (self._failed or not landed):
            raise self._unavailable()
        return keys

    def _fly(self) -> "asyncio.Task[None] | None":
        """Return the fetch that goes on: one that began before, or a new one; `None` if it is too early for one."""
        if self._flight is None or self._flight.done():
            now = self._clock()
            if now < self._tried + self._refetch:
                return None
            self._tried = now
            self._flight = asyncio.create_task(self._renew(now))
        return self._flight

    async def _renew(self, now: float) -> None:
        try:
            document = await self._source.keys()
            keys = PublicKeys.read(document.body)
        except FetchError as error:
            self._failed = True
            left = self._fresh_until + self._stale - now
            if self._keys is None or left <= 0:
                _LOG.warning("the issuer's keys cannot be had, so no JWT is good: %s", error)
            else:
                _LOG.warning("the issuer's keys cannot be had; older ones count for %.0f s: %s", left, error)
            return
        if not keys:
            _LOG.warning("the issuer has no key that could check a signature, so no JWT is good")
        age = self._max_age
        if document.max_age is not None:
            age = min(age, max(document.max_age, SHORTEST_AGE))
        self._failed = False
        self._fresh_until = now + age
        # The same object as long as they are the same: what was found out with them still holds.
        if self._keys is None or self._keys.members != keys.members:
            self._keys = keys

    async def _wait(self, flight: "asyncio.Task[None]", seconds: float) -> bool:
        """Wait for the end of a fetch, but not for ever, and tell whether it came."""
        # Never cancelled by one who waits: others wait for it too.
        await asyncio.wait({flight}, timeout=seconds)
        if flight.done() and not flight.cancelled():
            flight.result()
        return flight.done()

    def _unavailable(self) -> Unavailable:
        wait = math.ceil(self._tried + self._refetch - self._clock())
        return Unavailable(
            "Whether this credential is good cannot be told just now; send the same request again",
            retry_after=max(1, wait),
        )
