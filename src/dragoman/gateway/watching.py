"""Leases of observers: how many waits and streams there may be at once, in all, by tenant and by principal."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from dragoman.model import Principal
from dragoman.model.errors import ObserverLimit

K = TypeVar("K")


class ObserverBounds(Struct, frozen=True, kw_only=True):
    """The most observers at once."""

    everybody: int = 256
    tenant: int = 16
    principal: int = 4


class SharedPlaces(Protocol):
    """Places that several servers have together, so many for each name."""

    async def take(self, bounds: Mapping[str, int]) -> Sequence[int] | None:
        """Take a place of each name, of which there are as many as its bound; `None` if one has none left.

        Raises:
            Unavailable.
        """
        ...

    def give_back(self, places: Sequence[int]) -> None:
        """Give back what was taken at once; returns before that is done. A server that dies gives back all it had."""
        ...


class Lease:
    """The right to observe, until it is released; may be released again."""

    __slots__ = ("_places", "_principal", "_watchers")

    def __init__(self, watchers: "Watchers", principal: Principal, places: Sequence[int] = ()) -> None:
        self._watchers = watchers
        self._principal: Principal | None = principal
        self._places = places

    def release(self) -> None:
        """Give the place to somebody else."""
        principal, self._principal = self._principal, None
        if principal is not None:
            self._watchers.leave(principal, self._places)


class Watchers:
    """Counts observers, here and, where servers share a store, of all of them. Lives on the serving loop."""

    def __init__(self, bounds: ObserverBounds, shared: SharedPlaces | None = None) -> None:
        self._bounds = bounds
        self._shared = shared
        self._all = 0
        self._tenants: dict[str, int] = {}
        self._principals: dict[tuple[str, str], int] = {}

    async def enter(self, principal: Principal) -> Lease:
        """Return a lease for one more observer.

        Raises:
            ObserverLimit: there are too many.
            Unavailable: other servers have some too, and it cannot be told how many.
        """
        tenant, who, bounds = principal.tenant, (principal.tenant, principal.name), self._bounds
        of_tenant, of_principal = self._tenants.get(tenant, 0), self._principals.get(who, 0)
        if self._all >= bounds.everybody or of_tenant >= bounds.tenant or of_principal >= bounds.principal:
            raise ObserverLimit
        self._all += 1
        self._tenants[tenant] = of_tenant + 1
        self._principals[who] = of_principal + 1
        if self._shared is None:
            return Lease(self, principal)
        try:
            return Lease(self, principal, await self._taken(self._shared, principal))
        except BaseException:
            self.leave(principal)
            raise

    async def _taken(self, shared: SharedPlaces, principal: Principal) -> Sequence[int]:
        # Told apart by what no name has in it.
        names = (
            "observers",
            f"observers\0{principal.tenant}",
            f"observers\0{principal.tenant}\0{principal.name}",
        )
        most = (self._bounds.everybody, self._bounds.tenant, self._bounds.principal)
        places = await shared.take(dict(zip(names, most, strict=True)))
        if places is None:
            raise ObserverLimit
        return places

    def leave(self, principal: Principal, places: Sequence[int] = ()) -> None:
        """Take an observer out, with the places that it had of all servers."""
        if self._shared is not None:
            self._shared.give_back(places)
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
