"""What there is of tenants: what is kept and what the configuration says, in one view."""

import difflib
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from dragoman.gateway.tenants import Declared, Kept, Kind
from dragoman.model.errors import EntryNotFound

STORE = "store"
CONFIGURATION = "configuration"
BOTH = "both"


class TenantView(Struct, frozen=True, kw_only=True):
    """A tenant. `origin` says where it is: in the store, in the configuration, or in both.

    `limits` are those that are its own; what it has none of is as for every tenant.
    """

    name: str
    origin: str
    features: tuple[str, ...]
    principals: int
    limits: Mapping[str, int]


class PrincipalView(Struct, frozen=True, kw_only=True):
    """A principal, what it is granted, and how many tokens of it are kept that are not revoked."""

    name: str
    origin: str
    workspaces: tuple[str, ...]
    sources: tuple[str, ...]
    tokens: int


class ResourceView(Struct, frozen=True, kw_only=True):
    """A workspace or a source, and the principals that are granted it."""

    name: str
    origin: str
    granted: tuple[str, ...]


class Overview:
    """Looks things up. Everything is in the order of its names."""

    def __init__(self, kept: Kept, declared: Declared) -> None:
        self.kept = kept
        self.declared = declared

    def tenants(self) -> list[TenantView]:
        """Return all tenants."""
        return [self._tenant(name) for name in sorted({*self.kept.tenants, *self.declared.features})]

    def tenant(self, name: str) -> TenantView:
        """Return a tenant.

        Raises:
            EntryNotFound: there is none of this name.
        """
        self.require_tenant(name)
        return self._tenant(name)

    def principals(self, tenant: str) -> list[PrincipalView]:
        """Return the principals of a tenant.

        Raises:
            EntryNotFound: there is no such tenant.
        """
        self.require_tenant(tenant)
        return [self._principal(tenant, name) for name in self.principal_names(tenant)]

    def resources(self, tenant: str, kind: Kind) -> list[ResourceView]:
        """Return the workspaces or the sources of a tenant.

        Raises:
            EntryNotFound: there is no such tenant.
        """
        self.require_tenant(tenant)
        granted = {name: self._granted(tenant, name) for name in self.principal_names(tenant)}
        return [
            ResourceView(
                name=resource,
                origin=_origin(
                    self.keeps_resource(tenant, kind, resource),
                    self.declares_resource(tenant, kind, resource),
                ),
                granted=tuple(name for name, grants in granted.items() if (kind, resource) in grants),
            )
            for resource in self.resource_names(tenant, kind)
        ]

    def principal_names(self, tenant: str) -> list[str]:
        """Return the names of the principals of a tenant."""
        return sorted(
            {name for owner, name in {*self.kept.principals, *self.declared.principals} if owner == tenant}
        )

    def resource_names(self, tenant: str, kind: Kind) -> list[str]:
        """Return the names of the workspaces or the sources of a tenant."""
        everything = {*self.kept.resources, *self.declared.resources}
        return sorted(name for owner, found, name in everything if (owner, found) == (tenant, kind))

    def keeps_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """Tell whether a workspace or a source is kept."""
        return (tenant, kind, name) in self.kept.resources

    def declares_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """Tell whether the configuration names a workspace or a source."""
        return (tenant, kind, name) in self.declared.resources

    def require_tenant(self, name: str) -> None:
        """Make sure that there is a tenant.

        Raises:
            EntryNotFound: there is none of this name.
        """
        _require("tenant", name, {*self.kept.tenants, *self.declared.features})

    def require_principal(self, tenant: str, name: str) -> None:
        """Make sure that there are a tenant and a principal.

        Raises:
            EntryNotFound: one of them is not there.
        """
        self.require_tenant(tenant)
        _require("principal", name, self.principal_names(tenant), tenant)

    def require_resource(self, tenant: str, kind: Kind, name: str) -> None:
        """Make sure that there are a tenant and a workspace or source.

        Raises:
            EntryNotFound: one of them is not there.
        """
        self.require_tenant(tenant)
        _require(kind, name, self.resource_names(tenant, kind), tenant)

    def _tenant(self, name: str) -> TenantView:
        empty: frozenset[str] = frozenset()
        features = self.kept.features.get(name, empty) | self.declared.features.get(name, empty)
        return TenantView(
            name=name,
            origin=_origin(name in self.kept.tenants, name in self.declared.features),
            features=tuple(sorted(features)),
            principals=len(self.principal_names(name)),
            limits=dict(
                sorted({**self.kept.limits.get(name, {}), **self.declared.limits.get(name, {})}.items())
            ),
        )

    def _principal(self, tenant: str, name: str) -> PrincipalView:
        who, grants = (tenant, name), self._granted(tenant, name)
        return PrincipalView(
            name=name,
            origin=_origin(who in self.kept.principals, who in self.declared.principals),
            workspaces=_names(grants, Kind.WORKSPACE),
            sources=_names(grants, Kind.SOURCE),
            tokens=sum((token.tenant, token.principal) == who for token in self.kept.tokens.values()),
        )

    def _granted(self, tenant: str, name: str) -> frozenset[tuple[Kind, str]]:
        who, nothing = (tenant, name), frozenset[tuple[Kind, str]]()
        return self.kept.grants.get(who, nothing) | self.declared.grants.get(who, nothing)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that looks most like one that is not there; empty if none does."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""


def _require(what: str, name: str, known: Collection[str], tenant: str = "") -> None:
    if name not in known:
        raise EntryNotFound(what, name, tenant=tenant, near=nearest(name, known))


def _names(grants: Iterable[tuple[Kind, str]], kind: Kind) -> tuple[str, ...]:
    return tuple(sorted(name for found, name in grants if found is kind))


def _origin(kept: bool, declared: bool) -> str:
    if kept and declared:
        return BOTH
    return STORE if kept else CONFIGURATION
