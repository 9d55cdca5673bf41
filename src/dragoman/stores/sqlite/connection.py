"""Opening a SQLite file: pragmas, and what its errors mean to a caller and to an operator."""

import os
import sqlite3
from pathlib import Path

from dragoman.model.errors import Unavailable
from dragoman.stores.errors import StoreError
from dragoman.stores.sqlite.locks import write_lock_holder

BUSY_SECONDS = 5.0
"""How long a write waits for another process (a CLI command, a backup) to finish its own."""

WAL_LIMIT = 64 * 1024 * 1024
"""The WAL file is cut back to this many bytes when it is reset."""


class StoreInUse(StoreError):
    """A living server has the file; `process` says which."""

    def __init__(self, path: Path, process: str) -> None:
        super().__init__(
            f"{path} is in use by another Dragoman server ({process}); stop it, or give this one a folder of its "
            "own with --data"
        )
        self.process = process


def open_writer(path: Path) -> sqlite3.Connection:
    """Open the file for writing, creating it (mode 0600) if it is missing.

    Raises:
        StoreError: it cannot be opened, or is no database of ours.
    """
    try:
        if not path.exists():
            path.touch(mode=0o600)
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        # Some builds of SQLite do so anyway, others leave what was deleted legible in the file.
        connection.execute("PRAGMA secure_delete = ON")
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the store {path} cannot be opened: {error}") from error
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open the file for reading only; the connection belongs to the thread that opens it."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


_CAUSES = {
    "SQLITE_FULL": "has no room left on its disk",
    "SQLITE_READONLY": "is read-only",
    "SQLITE_BUSY": "is locked by another process",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is damaged",
    "SQLITE_IOERR": "cannot be read or written, because its disk fails",
    "SQLITE_CANTOPEN": "cannot be opened",
}
"""Beginning of SQLite's name of an error → what is the matter with a store."""


def cause_of(error: BaseException | None) -> str:
    """Return what is the matter with a store, as the rest of a sentence about it; empty if that is not the matter."""
    name = getattr(error, "sqlite_errorname", "")
    return next((words for begin, words in _CAUSES.items() if name.startswith(begin)), "")


def is_busy(error: BaseException) -> bool:
    """Tell whether another process holds the lock that was needed."""
    return cause_of(error) == _CAUSES["SQLITE_BUSY"]


def is_damage(error: BaseException) -> bool:
    """Tell whether the file holds what SQLite cannot have written."""
    return cause_of(error) == _CAUSES["SQLITE_CORRUPT"]


def explain(error: sqlite3.Error, path: Path) -> str:
    """Return what is the matter with a store and what to do, as the rest of a sentence, for its operator.

    It has nothing of a statement in it, and may be shown to whoever asks whether the server is ready.
    """
    cause = cause_of(error)
    if is_busy(error):
        holder = write_lock_holder(path)
        if holder is not None:
            return f"is locked by {holder}; it goes on when that process has written, or has ended"
    elif is_damage(error):
        return f"{cause}; stop the server and put a copy in its place"
    elif cause == _CAUSES["SQLITE_IOERR"] and _is_read_only(path):
        return "is on a file system that is read-only now"
    return cause or "does not answer"


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def unavailable(error: sqlite3.Error) -> Unavailable:
    """Return what a caller is told of a failed statement: nothing of the statement itself."""
    if is_damage(error):
        refusal = Unavailable("The task store is damaged where this is kept; tell whoever runs this server")
    else:
        refusal = Unavailable(
            f"The task store {cause_of(error) or 'does not answer'}; nothing was stored. Try again later",
            retry_after=5,
        )
    refusal.__cause__ = error
    return refusal
