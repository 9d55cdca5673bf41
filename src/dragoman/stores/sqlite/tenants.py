"""What is kept of tenants, in SQLite."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.tenants import Book
from dragoman.model import TaskState
from dragoman.model.errors import Unavailable
from dragoman.stores.book import StoreBook
from dragoman.stores.errors import StoreError
from dragoman.stores.sqlite.connection import explain, open_reader, unavailable
from dragoman.stores.sqlite.migrating import check_schema, open_store

T = TypeVar("T")
Execute = Callable[..., sqlite3.Cursor]


def book_of(execute: Execute, now: int) -> StoreBook:
    """Return a book on a connection, whose transaction is somebody else's to begin and to commit."""

    def has_tasks(tenant: str, principal: str) -> bool:
        # By two indexes: what shows is counted, and what never showed was remembered under its message.
        scopes = "(SELECT id FROM scope WHERE tenant = ? AND (? = '' OR principal = ?))"
        whose = (tenant, principal, principal)
        states = " + ".join(state.name.lower() for state in TaskState)
        counted = (
            f"SELECT 1 FROM counter WHERE context_id = '' AND {states} > 0 AND scope_id IN {scopes} LIMIT 1"
        )
        remembered = f"SELECT 1 FROM identity WHERE scope_id IN {scopes} LIMIT 1"
        delegated = "SELECT 1 FROM delegation WHERE tenant = ? AND (? = '' OR principal = ?) LIMIT 1"
        return any(execute(asked, whose).fetchone() for asked in (counted, remembered, delegated))

    return StoreBook(execute, now, has_tasks)


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
            return work(book_of(connection.execute, _now(connection)))
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
            result = work(book_of(connection.execute, _now(connection)))
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
