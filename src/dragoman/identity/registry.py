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
    """Tenants with their features, tokens by their hashes, and the workspaces that principals are granted.

    Attributes:
        tenants: the features of each tenant.
        tokens: the credentials by token hash.
    """

    def __init__(
        self,
        tenants: Mapping[str, Iterable[str]] = MappingProxyType({}),
        tokens: Mapping[bytes, Credential] = MappingProxyType({}),
        workspaces: Mapping[tuple[str, str], Iterable[str]] = MappingProxyType({}),
    ) -> None:
        """Put the picture together; `workspaces` are by tenant and principal."""
        self.tenants = {name: frozenset(features) for name, features in tenants.items()}
        self.tokens = dict(tokens)
        self._workspaces = {who: frozenset(names) for who, names in workspaces.items()}

    def has_feature(self, tenant: str, feature: str) -> bool:
        """Tell whether a tenant has a feature."""
        return feature in self.tenants.get(tenant, ())

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace of its tenant now."""
        return workspace in self._workspaces.get((principal.tenant, principal.name), ())

    def with_more(self, other: "Registry") -> "Registry":
        """Return this picture and another one in one: features and workspaces add up, tokens of the other win."""
        return Registry(
            {
                name: self.tenants.get(name, frozenset()) | other.tenants.get(name, frozenset())
                for name in (*self.tenants, *other.tenants)
            },
            {**self.tokens, **other.tokens},
            {
                who: self._workspaces.get(who, frozenset()) | other._workspaces.get(who, frozenset())
                for who in (*self._workspaces, *other._workspaces)
            },
        )
