"""Connecting to PostgreSQL, and what its errors mean to a caller and to an operator."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

import asyncpg

from dragoman.model.errors import Unavailable
from dragoman.stores.target import Target

CONNECT_SECONDS = 5.0
"""How long connecting may take."""

COMMAND_SECONDS = 15.0
"""How long one statement may take before its connection is given up: longer than any waits for a lock."""

SETTINGS = {
    "application_name": "dragoman",
    # A server that is frozen in the middle of a transaction holds the locks of its rows: the database ends it.
    "idle_in_transaction_session_timeout": "5s",
    "lock_timeout": "8s",
    # No statement here is worth compiling, and what planners think of tables that were just made has them do it.
    "jit": "off",
    # Statements are planned once a session, often while there is next to nothing in the tables, and kept as they are
    # while these grow: each is to find its rows by an index from the beginning.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""What each session is begun with; where a session is another one in each transaction, each transaction is."""

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""What a statement may raise; a time-out is an OSError too."""


class Database(Protocol):
    """A connection, as far as statements need it."""

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        ...

    async def fetchrow(self, query: str, *values: Any) -> Any:
        """Return the first row, or `None`."""
        ...

    async def fetchval(self, query: str, *values: Any) -> Any:
        """Return the first column of the first row, or `None`."""
        ...

    async def execute(self, query: str, *values: Any) -> str:
        """Run a statement and return what the server calls it."""
        ...


async def connect(target: Target, *, seconds: float | None = COMMAND_SECONDS) -> Any:
    """Open a connection on which a statement may take so many seconds, or as long as it likes.

    Raises:
        FAILURES: it cannot be opened.
    """
    connection = await asyncpg.connect(target.url, **_how(target) | {"command_timeout": seconds})
    try:
        await check_primary(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def open_pool(target: Target, size: int) -> Any:
    """Return a pool of up to `size` connections, each opened when it is needed."""

    async def leave(connection: Any) -> None:
        """Nothing of a session outlives a transaction here: resetting it would be a round trip for nothing."""

    return await asyncpg.create_pool(
        target.url, **_how(target), min_size=0, max_size=size, reset=leave, init=check_primary
    )


def _how(target: Target) -> dict[str, Any]:
    """Return how to connect: a pooler by transaction knows no settings of a session, and no statement by its name."""
    how = {
        "password": target.password,
        "timeout": CONNECT_SECONDS,
        "command_timeout": COMMAND_SECONDS,
        "server_settings": SETTINGS,
    }
    if target.by_transaction:
        how |= {"server_settings": {_NAME: SETTINGS[_NAME]}, "statement_cache_size": 0}
    return how


async def check_primary(connection: Any) -> None:
    """Refuse a connection to a standby: what it shows is old, and it takes no writes.

    After a failover the same name or address may lead to the one or to the other.

    Raises:
        ReadOnlySQLTransactionError: it is one.
    """
    async with connection.transaction():
        if await connection.fetchval("SELECT pg_is_in_recovery()"):
            raise asyncpg.ReadOnlySQLTransactionError("it is a standby")


async def begin(connection: Database, target: Target) -> None:
    """Begin a transaction that writes."""
    local = [f"SET LOCAL {name} = '{value}'" for name, value in SETTINGS.items() if name != _NAME]
    await connection.execute("; ".join(["BEGIN", *(local if target.by_transaction else ())]))


def one_session(connection: Any, target: Target) -> AbstractAsyncContextManager[object]:
    """Hold on to one session for some statements that need no transaction of their own.

    asyncpg prepares each and runs it then, and a pooler by transaction may give it another session between.
    """
    held: AbstractAsyncContextManager[object] = (
        connection.transaction() if target.by_transaction else nullcontext()
    )
    return held


async def check_sessions(connections: Sequence[Database]) -> None:
    """See that each of some connections that are open has a session of its own.

    Raises:
        ValueError: there is a pooler between that gives sessions for the time of a transaction.
    """
    sessions = [await one.fetchval("SELECT pg_backend_pid()") for one in connections]
    if len(set(sessions)) < len(sessions):
        raise ValueError(f"a pooler is before it that gives sessions by transaction; {_POOLED}")


_NAME = "application_name"
_POOLED = 'set store.pooling = "transaction", or name the database itself'
_NOT_TAKEN = "unsupported startup parameter"
"""What PgBouncer says of settings that it is not told to leave alone."""

_CAUSES = {
    "08": "cannot be reached",
    "57P": "cannot be reached",
    "25P03": "cannot be reached",
    "53100": "has no room left on its disk",
    "53300": "takes no more connections",
    "53": "has run out of something that it needs",
    "25006": "is read-only",
    "55P03": "is locked by another process",
    "40": "is too busy",
    "28": "does not let this server in",
    "3D000": "is not there",
    "42P01": "has another schema",
    "42703": "has another schema",
    "XX": "is damaged",
}
"""Beginning of an error's SQLSTATE → what is the matter with a store; the first that fits counts."""


def cause_of(error: BaseException | None) -> str:
    """Return what is the matter with a store, as the rest of a sentence about it; empty if that is not the matter."""
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return next((words for begin, words in _CAUSES.items() if state.startswith(begin)), "")
    if isinstance(error, TimeoutError):
        return "does not answer"
    return "cannot be reached" if isinstance(error, OSError | asyncpg.InterfaceError) else ""


def is_lost(error: BaseException) -> bool:
    """Tell whether a connection is of no use any more; one to a server that takes no writes now is not either."""
    return cause_of(error) in (_CAUSES["08"], _CAUSES["25006"], "does not answer")


def is_clash(error: BaseException) -> bool:
    """Tell whether two transactions were in each other's way, so that trying again helps."""
    return cause_of(error) == _CAUSES["40"]


def told_of(error: BaseException) -> str:
    """Return why a connection failed, for an operator, in the words of the database or of what is before it."""
    words = str(error).strip() or type(error).__name__
    return f"{words}; if that is a pooler: {_POOLED}" if _NOT_TAKEN in words else words


def unavailable(error: BaseException) -> Unavailable:
    """Return what a caller is told of a failed statement: nothing of the statement itself."""
    refusal = Unavailable(
        f"The task store {cause_of(error) or 'does not answer'}. Try again later", retry_after=5
    )
    refusal.__cause__ = error
    return refusal


def plain(text: str) -> str:
    """Return an id as a value of a statement: text of PostgreSQL has no U+0000, and no id of ours has a U+FFFD."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
