"""How often callers may ask: requests a minute, of each principal and of each tenant."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from dragoman.model import Principal
from dragoman.model.allowance import Allowance
from dragoman.model.errors import RateLimited

WINDOW = 60.0
"""Seconds in which a bucket that is empty fills again."""

_Key = str | tuple[str, str]


class Rates:
    """Counts requests (token buckets): as many at once as may come in a minute, and then one whenever it is due.

    Lives on the serving loop. A bucket that nobody has drawn from for a minute is full, so it is forgotten: there are
    as many as principals were there in the last minute.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[_Key, tuple[float, float]] = OrderedDict()

    def draw(self, principal: Principal, allowance: Allowance) -> RateLimited | None:
        """Count a request, or return why it is one too many; that one is not counted against anybody."""
        own, all_together = allowance.rate.principal, allowance.rate.tenant
        if own is None and all_together is None:
            return None
        now = self._clock()
        draws: list[tuple[_Key, float]] = []
        for key, most, limit, whose in (
            ((principal.tenant, principal.name), own, "rate.principal", "this principal"),
            (principal.tenant, all_together, "rate.tenant", "this tenant"),
        ):
            if most is None:
                continue
            left = self._left(key, most, now)
            if left < 1:
                wait = math.ceil((1 - left) * WINDOW / most)
                return RateLimited(
                    f"Too many requests of {whose}: {most} a minute are allowed. Send it again in {wait} s",
                    metadata={"limit": limit},
                    retry_after=wait,
                )
            draws.append((key, left - 1))
        for key, left in draws:
            self._buckets[key] = (left, now)
            self._buckets.move_to_end(key)
        self._forget(now)
        return None

    def __len__(self) -> int:
        """Return how many buckets are remembered."""
        return len(self._buckets)

    def _left(self, key: _Key, most: int, now: float) -> float:
        found = self._buckets.get(key)
        if found is None:
            return float(most)
        left, at = found
        return min(float(most), left + (now - at) * most / WINDOW)

    def _forget(self, now: float) -> None:
        # The one that was drawn from last is never forgotten here, so there is always a first one.
        while True:
            key, (_, at) = next(iter(self._buckets.items()))
            if now - at < WINDOW:
                return
            del self._buckets[key]
