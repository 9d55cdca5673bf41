"""Stores of older schemas, as servers of their time left them, and what a store's file holds."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dragoman.stores.sqlite.migrating import migrations
from tests.migration.record import DATA

NEWEST = migrations()[-1].number
RECORDED = sorted(int(file.stem) for file in DATA.glob("*.sql"))
NEVER_OUT = frozenset({2, 3, 5})
"""Schemas that no version of Dragoman ever had: their steps came together with later ones."""

OLDER = [schema for schema in RECORDED if schema < NEWEST]

Rows = dict[str, list[tuple[Any, ...]]]


def make(file: Path, schema: int) -> Path:
    """Make the store that was recorded, with the store's clock at the moment when it was."""
    text = (DATA / f"{schema:04}.sql").read_text(encoding="utf-8")
    recorded = re.match(r"-- now_ms: (\d+)\n", text)
    assert recorded is not None
    file.parent.mkdir(mode=0o700, parents=True)
    file.touch(mode=0o600)
    with closing(sqlite3.connect(file, isolation_level=None)) as store:
        store.execute("PRAGMA journal_mode = WAL")
        store.executescript(text)
        store.execute(
            "UPDATE clock SET offset_ms = ? - (SELECT now_ms FROM store_clock)", (int(recorded[1]),)
        )
    return file


def schema_of(file: Path) -> dict[str, str]:
    """Return everything that a file's schema names, with its definition."""
    with closing(sqlite3.connect(file)) as store:
        return dict(store.execute("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema"))


def number_of(file: Path) -> int:
    """Return the number of a file's schema."""
    with closing(sqlite3.connect(file)) as store:
        number: int = store.execute("PRAGMA user_version").fetchone()[0]
    return number


def rows_of(file: Path, before: Rows | None = None) -> Rows:
    """Return all rows of all tables; or, of those tables and columns that were there `before`, what is in them now.

    Not those of `server`, where whoever takes the file leaves a mark. Later schemas add their columns at the end.
    """
    with closing(sqlite3.connect(file)) as store:
        named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        names = [name for (name,) in store.execute(named)] if before is None else list(before)
        found = {
            name: store.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608
            for name in names
            if name != "server"
        }
    if before is None:
        return found
    return {
        name: [row[: len(before[name][0])] for row in rows] if before[name] else rows
        for name, rows in found.items()
    }
