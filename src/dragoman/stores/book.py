"""What is kept of tenants, in tables that are alike in all stores. Every change raises one number, by which a server
sees that there was one."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dragoman.gateway.audit import AuditEntry, AuditRow
from dragoman.gateway.tenants import Book, Kept, Kind, Token
from dragoman.stores import auditing


class Rows(Protocol):
    """What a statement gives, in the manner of PEP 249."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or `None`."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        ...


Execute = Callable[[str, Sequence[Any]], Rows]
"""Runs a statement that has a `?` for each of the values."""

HasTasks = Callable[[str, str], bool]
"""Tells whether a store holds tasks of a tenant, or of one principal of it."""

_COLUMNS = "id, tenant, principal, scopes, note, created_at, expires_at, revoked_at"


class StoreBook(Book):
    """A book on one connection, whose transaction is somebody else's to begin and to commit."""

    def __init__(self, execute: Execute, now: int, has_tasks: HasTasks) -> None:
        self._execute = execute
        self._now = now
        self._has_tasks = has_tasks

    @property
    def now(self) -> int:
        """See `Book`."""
        return self._now

    def read(self, *, tokens: bool = True) -> Kept:
        """See `Book`."""
        features: defaultdict[str, set[str]] = defaultdict(set)
        grants: defaultdict[tuple[str, str], set[tuple[Kind, str]]] = defaultdict(set)
        for tenant, feature in self._rows("SELECT tenant, name FROM feature"):
            features[tenant].add(feature)
        for tenant, principal, kind, name in self._rows(
            "SELECT tenant, principal, kind, name FROM resource_grant"
        ):
            grants[tenant, principal].add((Kind(kind), name))
        limits: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for tenant, name, most in self._rows("SELECT tenant, name, most FROM tenant_limit"):
            limits[tenant][name] = most
        good = f"SELECT hash, {_COLUMNS} FROM token WHERE revoked_at IS NULL"
        resources = self._rows("SELECT tenant, kind, name FROM resource ORDER BY tenant, kind, name")
        return Kept(
            version=version_of(self._execute),
            tenants=[name for (name,) in self._rows("SELECT name FROM tenant ORDER BY name")],
            features={tenant: frozenset(found) for tenant, found in features.items()},
            principals=self._rows("SELECT tenant, name FROM principal ORDER BY tenant, name"),
            tokens={hashed: _token(columns) for hashed, *columns in self._rows(good)} if tokens else {},
            resources=[(tenant, Kind(kind), name) for tenant, kind, name in resources],
            grants={who: frozenset(found) for who, found in grants.items()},
            limits=limits,
        )

    def add_tenant(self, name: str) -> bool:
        """See `Book`."""
        return self._change("INSERT INTO tenant VALUES (?, ?) ON CONFLICT DO NOTHING", name, self.now)

    def remove_tenant(self, name: str) -> bool:
        """See `Book`."""
        tables = (
            "feature",
            "tenant_limit",
            "principal",
            "token",
            "resource",
            "resource_grant",
            "remote_agent",
        )
        removed = [self._change(f"DELETE FROM {table} WHERE tenant = ?", name) for table in tables]
        return self._change("DELETE FROM tenant WHERE name = ?", name) or any(removed)

    def add_feature(self, tenant: str, feature: str) -> bool:
        """See `Book`."""
        return self._change("INSERT INTO feature VALUES (?, ?) ON CONFLICT DO NOTHING", tenant, feature)

    def remove_feature(self, tenant: str, feature: str) -> bool:
        """See `Book`."""
        return self._change("DELETE FROM feature WHERE tenant = ? AND name = ?", tenant, feature)

    def set_limit(self, tenant: str, name: str, most: int) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT INTO tenant_limit VALUES (?, ?, ?) ON CONFLICT (tenant, name)"
            " DO UPDATE SET most = excluded.most WHERE tenant_limit.most <> excluded.most",
            tenant,
            name,
            most,
        )

    def remove_limit(self, tenant: str, name: str) -> bool:
        """See `Book`."""
        return self._change("DELETE FROM tenant_limit WHERE tenant = ? AND name = ?", tenant, name)

    def add_principal(self, tenant: str, name: str) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT INTO principal VALUES (?, ?, ?) ON CONFLICT DO NOTHING", tenant, name, self.now
        )

    def remove_principal(self, tenant: str, name: str) -> bool:
        """See `Book`."""
        tables = ("token", "resource_grant")
        removed = [
            self._change(f"DELETE FROM {table} WHERE tenant = ? AND principal = ?", tenant, name)
            for table in tables
        ]
        return self._change("DELETE FROM principal WHERE tenant = ? AND name = ?", tenant, name) or any(
            removed
        )

    def add_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT INTO resource VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", tenant, kind, name, self.now
        )

    def remove_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """See `Book`."""
        where = "tenant = ? AND kind = ? AND name = ?"
        granted = self._change(f"DELETE FROM resource_grant WHERE {where}", tenant, kind, name)
        return self._change(f"DELETE FROM resource WHERE {where}", tenant, kind, name) or granted

    def grant(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT INTO resource_grant VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            tenant,
            kind,
            name,
            principal,
            self.now,
        )

    def revoke(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """See `Book`."""
        return self._change(
            "DELETE FROM resource_grant WHERE tenant = ? AND kind = ? AND name = ? AND principal = ?",
            tenant,
            kind,
            name,
            principal,
        )

    def add_token(self, token: Token, hashed: bytes) -> None:
        """See `Book`."""
        self._change(
            f"INSERT INTO token (hash, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            hashed,
            token.id,
            token.tenant,
            token.principal,
            " ".join(token.scopes),
            token.note,
            token.created_at,
            token.expires_at,
            token.revoked_at,
        )

    def find_token(self, token_id: str) -> Token | None:
        """See `Book`."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM token WHERE id = ?", token_id)
        return _token(rows[0]) if rows else None

    def tokens(self, tenant: str, principal: str, *, after: str, limit: int) -> Sequence[Token]:
        """See `Book`."""
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM token WHERE id > ? AND (? = '' OR tenant = ?)"
            " AND (? = '' OR principal = ?) ORDER BY id LIMIT ?",
            after,
            tenant,
            tenant,
            principal,
            principal,
            limit,
        )
        return [_token(row) for row in rows]

    def revoke_token(self, token_id: str) -> bool:
        """See `Book`."""
        return self._change(
            "UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", self.now, token_id
        )

    def has_tasks(self, tenant: str, principal: str = "") -> bool:
        """See `Book`."""
        return self._has_tasks(tenant, principal)

    def note(self, entry: AuditEntry) -> None:
        """See `Book`."""
        self._execute(auditing.ADD, auditing.row(self.now, entry))

    def audited(self, *, since: int, after: int, limit: int) -> Sequence[AuditRow]:
        """See `Book`."""
        return auditing.audited(self._execute, since=since, after=after, limit=limit)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return self._execute(statement, values).fetchall()

    def _change(self, statement: str, *values: Any) -> bool:
        if self._execute(statement, values).rowcount <= 0:
            return False
        self._execute("UPDATE identities SET version = version + 1", ())
        return True


def version_of(execute: Execute) -> int:
    """Return the number that every change raises."""
    version: int = execute("SELECT version FROM identities", ()).fetchone()[0]
    return version


def _token(columns: Sequence[Any]) -> Token:
    token_id, tenant, principal, scopes, note, created_at, expires_at, revoked_at = columns
    return Token(
        id=token_id,
        tenant=tenant,
        principal=principal,
        scopes=tuple(scopes.split(" ")),
        note=note,
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
