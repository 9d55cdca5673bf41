"""One server process per file.

A server holds an operating-system lock on `<file>.lock` as long as it lives, and writes a heartbeat into the
file. A dead server loses the lock at once; a frozen one keeps it, and is passed over when its heartbeat is
older than `HEARTBEAT_TIMEOUT_MS`. Whoever takes the file raises the server epoch, and every batch of writes
checks it first: a frozen server that wakes up can write nothing any more.
"""

import fcntl
import logging
import os
import sqlite3
from pathlib import Path
from typing import Self

from dragoman.stores.errors import StoreBusy, StoreError
from dragoman.stores.sqlite.connection import StoreInUse, is_busy
from dragoman.stores.sqlite.locks import write_lock_holder

HEARTBEAT_TIMEOUT_MS = 15_000
HEARTBEAT_SECONDS = 3.0

_LOG = logging.getLogger("dragoman.store")


class OwnershipLost(Exception):
    """Another server took the file over."""


class Ownership:
    """The right to write to a file.

    Attributes:
        epoch: this server's epoch, above that of every server before it.
    """

    def __init__(self, epoch: int, lock: int, locked: bool) -> None:
        self.epoch = epoch
        self._lock = lock
        self._locked = locked

    @classmethod
    def take(cls, connection: sqlite3.Connection, path: Path) -> Self:
        """Take the file.

        Raises:
            StoreInUse: a living server has it.
            StoreError: it cannot be written to.
            StoreBusy: somebody is writing to it, a server perhaps that is frozen.
        """
        try:
            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"{path}.lock cannot be opened: {error.strerror}") from error
        try:
            return cls._take(connection, path, lock)
        except (StoreError, sqlite3.Error) as error:
            os.close(lock)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path} cannot be written to: {error}") from error

    @classmethod
    def _take(cls, connection: sqlite3.Connection, path: Path, lock: int) -> Self:
        locked = _try_lock(lock)
        # First without the lock: whoever lives is told of at once, however busy it is with writing.
        _check_free(connection, path, locked)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if is_busy(error):
                raise StoreBusy(_waiting(connection, path)) from error
            raise
        try:
            epoch, now = _check_free(connection, path, locked)
            connection.execute(
                "UPDATE server SET epoch = ?, heartbeat_at = ?, locked = ?, process = ?",
                (epoch + 1, now, locked, f"process {os.getpid()}"),
            )
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return cls(epoch + 1, lock, locked)

    def check(self, connection: sqlite3.Connection) -> int:
        """Make sure that the file is still ours and return the store's time; called in every writing transaction.

        Raises:
            OwnershipLost: it is not.
        """
        epoch, now = connection.execute("SELECT epoch, now_ms FROM server, store_clock").fetchone()
        if epoch != self.epoch:
            raise OwnershipLost
        time: int = now
        return time

    def beat(self, connection: sqlite3.Connection, now: int) -> None:
        """Write the heartbeat, and take the lock over from a frozen owner that has died since."""
        self._locked = self._locked or _try_lock(self._lock)
        connection.execute("UPDATE server SET heartbeat_at = ?, locked = ?", (now, self._locked))

    def release(self, connection: sqlite3.Connection) -> None:
        """Let the file go. The epoch stays, so that nothing of this server can be mistaken for the next one's."""
        try:
            connection.execute("UPDATE server SET heartbeat_at = 0 WHERE epoch = ?", (self.epoch,))
        except sqlite3.Error as error:
            _LOG.warning("the store could not be released, so the next server may wait for it: %s", error)
        os.close(self._lock)


def _check_free(connection: sqlite3.Connection, path: Path, locked: bool) -> tuple[int, int]:
    """Return the epoch and the time of a file that no living server has; `locked` if its lock is ours.

    Raises:
        StoreInUse: a living server has it.
    """
    epoch, beat, was_locked, process, now = connection.execute(
        "SELECT epoch, heartbeat_at, locked, process, now_ms FROM server, store_clock"
    ).fetchone()
    # The lock is free if its holder is dead. One that took over from a frozen holder has none at first.
    dead = locked and was_locked
    if not dead and now - beat <= HEARTBEAT_TIMEOUT_MS:
        raise StoreInUse(path, process)
    return epoch, now


def _waiting(connection: sqlite3.Connection, path: Path) -> str:
    """Say who keeps a file from being taken, and what to do about it."""
    holder = write_lock_holder(path)
    if holder is None:
        return f"{path} is locked by another process; it can be taken when that has written, or has ended"
    silence, process = connection.execute(
        "SELECT (now_ms - heartbeat_at) / 1000, process FROM server, store_clock"
    ).fetchone()
    if process != f"process {holder.pid}":
        return f"{path} is locked by {holder}; it can be taken when that process has written, or has ended"
    return (
        f"{path} is locked by {holder}: a Dragoman server that has not been heard of for {silence} s and stands "
        f"still while it writes. End it (kill -9 {holder.pid}); nothing that it has acknowledged is lost"
    )


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
