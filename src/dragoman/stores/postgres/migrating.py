"""The schema of a PostgreSQL store: numbered SQL files, each applied once and in order, under a lock.

Nothing is made by serving: whoever runs the database decides when its tables change.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg
from msgspec import Struct

from dragoman.stores.errors import StoreError
from dragoman.stores.postgres.connection import FAILURES, Database, cause_of, connect
from dragoman.stores.postgres.replicas import ARE_SERVED
from dragoman.stores.schema import Migration, SchemaStatus, numbered_files
from dragoman.stores.target import Target

T = TypeVar("T")

_LOCK = 1_146_241_868


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
        StoreError: it cannot be reached, or has a newer schema.
    """
    return asyncio.run(visit(target, lambda connection: _status(connection, target)))


def script(status: SchemaStatus) -> str:
    """Return the SQL that brings a database to the newest schema, as one transaction; empty if it is there."""
    if not status.pending:
        return ""
    steps = [f"{one.sql.rstrip()}\n{_marked(one)}\n" for one in status.pending]
    return "\n".join(["BEGIN;", f"SELECT pg_advisory_xact_lock({_LOCK});\n", *steps, "COMMIT;\n"])


def upgrade(target: Target) -> Upgraded:
    """Bring a database to the newest schema, in one transaction.

    Nothing is done if it is there already.

    Raises:
        StoreError: servers use it, or it cannot be upgraded; it is as it was.
    """

    async def run(connection: Any) -> Upgraded:
        try:
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
                status = await _status(connection, target)
                if status.schema and status.pending:
                    await _check_unused(connection, target)
                for one in status.pending:
                    await connection.execute(one.sql)
                    await connection.execute(_marked(one))
        except FAILURES as error:
            raise StoreError(f"{target} could not be upgraded and is as it was: {error}") from error
        return Upgraded(status.schema, status.newest)

    return asyncio.run(visit(target, run))


async def check_current(connection: Database, target: Target) -> None:
    """Refuse a database that is no store of the newest schema.

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
        raise StoreError(
            f"{target} has schema {schema}, newer than this Dragoman's {newest}; use a newer Dragoman"
        )
    return SchemaStatus(str(target), schema, newest, tuple(one for one in known if one.number > schema))


async def _check_unused(connection: Database, target: Target) -> None:
    servers = await connection.fetchval(ARE_SERVED)
    if servers:
        raise StoreError(
            f"{target} is in use by {servers} Dragoman server{'s' if servers > 1 else ''}; stop them, then upgrade, "
            "then start them again"
        )


def _marked(one: Migration) -> str:
    return f"UPDATE schema_version SET version = {one.number};"


async def visit(target: Target, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` does with a connection of its own.

    Raises:
        StoreError: the database cannot be connected to.
    """
    try:
        connection = await connect(target)
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
    detail = str(error).strip() or type(error).__name__
    return StoreError(f"the database {target} {cause}: {detail}")
