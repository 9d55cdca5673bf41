"""One server process per file.

A server holds an operating-system lock on `<file>.lock` as long as it lives, and writes a heartbeat into the
file. A dead server loses the lock at once; a frozen one keeps it, and is passed over when its heartbeat is
older than `HEARTBEAT_TIMEOUT_MS`. Whoever takes the file raises the server epoch, and every batch of writes
checks it first: a frozen server that wakes up can write nothing any more.
"""

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Self

from dragoman.stores.sqlite.connection import StoreError

HEARTBEAT_TIMEOUT_MS = 15_000
HEARTBEAT_SECONDS = 3.0


class OwnershipLost(Exception):
    """Another server took the file over."""


class Ownership:
    """The right to write to a file.

    Attributes:
        epoch: this server's epoch, above that of every server before it.
    """

    def __init__(self, epoch: int, lock: int) -> None:
        self.epoch = epoch
        self._lock = lock

    @classmethod
    def take(cls, connection: sqlite3.Connection, path: Path) -> Self:
        """Take the file.

        Raises:
            StoreError: a living server has it.
        """
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        dead = _try_lock(lock)
        connection.execute("BEGIN IMMEDIATE")
        try:
            epoch, beat, process, now = connection.execute(
                "SELECT epoch, heartbeat_at, process, now_ms FROM server, store_clock"
            ).fetchone()
            if not dead and now - beat <= HEARTBEAT_TIMEOUT_MS:
                os.close(lock)
                raise StoreError(
                    f"{path} is in use by another Dragoman server ({process}); stop it, or give this one a "
                    "folder of its own with --data"
                )
            connection.execute(
                "UPDATE server SET epoch = ?, heartbeat_at = ?, process = ?",
                (epoch + 1, now, f"process {os.getpid()}"),
            )
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return cls(epoch + 1, lock)

    def check(self, connection: sqlite3.Connection) -> int:
        """Make sure that the file is still ours and return the store's time; called inside every writing transaction.

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
        connection.execute("UPDATE server SET heartbeat_at = ?", (now,))
        _try_lock(self._lock)

    def release(self) -> None:
        """Let the file go. The epoch stays, so that nothing of this server can be mistaken for the next one's."""
        os.close(self._lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
