"""Who holds the write lock of a store file, as the kernel tells it, so that who waits for it knows whom to ask.

SQLite in WAL mode locks byte 120 of `<file>-shm` for writing. That file must not be opened to ask for the lock: closing
it would drop the locks that this process has on it itself. Linux lists all locks in `/proc/locks`; elsewhere nobody
is named.
"""

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_WRITE_LOCK = 120
_LOCKS = Path("/proc/locks")


class Holder(Struct, frozen=True):
    """A process that holds a write lock. `name` is that of its program; `stopped` if it does not run at all."""

    pid: int
    name: str
    stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name}{', which is stopped' if self.stopped else ''})"


def write_lock_holder(path: Path) -> Holder | None:
    """Return the other process that is writing to a store file, or `None` if there is none or it cannot be told."""
    try:
        inode = os.stat(f"{path}-shm").st_ino
        lines = _LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        pid = _writer(line.split(), inode)
        if pid is not None and pid != os.getpid():
            return _holder(pid)
    return None


def _writer(words: list[str], inode: int) -> int | None:
    """Return the process of a line of `/proc/locks` if it holds the write lock of this file."""
    # NUMBER: POSIX ADVISORY WRITE PID MAJOR:MINOR:INODE START END; a waiting one has an arrow after its number.
    if (
        len(words) != 8
        or words[1] == "->"
        or words[3] != "WRITE"
        or words[5].rpartition(":")[2] != str(inode)
    ):
        return None
    with suppress(ValueError):
        start, end = int(words[6]), int(words[7])
        if start <= _WRITE_LOCK <= end:
            return int(words[4])
    return None


def _holder(pid: int) -> Holder:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        # The state comes after the name, which stands in parentheses and may hold anything.
        state = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][:1]
        )
    except OSError:
        name, state = "of another machine or container", ""
    return Holder(pid, name, state in ("T", "t"))
