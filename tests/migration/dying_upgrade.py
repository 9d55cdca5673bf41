"""`python -m tests.migration.dying_upgrade FILE BACKUP STATEMENT`: upgrade a store, and be killed on the way.

The process kills itself (SIGKILL) before the statement of that number, counted from 1 over the whole upgrade.
"""

import os
import signal
import sqlite3
import sys
from pathlib import Path

from dragoman.stores.sqlite import migrating, upgrade


def main(file: str, backup: str, at: int) -> None:
    """Do it, or die."""
    statements = 0

    def count(_: str) -> None:
        nonlocal statements
        statements += 1
        if statements == at:
            os.kill(os.getpid(), signal.SIGKILL)

    opened = migrating.open_writer

    def open_writer(path: Path) -> sqlite3.Connection:
        connection = opened(path)
        connection.set_trace_callback(count)
        return connection

    migrating.open_writer = open_writer
    upgrade(Path(file), Path(backup), lambda done, total: None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
