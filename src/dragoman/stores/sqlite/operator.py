"""Operators beside a running server: reading and single writes on its file, without taking it over.

A write is one transaction of its own. The server notices it within its heartbeat and stops what must stop.
"""

import sqlite3
from pathlib import Path

from dragoman.model import Cursor, Filters, Scope, TaskEvent, TaskFold, TaskPage
from dragoman.stores.sqlite import commands, queries
from dragoman.stores.sqlite.connection import StoreError, open_reader, open_writer, unavailable
from dragoman.stores.sqlite.writer import Transaction


class Operator:
    """A store file in the hands of an operator. Every task is still reached through a Scope."""

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
        """Return one page of a scope's tasks, newest first."""
        return queries.page(self._reader, filters, size, cursor, 0, False)

    def find(self, task_id: str) -> tuple[Scope, TaskFold] | None:
        """Return a task and the scope it belongs to, whichever that is; `None` if there is none."""
        for scope in self.scopes:
            fold = queries.peek(self._reader, scope, task_id)
            if fold is not None:
                return scope, fold
        return None

    def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        """Return all events of a task that was found before."""
        return queries.events(self._reader, task_id, 0)

    def cancel(self, scope: Scope, task_id: str) -> TaskEvent:
        """Cancel a task.

        Raises:
            TaskNotFound, TaskNotCancelable, Unavailable.
        """
        connection = open_writer(self._path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            now = connection.execute("SELECT now_ms FROM store_clock").fetchone()[0]
            transaction = Transaction(connection, 0, now, {})
            event = commands.cancel(transaction, scope, task_id)
            transaction.write_counts()
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.close()
        return event

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
