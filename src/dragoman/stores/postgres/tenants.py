"""What is kept of tenants, in PostgreSQL: the book is asked in a thread, and its statements run on the store's loop."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dragoman.gateway.tenants import Book
from dragoman.model.errors import Unavailable
from dragoman.stores.book import Execute, Rows, StoreBook
from dragoman.stores.postgres.connection import FAILURES, cause_of, plain
from dragoman.stores.postgres.migrating import check_current, visit
from dragoman.stores.postgres.replicas import CHANNEL, IDENTITIES, OPERATOR
from dragoman.stores.target import Target

T = TypeVar("T")

_HAS_TASKS = (
    "SELECT EXISTS (SELECT 1 FROM scope s WHERE s.tenant = ? AND (? = '' OR s.principal = ?) AND"
    " (EXISTS (SELECT 1 FROM identity i WHERE i.scope_id = s.id)"
    " OR (SELECT coalesce(sum(c.n), 0) FROM (SELECT n FROM counter WHERE scope_id = s.id AND context_id = ''"
    " UNION ALL SELECT n FROM counter_step WHERE scope_id = s.id AND context_id = '') c) > 0))"
)
_HAS_DELEGATED = "SELECT EXISTS (SELECT 1 FROM delegation WHERE tenant = ? AND (? = '' OR principal = ?))"


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
    now = await connection.fetchval("SELECT now_ms FROM store_clock")

    def use(execute: Execute) -> T:
        def has_tasks(tenant: str, principal: str) -> bool:
            whose = (tenant, principal, principal)
            return any(execute(asked, whose).fetchone()[0] for asked in (_HAS_TASKS, _HAS_DELEGATED))

        return work(StoreBook(execute, now, has_tasks))

    return await in_thread(connection, use)


async def in_thread(connection: Any, work: Callable[[Execute], T]) -> T:
    """Return what `work` does with statements that wait for their rows, in a thread, on a connection of this loop."""
    loop = asyncio.get_running_loop()

    async def run(statement: str, values: Sequence[Any]) -> _Found:
        prepared = await connection.prepare(_with_numbers(statement))
        rows = await prepared.fetch(*(plain(one) if isinstance(one, str) else one for one in values))
        return _Found(rows, prepared.get_statusmsg())

    def execute(statement: str, values: Sequence[Any]) -> _Found:
        return asyncio.run_coroutine_threadsafe(run(statement, values), loop).result()

    return await asyncio.to_thread(work, execute)


def _with_numbers(statement: str) -> str:
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def consult(target: Target, work: Callable[[Book], T]) -> T:
    """Return what `work` reads of the book in a database; for commands beside a server.

    Raises:
        StoreError: there is no store, or it has another schema.
        Unavailable: it cannot be read just now.
    """
    return _apart(visit(target, lambda connection: _with_own_book(connection, target, work, readonly=True)))


def administer(target: Target, work: Callable[[Book], T]) -> T:
    """Have `work` write to the book in a database, in one transaction; for commands beside a server.

    Running servers notice at once.

    Raises:
        StoreError: there is no store, or it has another schema.
        Unavailable: it cannot be written to just now.
    """
    return _apart(visit(target, lambda connection: _with_own_book(connection, target, work, readonly=False)))


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own: this thread may have one that runs, as that of a server that starts has."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


async def _with_own_book(connection: Any, target: Target, work: Callable[[Book], T], *, readonly: bool) -> T:
    try:
        async with connection.transaction(
            isolation="repeatable_read" if readonly else None, readonly=readonly
        ):
            await check_current(connection, target)
            result = await with_book(connection, work)
            if not readonly:
                await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, f"{OPERATOR} {IDENTITIES}")
            return result
    except FAILURES as error:
        raise Unavailable(f"The store {target} {cause_of(error) or 'does not answer'} ({error})") from error
