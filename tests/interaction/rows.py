"""How many rows the store has, seen from outside: whether a refused request left anything behind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any


class Rows:
    """Reads a server's SQLite file, never writes to it."""

    def __init__(self, data: Path) -> None:
        self._uri = f"file:{data / 'dragoman.db'}?mode=ro"

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with closing(sqlite3.connect(self._uri, uri=True, timeout=10)) as connection:
            return connection.execute(sql, values).fetchall()

    def counts(self) -> dict[str, int]:
        """The number of rows of every table, all at one moment, but for the audit, which tells of refusals."""
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        names = [name for (name,) in self.query(tables) if name != "audit"]
        columns = ", ".join(f'(SELECT count(*) FROM "{name}")' for name in names)  # noqa: S608 - our own names
        return dict(zip(names, self.query(f"SELECT {columns}")[0], strict=True))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Fail if any table has more or fewer rows afterwards."""
        before = self.counts()
        yield
        assert self.counts() == before
