"""The store of a server under test: a SQLite file in its data folder, or, with `--store postgres`, a database for each.

What is asked of a store behind its server's back is written once for both, with `?` for values.
"""

import functools
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dragoman.storage import Place
from dragoman.stores.target import Target
from tests.harness.paths import STORE_VARIABLE
from tests.harness.postgres import ask, databases, in_thread


def is_postgres() -> bool:
    """Tell whether servers under test have PostgreSQL stores."""
    return os.environ.get(STORE_VARIABLE) == "postgres"


def place_of(data: Path) -> Place:
    """Return where the store of a data folder is."""
    return Target(url_of(data)) if is_postgres() else data / "dragoman.db"


def environment(data: Path) -> dict[str, str]:
    """Return the variables that make a server or a command use the store of a data folder."""
    return {"DRAGOMAN_STORE_URL": url_of(data)} if is_postgres() else {}


def query(data: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    if is_postgres():
        found = ask(url_of(data), lambda db: db.fetch(_numbered(statement), *values))
        return [tuple(row) for row in found]
    with closing(sqlite3.connect(f"file:{data / 'dragoman.db'}?mode=ro", uri=True, timeout=10)) as connection:
        return connection.execute(statement, values).fetchall()


def execute(data: Path, statement: str, *values: Any) -> int:
    """Run a statement that writes, and return how many rows it changed, if it is one that changes rows."""
    if is_postgres():
        done: str = ask(url_of(data), lambda db: db.execute(_numbered(statement), *values))
        number = done.rpartition(" ")[2]
        return int(number) if number.isdecimal() else -1
    with closing(sqlite3.connect(data / "dragoman.db", timeout=10, isolation_level=None)) as connection:
        return connection.execute(statement, values).rowcount


def dump(data: Path) -> str:
    """Return all that a store holds, as text: bytes are in hexadecimal."""
    if is_postgres():
        tables = query(data, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        every = [row for (table,) in tables for row in query(data, f"SELECT t::text FROM {table} t")]  # noqa: S608
        return "\n".join(row for (row,) in every)
    with closing(sqlite3.connect(data / "dragoman.db", timeout=10)) as connection:
        return "\n".join(connection.iterdump())


def shift_clock(data: Path, milliseconds: int) -> None:
    """Move the store's clock, forward or back."""
    execute(data, "UPDATE clock SET offset_ms = offset_ms + ?", milliseconds)


def named(text: str) -> str | bytes:
    """Return what callers name, as a value: it is text in SQLite and bytes in PostgreSQL, whose text has no U+0000."""
    return text.encode() if is_postgres() else text


def _numbered(statement: str) -> str:
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


@functools.cache
def url_of(data: Path) -> str:
    """Return the URL of the database of a data folder, which is made when it is first asked for."""
    return in_thread(lambda: databases().make())
