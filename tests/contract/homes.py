"""Where a store lives during a test, and what a test does to it behind its back.

Another store joins the whole suite by one class here and one line in `conftest.HOMES`.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from dragoman.gateway.dispatching import DispatchStore
from dragoman.gateway.ports import Placing, TaskStore
from dragoman.stores import postgres, sqlite
from dragoman.stores.operating import StoreOperator
from dragoman.stores.postgres import PostgresStore
from dragoman.stores.sqlite import SqliteStore
from dragoman.stores.target import Target
from tests.harness.postgres import Databases, databases, execute, in_thread, installed_databases, rows


class OpenStore(TaskStore, DispatchStore, Protocol):
    """A store, as a server has it."""


class StoreHome(Protocol):
    """One store that is empty at first and outlives the server processes that use it."""

    name: str

    def __init__(self, folder: Path) -> None:
        """Prepare an empty store; `folder` is the test's own."""
        ...

    def open(self, placing: Placing = Placing.HERE) -> OpenStore:
        """Open the store as a new server does, on the running loop. What an earlier server left is lost to it."""
        ...

    def close(self) -> None:
        """End the server that opened it last, as it stands: its runs keep their states."""
        ...

    def remove(self) -> None:
        """Close it and give its room back."""
        ...

    def operate(self) -> StoreOperator:
        """Open the store as a command beside a server does; for a thread that has no loop."""
        ...

    def shift_clock(self, milliseconds: int) -> None:
        """Move the store's clock, forward or back."""
        ...

    def left(self) -> dict[str, int]:
        """Return how many rows there are of each kind that hangs on tasks."""
        ...

    def status_row(self, task_id: str) -> tuple[int, int, int]:
        """Return what the task's own row holds: state, status time and last sequence number."""
        ...

    def change_approval(self, column: str, value: str | bytes) -> None:
        """Change what is kept of every approval."""
        ...

    def change_audit(self, statement: str) -> str:
        """Run a statement that changes the audit, and return what the database says against it."""
        ...


class SqliteHome(StoreHome):
    """A SQLite file."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store" / "dragoman.db"
        self._store: SqliteStore | None = None

    def open(self, placing: Placing = Placing.HERE) -> SqliteStore:
        self.close()
        self._store = SqliteStore(self.path, lease=15.0, placing=placing, on_lost=lambda: None)
        return self._store

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def remove(self) -> None:
        self.close()

    def operate(self) -> StoreOperator:
        return sqlite.Operator(self.path)

    def shift_clock(self, milliseconds: int) -> None:
        self._write("UPDATE clock SET offset_ms = offset_ms + ?", milliseconds)

    def left(self) -> dict[str, int]:
        tables = {
            "task": "1",
            "event": "1",
            "journal": "1",
            "identity": "1",
            "counter": "context_id <> ''",
            "push_config": "1",
        }
        with closing(sqlite3.connect(self.path)) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table} WHERE {which}").fetchone()[0]  # noqa: S608
                for table, which in tables.items()
            }

    def status_row(self, task_id: str) -> tuple[int, int, int]:
        with closing(sqlite3.connect(self.path)) as connection:
            row: tuple[int, int, int] = connection.execute(
                "SELECT state, status_at, seq FROM task WHERE id = ?", (task_id,)
            ).fetchone()
        return row

    def change_approval(self, column: str, value: str | bytes) -> None:
        self._write(f"UPDATE approval SET {column} = ?", value)  # noqa: S608 - a name of ours

    def change_audit(self, statement: str) -> str:
        try:
            self._write(statement)
        except sqlite3.IntegrityError as error:
            return str(error)
        return ""

    def _write(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as connection:
            connection.execute(statement, values)


class PostgresHome(StoreHome):
    """A PostgreSQL database."""

    name = "postgres"

    def __init__(self, folder: Path) -> None:
        self.url = in_thread(lambda: self._databases().make())
        self._store: PostgresStore | None = None

    def open(self, placing: Placing = Placing.HERE) -> PostgresStore:
        self.close()
        self._store = PostgresStore(Target(self.url), lease=15.0, placing=placing)
        return self._store

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def remove(self) -> None:
        self.close()
        in_thread(lambda: self._databases().give_back(self.url))

    @staticmethod
    def _databases() -> Databases:
        return databases()

    def operate(self) -> StoreOperator:
        return postgres.Operator(Target(self.url))

    def shift_clock(self, milliseconds: int) -> None:
        execute(self.url, "UPDATE clock SET offset_ms = offset_ms + $1", milliseconds)

    def left(self) -> dict[str, int]:
        counted = (
            "(SELECT scope_id, context_id FROM (TABLE counter UNION ALL TABLE counter_step) every"
            " WHERE context_id <> '' GROUP BY scope_id, context_id HAVING sum(n) <> 0) left_over"
        )
        kinds = ("task", "event", "journal", "identity", "push_config")
        tables = {name: name for name in kinds} | {"counter": counted}
        return {
            name: rows(self.url, f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608
            for name, table in tables.items()
        }

    def status_row(self, task_id: str) -> tuple[int, int, int]:
        found = rows(self.url, "SELECT state, status_at, seq FROM task WHERE id = $1", task_id)
        state, status_at, seq = found[0]
        return state, status_at, seq

    def change_approval(self, column: str, value: str | bytes) -> None:
        if column == "action" and isinstance(value, str):
            value = value.encode()
        execute(self.url, f"UPDATE approval SET {column} = $1", value)  # noqa: S608 - a name of ours

    def change_audit(self, statement: str) -> str:
        try:
            execute(self.url, statement)
        except asyncpg.RaiseError as error:
            return str(error)
        return ""


class InstalledPostgresHome(PostgresHome):
    """A database on the PostgreSQL of the operating system, which is an older one."""

    name = "installed-postgres"

    @staticmethod
    def _databases() -> Databases:
        return installed_databases()
