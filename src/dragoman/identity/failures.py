"""Failed authentication, bounded by address."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from dragoman.model.errors import RateLimited

MOST_REMEMBERED = 10_000


class Failures:
    """Counts failed credentials by address, and bounds them (token bucket).

    From an address over its bound no credential is looked at, or guessing would go on at full speed. Those that
    were good from there before still are: many callers may share the address of a proxy, and one of them must not
    be able to lock the others out.
    """

    def __init__(
        self,
        burst: int,
        per_second: float,
        *,
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allow `burst` failures at once and `per_second` in the long run, for the `addresses` seen last."""
        self._burst = float(burst)
        self._rate = per_second
        self._most = addresses
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._good: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def check(self, address: str, digest: bytes) -> None:
        """Refuse a credential, known by its digest, from an address where too many failed of late.

        Raises:
            RateLimited: too many did, and this one was not good from there before.
        """
        if address not in self._left or (left := self._now_left(address)) >= 1:
            return
        if (address, digest) in self._good:
            return
        raise RateLimited(
            "Too many credentials from this address were not good; wait and send one that is",
            retry_after=max(1, math.ceil((1 - left) / self._rate)),
        )

    def count(self, address: str) -> None:
        """Note one more failure."""
        # Never below nothing: those that came at once, before the first was counted, are not held against later ones.
        self._left[address] = (max(0.0, self._now_left(address) - 1), self._clock())
        self._left.move_to_end(address)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def remember(self, address: str, digest: bytes) -> None:
        """Note that a credential was good."""
        self._good[address, digest] = None
        self._good.move_to_end((address, digest))
        if len(self._good) > MOST_REMEMBERED:
            self._good.popitem(last=False)

    def _now_left(self, address: str) -> float:
        left, at = self._left.get(address, (self._burst, 0.0))
        return min(self._burst, left + (self._clock() - at) * self._rate)
