"""The schema of a PostgreSQL store: numbered SQL files, each applied once and in order, under a lock.

Nothing is made by serving: whoever runs the database decides when its tables change. A file may say that servers of an
older schema can go on with what it makes (`Migration.oldest`); the store keeps that number, because those servers
have not got the file. So they go on, and may start, while they are replaced one by one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg
from msgspec import Struct

from dragoman.stores.errors import StoreError
from dragoman.stores.postgres.connection import FAILURES, Database, cause_of, connect, one_session, told_of
from dragoman.stores.postgres.replicas import ARE_SERVED
from dragoman.stores.schema import Migration, SchemaStatus, numbered_files
from dragoman.stores.target import Target

T = TypeVar("T")

_LOCK = 1_146_241_868

LOCK_WAIT = "200ms"
"""How long an upgrade waits for a table. Whoever comes after it waits too, and if they wait for each other the upgrade
must be the first to give up: PostgreSQL looks for that, and picks somebody, after a second."""

TRIES = 30
PAUSE_SECONDS = 0.5

LONGEST_SECONDS = 86_400.0
"""How long one file of an upgrade may take."""

# Servers of the first two schemas do not say which one they were made for.
_OUTDATED = f"{ARE_SERVED} AND coalesce((to_jsonb(r) ->> 'schema')::integer, 0) < $1"


def migrations() -> list[Migration]:
    """Return the migrations in order."""
    return numbered_files("postgres")


class Upgraded(Struct, frozen=True):
    """What an upgrade did: the schema before and now."""

    before: int
    schema: int


def schema_status(target: Target) -> SchemaStatus:
    """Return how the schema of a database stands. One without our tables has schema 0.

    Raises:
        StoreError: it cannot be reached, or has a newer schema that this Dragoman cannot use.
    """

    async def run(connection: Any) -> SchemaStatus:
        async with one_session(connection, target):
            return await _status(connection, target)

    return asyncio.run(visit(target, run))


def script(status: SchemaStatus) -> str:
    """Return the SQL that brings a database to the newest schema, as one transaction; empty if it is there."""
    if not status.pending:
        return ""
    steps = [f"{one.sql.rstrip()}\n" for one in status.pending]
    lock = f"SELECT pg_advisory_xact_lock({_LOCK});\n"
    return "\n".join(["BEGIN;", lock, *steps, f"{_marked(status)}\n", "COMMIT;\n"])


def upgrade(target: Target) -> Upgraded:
    """Bring a database to the newest schema, in one transaction.

    Nothing is done if it is there already, or beyond it. Servers may run meanwhile if all files that are to be applied
    say so for their schema.

    Raises:
        StoreError: servers use it that could not go on, or it cannot be upgraded; it is as it was.
    """

    async def run(connection: Any) -> Upgraded:
        for left in reversed(range(TRIES)):
            try:
                async with connection.transaction():
                    return await _upgrade(connection, target)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
                if not left:
                    raise StoreError(
                        f"{target} could not be upgraded and is as it was: a table was in use for {LOCK_WAIT} each of "
                        f"{TRIES} times ({error}). Look for long transactions, such as a pg_dump, and try again"
                    ) from error
            except FAILURES as error:
                raise StoreError(f"{target} could not be upgraded and is as it was: {error}") from error
            await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError("the last try returns or raises")

    return asyncio.run(visit(target, run))


async def _upgrade(connection: Any, target: Target) -> Upgraded:
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    status = await _status(connection, target)
    if status.schema and status.pending:
        await _check_unused(connection, target, max(one.oldest for one in status.pending))
    await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
    for one in status.pending:
        await connection.execute(one.sql, timeout=LONGEST_SECONDS)
    if status.pending:
        await connection.execute(_marked(status))
    return Upgraded(status.schema, max(status.schema, status.newest))


async def admit(connection: Database, target: Target) -> None:
    """Refuse a server that cannot use a database, and keep the schema as it is to the end of the transaction.

    Whoever joins in that transaction is seen by the next upgrade, or has waited for the one before.

    Raises:
        StoreError: as `check_current`.
    """
    await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", _LOCK)
    await check_current(connection, target)


async def check_current(connection: Database, target: Target) -> None:
    """Refuse a database that is no store of the newest schema, or of a newer one that this Dragoman may use.

    To be called in `one_session`.

    Raises:
        StoreError: it is none; the message says what to do.
    """
    status = await _status(connection, target)
    if not status.schema:
        raise StoreError(
            f"{target} holds no store yet. Run `dragoman migrate upgrade` with the same --config"
        )
    if status.pending:
        raise StoreError(
            f"{target} has schema {status.schema} and this Dragoman needs {status.newest}. Make a backup, stop the "
            "servers that use it and run `dragoman migrate upgrade` with the same --config"
        )


async def _status(connection: Database, target: Target) -> SchemaStatus:
    known = migrations()
    schema, newest = 0, known[-1].number
    if await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL"):
        schema = await connection.fetchval("SELECT version FROM schema_version")
    if schema > newest:
        oldest = await connection.fetchval("SELECT oldest FROM schema_version")
        if oldest > newest:
            raise StoreError(
                f"{target} has schema {schema}, newer than this Dragoman's {newest}, and takes Dragomans of schema "
                f"{oldest} and later; use a newer Dragoman"
            )
    return SchemaStatus(str(target), schema, newest, tuple(one for one in known if one.number > schema))


async def _check_unused(connection: Database, target: Target, oldest: int) -> None:
    """Refuse to change the schema under servers of one before `oldest`."""
    servers = await connection.fetchval(_OUTDATED, oldest)
    if servers:
        raise StoreError(
            f"{target} is in use by {servers} Dragoman server{'s' if servers > 1 else ''} that could not go on; stop "
            f"{'them' if servers > 1 else 'it'}, then upgrade, then start again"
        )


def _marked(status: SchemaStatus) -> str:
    oldest = max(one.oldest for one in status.pending)
    return f"UPDATE schema_version SET version = {status.newest}, oldest = GREATEST(oldest, {oldest});"


async def visit(target: Target, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` does with a connection of its own, however long that takes: an upgrade may rewrite tables.

    Raises:
        StoreError: the database cannot be connected to.
    """
    try:
        connection = await connect(target, seconds=None)
    except FAILURES as error:
        raise unreachable(target, error) from error
    except (ValueError, asyncpg.InterfaceError) as error:
        raise StoreError(f"store.url {target} is no URL of a database: {error}") from error
    try:
        return await work(connection)
    finally:
        with suppress(*FAILURES):
            await connection.close(timeout=1)


def unreachable(target: Target, error: BaseException) -> StoreError:
    """Return what an operator is told of a database that cannot be connected to."""
    cause = cause_of(error) or "cannot be used"
    return StoreError(f"the database {target} {cause}: {told_of(error)}")
