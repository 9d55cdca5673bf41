"""What is kept of tenants: values, and the port behind which they are kept."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol, TypeVar

from msgspec import Struct

from dragoman.gateway.audit import AuditEntry, AuditRow

T = TypeVar("T")


class Kind(StrEnum):
    """What a principal can be granted: a workspace, which agents work in, or a source, which results draw on."""

    WORKSPACE = "workspace"
    SOURCE = "source"


class Token(Struct, frozen=True, kw_only=True):
    """A token without its text, of which only a hash is kept. Times are milliseconds since 1970 UTC."""

    id: str
    tenant: str
    principal: str
    scopes: tuple[str, ...]
    note: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def state(self, now: int) -> str:
        """Return whether it is good, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "good"


class Declared(Struct, frozen=True, kw_only=True):
    """The names of the configuration, which count beside what is kept and cannot be changed by anything that is.

    `features` are those of each tenant, `limits` what bounds it (see `Allowance.limits`), `principals` pairs of tenant
    and name, `resources` what can be granted, and `grants` what each principal is.
    """

    features: Mapping[str, frozenset[str]] = MappingProxyType({})
    limits: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    principals: frozenset[tuple[str, str]] = frozenset()
    resources: frozenset[tuple[str, Kind, str]] = frozenset()
    grants: Mapping[tuple[str, str], frozenset[tuple[Kind, str]]] = MappingProxyType({})


class Kept(Struct, frozen=True, kw_only=True):
    """Everything that is kept, as one picture.

    `version` is raised by every change. `limits` are what bounds each tenant, by their names, `principals` pairs of
    tenant and name, `tokens` those that are not revoked, by hash, `resources` what can be granted, and `grants` what
    each principal is.
    """

    version: int
    tenants: Sequence[str]
    features: Mapping[str, frozenset[str]]
    principals: Sequence[tuple[str, str]]
    tokens: Mapping[bytes, Token]
    resources: Sequence[tuple[str, Kind, str]]
    grants: Mapping[tuple[str, str], frozenset[tuple[Kind, str]]]
    limits: Mapping[str, Mapping[str, int]]


class Book(Protocol):
    """What is kept of tenants, open inside one transaction.

    A method that adds tells whether it was not there before, one that removes whether it was.
    """

    @property
    def now(self) -> int:
        """The time by the store's clock, in milliseconds since 1970 UTC."""
        ...

    def read(self, *, tokens: bool = True) -> Kept:
        """Return everything; without `tokens`, which may be many, all but these."""
        ...

    def add_tenant(self, name: str) -> bool:
        """Add a tenant."""
        ...

    def remove_tenant(self, name: str) -> bool:
        """Remove a tenant and all that is kept of it, its tokens and its remote agents too. Its tasks stay."""
        ...

    def add_feature(self, tenant: str, feature: str) -> bool:
        """Give a tenant a feature."""
        ...

    def remove_feature(self, tenant: str, feature: str) -> bool:
        """Take a feature from a tenant."""
        ...

    def set_limit(self, tenant: str, name: str, most: int) -> bool:
        """Bound what a tenant may use; tells whether that is new."""
        ...

    def remove_limit(self, tenant: str, name: str) -> bool:
        """Keep no bound of this name for a tenant any more."""
        ...

    def add_principal(self, tenant: str, name: str) -> bool:
        """Add a principal."""
        ...

    def remove_principal(self, tenant: str, name: str) -> bool:
        """Remove a principal, its tokens and what it was granted. Its tasks stay."""
        ...

    def add_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """Add something that principals can be granted."""
        ...

    def remove_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """Remove it, and from everybody who was granted it."""
        ...

    def grant(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """Grant something to a principal."""
        ...

    def revoke(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """Take it from a principal."""
        ...

    def add_token(self, token: Token, hashed: bytes) -> None:
        """Keep a token."""
        ...

    def find_token(self, token_id: str) -> Token | None:
        """Return a token, revoked or not."""
        ...

    def tokens(self, tenant: str, principal: str, *, after: str, limit: int) -> Sequence[Token]:
        """Return tokens in the order of their ids, revoked ones too; of one tenant or principal, or of all if empty."""
        ...

    def revoke_token(self, token_id: str) -> bool:
        """Make a token good for nothing from now on."""
        ...

    def has_tasks(self, tenant: str, principal: str = "") -> bool:
        """Tell whether the store holds tasks of a tenant, or of one principal of it; delegations count as such."""
        ...

    def note(self, entry: AuditEntry) -> None:
        """Add to the audit."""
        ...

    def audited(self, *, since: int, after: int, limit: int) -> Sequence[AuditRow]:
        """Return rows of the audit, oldest first: those since a time, after the row with the id `after`."""
        ...


class TenantStore(Protocol):
    """Where what is known of tenants is kept."""

    async def kept(self, known: int) -> Kept | None:
        """Return everything, or `None` if its version is still `known`.

        Raises:
            Unavailable.
        """
        ...

    async def consult(self, work: Callable[[Book], T]) -> T:
        """Return what `work` reads of a book."""
        ...

    async def administer(self, work: Callable[[Book], T]) -> T:
        """Have `work` write to a book, and return its result once that is committed. If it raises, nothing is."""
        ...

    async def add_to_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries to the audit.

        Raises:
            Unavailable.
        """
        ...

    async def purge_audit(self, age: int) -> int:
        """Delete a few of the oldest entries of the audit that are older than `age` milliseconds; return how many.

        Nobody who writes waits for more than a few milliseconds. None that is younger can be deleted.

        Raises:
            Unavailable.
        """
        ...
