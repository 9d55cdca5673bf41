"""Everybody who may call, as one immutable picture: replaced as a whole when something changes."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from dragoman.model import Principal


class Credential(Struct, frozen=True):
    """What a token stands for.

    `id` names it where it must be named, without saying it. `expires_at` is in seconds since 1970 UTC.
    """

    id: str
    principal: Principal
    expires_at: float | None = None


class Registry:
    """Tenants with their features, tokens by their hashes, and what principals are granted: workspaces and sources.

    Attributes:
        tenants: the features of each tenant.
        tokens: the credentials by token hash.
        credentials: the same by their ids.
        limits: what bounds a tenant, by the names of `Allowance.limits`.
    """

    def __init__(
        self,
        tenants: Mapping[str, Iterable[str]] = MappingProxyType({}),
        tokens: Mapping[bytes, Credential] = MappingProxyType({}),
        workspaces: Mapping[tuple[str, str], Iterable[str]] = MappingProxyType({}),
        sources: Mapping[tuple[str, str], Iterable[str]] = MappingProxyType({}),
        limits: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> None:
        """Put the picture together; `workspaces` and `sources` are by tenant and principal, `limits` by tenant."""
        self.tenants = {name: frozenset(features) for name, features in tenants.items()}
        self.tokens = dict(tokens)
        self.credentials = {credential.id: credential for credential in self.tokens.values()}
        self._workspaces = {who: frozenset(names) for who, names in workspaces.items()}
        self._sources = {who: frozenset(names) for who, names in sources.items()}
        self.limits = {tenant: dict(named) for tenant, named in limits.items() if named}

    def has_feature(self, tenant: str, feature: str) -> bool:
        """Tell whether a tenant has a feature."""
        return feature in self.tenants.get(tenant, ())

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace of its tenant now."""
        return workspace in self._workspaces.get((principal.tenant, principal.name), ())

    def may_use(self, principal: Principal, source: str) -> bool:
        """Tell whether a principal is granted a source of its tenant now."""
        return source in self._sources.get((principal.tenant, principal.name), ())

    def with_more(self, other: "Registry") -> "Registry":
        """Return this picture and another one in one.

        Features and grants add up, tokens of the other win, and limits of this one.
        """
        return Registry(
            {
                name: self.tenants.get(name, frozenset()) | other.tenants.get(name, frozenset())
                for name in (*self.tenants, *other.tenants)
            },
            {**self.tokens, **other.tokens},
            _sum(self._workspaces, other._workspaces),
            _sum(self._sources, other._sources),
            {
                tenant: {**other.limits.get(tenant, {}), **self.limits.get(tenant, {})}
                for tenant in (*self.limits, *other.limits)
            },
        )


_Granted = Mapping[tuple[str, str], frozenset[str]]


def _sum(some: _Granted, more: _Granted) -> _Granted:
    return {who: some.get(who, frozenset()) | more.get(who, frozenset()) for who in (*some, *more)}
