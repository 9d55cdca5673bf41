"""Leases of observers: how many waits and streams there may be at once, in all, by tenant and by principal."""

from typing import TypeVar

from msgspec import Struct

from dragoman.model import Principal
from dragoman.model.errors import ObserverLimit

K = TypeVar("K")


class ObserverBounds(Struct, frozen=True, kw_only=True):
    """The most observers at once."""

    everybody: int = 256
    tenant: int = 16
    principal: int = 4


class Lease:
    """The right to observe, until it is released; may be released again."""

    __slots__ = ("_principal", "_watchers")

    def __init__(self, watchers: "Watchers", principal: Principal) -> None:
        self._watchers = watchers
        self._principal: Principal | None = principal

    def release(self) -> None:
        """Give the place to somebody else."""
        principal, self._principal = self._principal, None
        if principal is not None:
            self._watchers.leave(principal)


class Watchers:
    """Counts observers. Lives on the serving loop."""

    def __init__(self, bounds: ObserverBounds) -> None:
        self._bounds = bounds
        self._all = 0
        self._tenants: dict[str, int] = {}
        self._principals: dict[tuple[str, str], int] = {}

    def enter(self, principal: Principal) -> Lease:
        """Return a lease for one more observer.

        Raises:
            ObserverLimit: there are too many.
        """
        tenant, who, bounds = principal.tenant, (principal.tenant, principal.name), self._bounds
        of_tenant, of_principal = self._tenants.get(tenant, 0), self._principals.get(who, 0)
        if self._all >= bounds.everybody or of_tenant >= bounds.tenant or of_principal >= bounds.principal:
            raise ObserverLimit
        self._all += 1
        self._tenants[tenant] = of_tenant + 1
        self._principals[who] = of_principal + 1
        return Lease(self, principal)

    def leave(self, principal: Principal) -> None:
        """Take an observer out."""
        self._all -= 1
        _less(self._tenants, principal.tenant)
        _less(self._principals, (principal.tenant, principal.name))

    def count(self) -> int:
        """Return how many observers hold a lease."""
        return self._all


def _less(counts: dict[K, int], key: K) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]
