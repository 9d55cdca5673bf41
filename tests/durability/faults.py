"""A server on a disk that fails when it is told to: `faults.c`, compiled and loaded before everything else."""

import errno
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")
KINDS = {
    "full": (errno.ENOSPC, 0),
    "read-only": (errno.EROFS, 0),
    "broken": (errno.EIO, 0),
    "unable to sync": (0, errno.EIO),
}
"""What a disk can be → the errors of writes and of syncs."""


class Disk:
    """A disk that is sound until it is told to be otherwise."""

    def __init__(self, folder: Path) -> None:
        self._library = folder / "faults.so"
        self._control = folder / "faults"
        self._tell(0, 0)
        # No -Werror: what a compiler warns of is another one each year.
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE), "-ldl"], check=True
        )

    @property
    def environment(self) -> dict[str, str]:
        """What puts a process onto this disk."""
        return {"LD_PRELOAD": str(self._library), "FAULTS": str(self._control)}

    @contextmanager
    def failing(self, kind: str) -> Iterator[None]:
        """Let it fail in the way of `KINDS` that is named."""
        self._tell(*KINDS[kind])
        try:
            yield
        finally:
            self._tell(0, 0)

    def _tell(self, writes: int, syncs: int) -> None:
        # Where it is: the process has this very file mapped.
        handle = os.open(self._control, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(handle, struct.pack("ii", writes, syncs))
        os.close(handle)
