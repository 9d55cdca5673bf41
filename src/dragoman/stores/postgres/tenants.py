"""What is kept of tenants, in PostgreSQL: the book is asked in a thread, and its statements run on the store's loop."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dragoman.gateway.tenants import Book
from dragoman.stores.book import Rows, StoreBook

T = TypeVar("T")

_HAS_TASKS = (
    "SELECT EXISTS (SELECT 1 FROM scope s WHERE s.tenant = $1 AND ($2 = '' OR s.principal = $2) AND"
    " (EXISTS (SELECT 1 FROM identity i WHERE i.scope_id = s.id)"
    " OR (SELECT coalesce(sum(c.n), 0) FROM (SELECT n FROM counter WHERE scope_id = s.id AND context_id = ''"
    " UNION ALL SELECT n FROM counter_step WHERE scope_id = s.id AND context_id = '') c) > 0))"
)


class _Found(Rows):
    """The rows of a statement that has run."""

    def __init__(self, rows: list[Any], status: str) -> None:
        self._rows = rows
        self._status = status

    @property
    def rowcount(self) -> int:
        return int(self._status.rpartition(" ")[2])

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    def __iter__(self) -> Any:
        return iter(self._rows)


async def with_book(connection: Any, work: Callable[[Book], T]) -> T:
    """Return what `work` does with a book on a connection, whose transaction is the caller's."""
    loop = asyncio.get_running_loop()

    async def run(statement: str, values: Sequence[Any]) -> _Found:
        prepared = await connection.prepare(_with_numbers(statement))
        rows = await prepared.fetch(*values)
        return _Found(rows, prepared.get_statusmsg())

    def execute(statement: str, values: Sequence[Any]) -> _Found:
        return asyncio.run_coroutine_threadsafe(run(statement, values), loop).result()

    def has_tasks(tenant: str, principal: str) -> bool:
        ask = connection.fetchval(_HAS_TASKS, tenant, principal)
        return bool(asyncio.run_coroutine_threadsafe(ask, loop).result())

    now = await connection.fetchval("SELECT now_ms FROM store_clock")
    return await asyncio.to_thread(lambda: work(StoreBook(execute, now, has_tasks)))


def _with_numbers(statement: str) -> str:
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
