"""Operators beside a running server: reading and single writes on its file, without taking it over.

A write is one short transaction of its own. The server notices it within its heartbeat and stops what must stop.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import Hook, HookState
from dragoman.gateway.ports import Purged
from dragoman.gateway.remotes import Remote, Seal
from dragoman.model import Cursor, Filters, Scope, TaskEvent, TaskFold, TaskPage, TaskState
from dragoman.model.errors import Unavailable
from dragoman.stores.errors import StoreError
from dragoman.stores.operating import StoreOperator, Wanted
from dragoman.stores.sqlite import commands, hooks, purge, queries, remotes
from dragoman.stores.sqlite.connection import explain, open_reader, open_writer
from dragoman.stores.sqlite.migrating import check_schema
from dragoman.stores.sqlite.ownership import HEARTBEAT_TIMEOUT_MS
from dragoman.stores.sqlite.writer import Transaction

T = TypeVar("T")


class Operator(StoreOperator):
    """See `StoreOperator`; on a SQLite file."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            StoreError: there is none, or it is no store.
        """
        if not path.is_file():
            raise StoreError(f"there is no store at {path}; name the server's data folder with --data")
        self._path = path
        try:
            self._reader = open_reader(path)
            self.scopes = queries.scopes(self._reader)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read as a store: {error}") from error

    def page(self, filters: Filters, size: int, cursor: Cursor | None) -> TaskPage:
        """See `StoreOperator.page`."""
        return queries.page(self._reader, filters, size, cursor, 0, False)

    def find(self, task_id: str, *, hidden: bool = False) -> tuple[Scope, TaskFold] | None:
        """See `StoreOperator.find`."""
        scope = queries.scope_of(self._reader, task_id)
        fold = queries.peek(self._reader, scope, task_id, hidden) if scope is not None else None
        return (scope, fold) if scope is not None and fold is not None else None

    def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        """See `StoreOperator.events`."""
        return queries.events(self._reader, task_id, 0)

    def now(self) -> int:
        """See `StoreOperator.now`."""
        now: int = self._reader.execute("SELECT now_ms FROM store_clock").fetchone()[0]
        return now

    def is_served(self) -> bool:
        """See `StoreOperator.is_served`."""
        row = self._reader.execute("SELECT now_ms - heartbeat_at FROM server, store_clock").fetchone()
        return bool(row[0] <= HEARTBEAT_TIMEOUT_MS)

    def cancel(self, scope: Scope, task_id: str, audit: AuditEntry | None = None) -> TaskEvent:
        """See `StoreOperator.cancel`."""
        return self._write(lambda tx: commands.cancel(tx, scope, task_id, audit))

    def note(self, entry: AuditEntry) -> None:
        """See `StoreOperator.note`."""
        self._write(lambda tx: tx.note(entry, entry.target, entry.outcome, entry.detail))

    def count(self, before: Mapping[TaskState, int], agent: str) -> int:
        """See `StoreOperator.count`."""
        return purge.count(self._reader, Wanted(before, agent))

    def purge(self, before: Mapping[TaskState, int], agent: str, place: str) -> Purged:
        """See `StoreOperator.purge`."""
        wanted = Wanted(before, agent)
        return self._write(lambda tx: purge.step(tx, wanted, place, thorough=True))

    def purge_task(self, scope: Scope, task_id: str) -> None:
        """See `StoreOperator.purge_task`."""
        self._write(lambda tx: purge.purge_task(tx, scope, task_id))

    def hooks(self, state: HookState | None, after: tuple[str, str], limit: int) -> Sequence[Hook]:
        """See `StoreOperator.hooks`."""
        check_schema(self._reader, self._path)
        return hooks.page(self._reader, state, after, limit)

    def redeliver(self, hook: Hook, audit: AuditEntry | None = None) -> bool:
        """See `StoreOperator.redeliver`."""
        return self._write(lambda tx: hooks.redeliver(tx, hook, audit))

    def remotes(self, tenant: str, after: str, limit: int) -> Sequence[Remote]:
        """See `StoreOperator.remotes`."""
        check_schema(self._reader, self._path)
        return remotes.page(self._reader, tenant, after, limit)

    def seals(self) -> Sequence[Seal]:
        """See `StoreOperator.seals`."""
        return remotes.seals(self._reader)

    def add_remote(self, remote: Remote, audit: AuditEntry | None = None) -> Remote:
        """See `StoreOperator.add_remote`."""
        return self._write(lambda tx: remotes.add(tx, remote, audit))

    def remove_remote(self, remote: Remote, audit: AuditEntry | None = None) -> None:
        """See `StoreOperator.remove_remote`."""
        self._write(lambda tx: remotes.remove(tx, remote.tenant, remote.id, audit))

    def close(self) -> None:
        """See `StoreOperator.close`."""
        self._reader.close()

    def _write(self, work: Callable[[Transaction], T]) -> T:
        connection = open_writer(self._path)
        try:
            check_schema(connection, self._path)
            connection.execute("BEGIN IMMEDIATE")
            now = connection.execute("SELECT now_ms FROM store_clock").fetchone()[0]
            transaction = Transaction(connection, 0, now, {})
            result = work(transaction)
            transaction.write_counts()
            transaction.write_audit()
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise Unavailable(
                f"{self._path} {explain(error, self._path)} ({error}). Nothing was written"
            ) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.close()
        return result
