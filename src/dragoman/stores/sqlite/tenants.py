"""What is kept of tenants, in SQLite. Every change raises one number, by which a server sees that there was one."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dragoman.gateway.audit import AuditEntry, AuditRow
from dragoman.gateway.tenants import Book, Kept, Kind, Token
from dragoman.model import TaskState
from dragoman.model.errors import Unavailable
from dragoman.stores.sqlite import auditing
from dragoman.stores.sqlite.connection import StoreError, explain, open_reader, unavailable
from dragoman.stores.sqlite.migrating import check_schema, open_store

T = TypeVar("T")
Execute = Callable[..., sqlite3.Cursor]

_COLUMNS = "id, tenant, principal, scopes, note, created_at, expires_at, revoked_at"


class SqliteBook(Book):
    """A book on one connection, whose transaction is somebody else's to begin and to commit."""

    def __init__(self, execute: Execute, now: int) -> None:
        self._execute = execute
        self._now = now

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
        return self._change("INSERT OR IGNORE INTO tenant VALUES (?, ?)", name, self.now)

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
        return self._change("INSERT OR IGNORE INTO feature VALUES (?, ?)", tenant, feature)

    def remove_feature(self, tenant: str, feature: str) -> bool:
        """See `Book`."""
        return self._change("DELETE FROM feature WHERE tenant = ? AND name = ?", tenant, feature)

    def set_limit(self, tenant: str, name: str, most: int) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT INTO tenant_limit VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET most = excluded.most WHERE most <> excluded.most",
            tenant,
            name,
            most,
        )

    def remove_limit(self, tenant: str, name: str) -> bool:
        """See `Book`."""
        return self._change("DELETE FROM tenant_limit WHERE tenant = ? AND name = ?", tenant, name)

    def add_principal(self, tenant: str, name: str) -> bool:
        """See `Book`."""
        return self._change("INSERT OR IGNORE INTO principal VALUES (?, ?, ?)", tenant, name, self.now)

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
            "INSERT OR IGNORE INTO resource VALUES (?, ?, ?, ?)", tenant, kind, name, self.now
        )

    def remove_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """See `Book`."""
        where = "tenant = ? AND kind = ? AND name = ?"
        granted = self._change(f"DELETE FROM resource_grant WHERE {where}", tenant, kind, name)
        return self._change(f"DELETE FROM resource WHERE {where}", tenant, kind, name) or granted

    def grant(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """See `Book`."""
        return self._change(
            "INSERT OR IGNORE INTO resource_grant VALUES (?, ?, ?, ?, ?)",
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
        # By two indexes: what shows is counted, and what never showed was remembered under its message.
        scopes = "(SELECT id FROM scope WHERE tenant = ? AND (? = '' OR principal = ?))"
        whose = (tenant, principal, principal)
        states = " + ".join(state.name.lower() for state in TaskState)
        counted = self._rows(
            f"SELECT 1 FROM counter WHERE context_id = '' AND {states} > 0 AND scope_id IN {scopes} LIMIT 1",
            *whose,
        )
        return bool(
            counted
            or self._rows(f"SELECT 1 FROM identity WHERE scope_id IN {scopes} LIMIT 1", *whose)
            or self._rows(
                "SELECT 1 FROM delegation WHERE tenant = ? AND (? = '' OR principal = ?) LIMIT 1", *whose
            )
        )

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
        self._execute("UPDATE identities SET version = version + 1")
        return True


def version_of(execute: Execute) -> int:
    """Return the number that every change raises."""
    version: int = execute("SELECT version FROM identities").fetchone()[0]
    return version


def consult(path: Path, work: Callable[[Book], T]) -> T:
    """Return what `work` reads of the book in a file; for any thread, and for commands beside a server.

    Raises:
        StoreError: there is no store, or it has another schema.
        Unavailable: it cannot be read just now.
    """
    if not path.is_file():
        raise StoreError(f"there is no store at {path}; name the server's data folder with --data")
    try:
        with closing(open_reader(path)) as connection:
            check_schema(connection, path)
            connection.execute("BEGIN")
            return work(SqliteBook(connection.execute, _now(connection)))
    except sqlite3.DatabaseError as error:
        raise unavailable(error) from error


def administer(path: Path, work: Callable[[Book], T]) -> T:
    """Have `work` write to the book in a file, in one transaction; for commands beside a server.

    The store is made if it is missing. A running server notices within its heartbeat.

    Raises:
        StoreError: the file is no store, or has another schema.
        Unavailable: it cannot be written to just now.
    """
    with closing(open_store(path)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = work(SqliteBook(connection.execute, _now(connection)))
            connection.execute("COMMIT")
            return result
        except sqlite3.Error as error:
            words = f"{path} {explain(error, path)} ({error}). Nothing was written"
            raise Unavailable(words) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def kept_tenants(path: Path) -> list[str]:
    """Return the tenants that a file keeps; none if it is missing or empty.

    Raises:
        StoreError: the file cannot be read as a store.
    """
    if not path.is_file() or not path.stat().st_size:
        return []
    try:
        return consult(path, lambda book: list(book.read(tokens=False).tenants))
    except Unavailable as error:
        raise StoreError(f"{path} cannot be read: {error.__cause__}") from error


@contextmanager
def all_or_nothing(execute: Execute) -> Iterator[None]:
    """Undo what was done inside if it raises, and nothing else of the transaction."""
    execute("SAVEPOINT book")
    try:
        yield
    except BaseException:
        execute("ROLLBACK TO book")
        raise
    finally:
        execute("RELEASE book")


def _now(connection: sqlite3.Connection) -> int:
    now: int = connection.execute("SELECT now_ms FROM store_clock").fetchone()[0]
    return now


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
