"""How often callers may ask: requests a minute, of each principal and of each tenant."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from dragoman.model import Principal
from dragoman.model.allowance import Allowance
from dragoman.model.errors import RateLimited

WINDOW = 60.0
"""Seconds in which a bucket that is empty fills again."""

_Key = str | tuple[str, str]


class _Bucket(NamedTuple):
    """How much of a bucket was used at a time, and its size; 0 if that is not known."""

    used: float
    at: float
    most: int


class Rates:
    """Counts requests (token buckets): as many at once as may come in a minute, and then one whenever it is due.

    Lives on the serving loop. A bucket that nobody has drawn from for a minute is full, so it is forgotten: there are
    as many as principals were there in the last minute.

    Attributes:
        shares: whether other servers are told what is drawn here, and tell what is drawn there.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[_Key, _Bucket] = OrderedDict()
        self._spent: Counter[_Key] = Counter()
        self.shares = False

    def draw(self, principal: Principal, allowance: Allowance) -> RateLimited | None:
        """Count a request, or return why it is one too many; that one is not counted against anybody."""
        own, all_together = allowance.rate.principal, allowance.rate.tenant
        if own is None and all_together is None:
            return None
        now = self._clock()
        draws: list[tuple[_Key, _Bucket]] = []
        for key, most, limit, whose in (
            ((principal.tenant, principal.name), own, "rate.principal", "this principal"),
            (principal.tenant, all_together, "rate.tenant", "this tenant"),
        ):
            if most is None:
                continue
            used = self._used(key, most, now)
            if used > most - 1:
                wait = math.ceil((used - most + 1) * WINDOW / most)
                return RateLimited(
                    f"Too many requests of {whose}: {most} a minute are allowed. Send it again in {wait} s",
                    metadata={"limit": limit},
                    retry_after=wait,
                )
            draws.append((key, _Bucket(used + 1, now, most)))
        for key, bucket in draws:
            self._keep(key, bucket)
            if self.shares:
                self._spent[key] += 1
        self._forget(now)
        return None

    def take_spent(self) -> Sequence[str]:
        """Return what was drawn since this was asked last: of whom, and how often, in a form that `hear` reads."""
        spent, self._spent = self._spent, Counter()
        return [f"{_text(key)}:{number}" for key, number in spent.items()]

    def hear(self, spent: Iterable[str]) -> None:
        """Count what was drawn at another server."""
        now = self._clock()
        for one in spent:
            text, _, number = one.rpartition(":")
            key = _key(text)
            known = self._buckets.get(key)
            most = 0 if known is None else known.most
            self._keep(key, _Bucket(self._used(key, most, now) + int(number), now, most))
        if self._buckets:
            self._forget(now)

    def __len__(self) -> int:
        """Return how many buckets are remembered."""
        return len(self._buckets)

    def _used(self, key: _Key, most: int, now: float) -> float:
        """Return how much of a bucket is used; of one whose size is not known yet nothing has come back."""
        found = self._buckets.get(key)
        if found is None:
            return 0.0
        used = found.used - (now - found.at) * most / WINDOW
        return max(0.0, min(used, float(most)) if most else used)

    def _keep(self, key: _Key, bucket: "_Bucket") -> None:
        self._buckets[key] = bucket
        self._buckets.move_to_end(key)

    def _forget(self, now: float) -> None:
        # The one that was drawn from last is never forgotten here, so there is always a first one.
        while True:
            key, bucket = next(iter(self._buckets.items()))
            if now - bucket.at < WINDOW:
                return
            del self._buckets[key]


def _text(key: _Key) -> str:
    """Return a key without a space or a colon; the slash tells a principal from its tenant."""
    names = (key,) if isinstance(key, str) else key
    return "/".join(quote(name, safe="") for name in names)


def _key(text: str) -> _Key:
    tenant, slash, name = text.partition("/")
    return (unquote(tenant), unquote(name)) if slash else unquote(tenant)
