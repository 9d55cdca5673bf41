"""The schema of a store file: numbered SQL files, each applied once and in order.

A new file is made at the newest schema. An older one is left alone until an operator upgrades it, because a server that
was rolled back could not open it any more.
"""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from dragoman.stores.errors import StoreBusy, StoreError
from dragoman.stores.schema import Migration, SchemaStatus, numbered_files
from dragoman.stores.sqlite.backup import Progress, back_up
from dragoman.stores.sqlite.connection import (
    StoreInUse,
    explain,
    is_busy,
    open_reader,
    open_writer,
)
from dragoman.stores.sqlite.ownership import HEARTBEAT_SECONDS, Ownership, OwnershipLost


class Upgraded(Struct, frozen=True):
    """What an upgrade did: the schema before and now, and the backup that it made first, if there was need."""

    before: int
    schema: int
    backup: Path | None


def migrations() -> list[Migration]:
    """Return the migrations in order."""
    return numbered_files("sqlite")


def statements(step: Migration) -> list[str]:
    """Return the statements of a migration, to be run inside one transaction (a whole script would commit it)."""
    found, current = [], ""
    for line in step.sql.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    return found


def open_store(path: Path) -> sqlite3.Connection:
    """Open a file for writing as a store of the newest schema, making it if it is missing or empty.

    It and its folder are made for their owner alone (folder 0700, file 0600).

    Raises:
        StoreError: it cannot be made, holds something else, or has another schema.
        StoreBusy: it has to be made, and somebody else is writing to it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {path.parent} cannot be made: {error.strerror}") from error
    connection = open_writer(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is no store of the newest schema.

    Raises:
        StoreError: it is none; the message says what to do.
    """
    known = migrations()
    if _schema(connection, path, known[-1].number) == 0:
        raise StoreError(f"{path} is empty; `dragoman serve` makes a store of it")
    _check_current(connection, path, known[-1].number)


def schema_status(path: Path) -> SchemaStatus:
    """Return how the schema of a file stands. A file that is missing or empty has schema 0.

    Raises:
        StoreError: it holds something else, or a newer schema.
    """
    known = migrations()
    schema = 0
    if path.exists():
        try:
            with closing(open_reader(path)) as connection:
                schema = _schema(connection, path, known[-1].number)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read as a store: {error}") from error
    pending = tuple(one for one in known if one.number > schema)
    return SchemaStatus(str(path), schema, known[-1].number, pending)


def script(status: SchemaStatus) -> str:
    """Return the SQL that brings a file to the newest schema, as one transaction; empty if it is there."""
    if not status.pending:
        return ""
    steps = [f"{one.sql.rstrip()}\nPRAGMA user_version = {one.number};\n" for one in status.pending]
    return "\n".join(["BEGIN IMMEDIATE;\n", *steps, "COMMIT;\n"])


def upgrade(path: Path, backup: Path, progress: Progress) -> Upgraded:
    """Bring a file to the newest schema, in one transaction, after a copy of it was made and verified.

    Nothing is done, and nothing copied, if it is there already, or if there is no store yet.

    Raises:
        FileExistsError: `backup` is there already.
        StoreError: a server has the file, or it cannot be copied or upgraded; it is as it was.
    """
    status = schema_status(path)
    if not status.pending or not status.schema:
        return Upgraded(status.schema, status.schema, None)
    if os.path.lexists(backup):
        raise FileExistsError(backup)
    with closing(open_writer(path)) as connection:
        ownership = _take(connection, path)
        try:
            back_up(path, backup, _Beating(connection, ownership, progress))
            _apply(connection, ownership, path, status.newest)
        except OwnershipLost as error:
            raise StoreError(f"a server has taken {path} meanwhile; stop it and upgrade again") from error
        finally:
            ownership.release(connection)
    return Upgraded(status.schema, status.newest, backup)


class _Beating:
    """Reports progress, and shows other servers that the file is in use, however long the copy takes."""

    def __init__(self, connection: sqlite3.Connection, ownership: Ownership, progress: Progress) -> None:
        self._connection = connection
        self._ownership = ownership
        self._progress = progress
        self._due = time.monotonic() + HEARTBEAT_SECONDS

    def __call__(self, done: int, total: int) -> None:
        self._progress(done, total)
        if time.monotonic() >= self._due:
            self._connection.execute("BEGIN IMMEDIATE")
            self._ownership.beat(self._connection, self._ownership.check(self._connection))
            self._connection.execute("COMMIT")
            self._due = time.monotonic() + HEARTBEAT_SECONDS


def _take(connection: sqlite3.Connection, path: Path) -> Ownership:
    try:
        return Ownership.take(connection, path)
    except StoreInUse as error:
        raise StoreError(
            f"{path} is in use by a Dragoman server ({error.process}); stop it, then upgrade, then start it again"
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    newest = migrations()[-1].number
    try:
        if _schema(connection, path, newest) == newest:
            # Nothing to write: a file that somebody else is writing to can be looked at all the same.
            return
        connection.execute("BEGIN IMMEDIATE")
        if _schema(connection, path, newest) == 0:
            _run(connection, migrations())
        _check_current(connection, path, newest)
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise StoreBusy(f"{path} {explain(error, path)}") from error
        raise StoreError(f"{path} cannot be used as a store: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _apply(connection: sqlite3.Connection, ownership: Ownership, path: Path, newest: int) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        ownership.check(connection)
        schema = _schema(connection, path, newest)
        _run(connection, [one for one in migrations() if one.number > schema])
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"{path} could not be upgraded and is as it was: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run(connection: sqlite3.Connection, steps: list[Migration]) -> None:
    for step in steps:
        for statement in statements(step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step.number}")


def _schema(connection: sqlite3.Connection, path: Path, newest: int) -> int:
    """Return the schema of a file, 0 of an empty one.

    Raises:
        StoreError: it holds something else, or a newer one.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > newest:
        raise StoreError(
            f"{path} has schema {version}, newer than this Dragoman's {newest}; use a newer Dragoman"
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if version == 0 and tables:
        raise StoreError(
            f"{path} is a SQLite file of something else; name another one with --data or store.url"
        )
    return version


def _check_current(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version < newest:
        raise StoreError(
            f"{path} has schema {version} and this Dragoman needs {newest}. Stop the server that uses it and run "
            "`dragoman migrate upgrade` with the same --data and --config; it makes a backup first"
        )
