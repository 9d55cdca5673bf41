"""Leases of observers: how many waits and streams there may be at once, in all, by tenant and by principal."""

from collections import Counter

from msgspec import Struct

from dragoman.model import Principal
from dragoman.model.errors import ObserverLimit


class ObserverBounds(Struct, frozen=True, kw_only=True):
    """The most observers at once."""

    everybody: int = 256
    tenant: int = 16
    principal: int = 4


class Lease:
    """The right to observe, until it is released; may be released again."""

    __slots__ = ("_keys", "_watchers")

    def __init__(self, watchers: "Watchers", keys: tuple[str, ...]) -> None:
        self._watchers = watchers
        self._keys = keys

    def release(self) -> None:
        """Give the place to somebody else."""
        keys, self._keys = self._keys, ()
        self._watchers.leave(keys)


class Watchers:
    """Counts observers. Lives on the serving loop."""

    def __init__(self, bounds: ObserverBounds) -> None:
        self._bounds = bounds
        self._counts: Counter[str] = Counter()

    def enter(self, principal: Principal) -> Lease:
        """Return a lease for one more observer.

        Raises:
            ObserverLimit: there are too many.
        """
        whose = {
            "": self._bounds.everybody,
            principal.tenant: self._bounds.tenant,
            f"{principal.tenant}/{principal.name}": self._bounds.principal,
        }
        for key, most in whose.items():
            if self._counts[key] >= most:
                raise ObserverLimit
        self._counts.update(tuple(whose))
        return Lease(self, tuple(whose))

    def leave(self, keys: tuple[str, ...]) -> None:
        """Take an observer out."""
        for key in keys:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def count(self) -> int:
        """Return how many observers hold a lease."""
        return self._counts[""]
