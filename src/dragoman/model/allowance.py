"""How much a tenant and each of its principals may use: requests a minute, tasks that go on, tasks that are kept."""

from collections.abc import Iterator, Mapping

from msgspec import Struct


class Bound(Struct, frozen=True, forbid_unknown_fields=True):
    """`limits.KIND`: the most that there may be, for a whole tenant and for each of its principals."""

    tenant: int | None = None
    principal: int | None = None


class Allowance(Struct, frozen=True, forbid_unknown_fields=True):
    """`limits`: all bounds.

    `rate` bounds requests a minute, `running` the tasks that are not finished, and `stored` the tasks there are.
    """

    rate: Bound = Bound()
    running: Bound = Bound()
    stored: Bound = Bound()

    def limits(self) -> dict[str, int]:
        """Return the bounds that are set, by their names, such as `rate.principal`."""
        return dict(self._named())

    def with_others(self, limits: Mapping[str, int]) -> "Allowance":
        """Return this allowance with some bounds set to others, by their names."""
        named = {**self.limits(), **limits}
        return Allowance(
            **{
                kind: Bound(named.get(f"{kind}.tenant"), named.get(f"{kind}.principal"))
                for kind in Allowance.__struct_fields__
            }
        )

    def _named(self) -> Iterator[tuple[str, int]]:
        for name in LIMITS:
            kind, _, whose = name.partition(".")
            most = getattr(getattr(self, kind), whose)
            if most is not None:
                yield name, most


LIMITS = tuple(f"{kind}.{whose}" for kind in Allowance.__struct_fields__ for whose in Bound.__struct_fields__)
"""The names of all bounds."""

LARGEST = 1_000_000_000
"""The largest number that a bound can be."""
