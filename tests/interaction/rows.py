"""How many rows the store has, seen from outside: whether a refused request left anything behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness import stores


class Rows:
    """Reads a server's store, never writes to it."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return stores.query(self._data, sql, *values)

    def counts(self) -> dict[str, int]:
        """The number of rows of every table, all at one moment.

        But for the audit, which tells of refusals, and for counters of PostgreSQL, which are put together at any time.
        """
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        left_out = {"audit"}
        if stores.is_postgres():
            tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            left_out |= {"counter", "counter_step"}
        names = [name for (name,) in self.query(tables) if name not in left_out]
        columns = ", ".join(f'(SELECT count(*) FROM "{name}")' for name in names)  # noqa: S608 - our own names
        return dict(zip(names, self.query(f"SELECT {columns}")[0], strict=True))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Fail if any table has more or fewer rows afterwards."""
        before = self.counts()
        yield
        assert self.counts() == before
