"""Who holds a write lock, and what is said of it."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.stores.sqlite import locks
from dragoman.stores.sqlite.locks import Holder, write_lock_holder
from tests.harness.polling import until

HELD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""

linux = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who holds a lock")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file in WAL mode that this process has open."""
    path = tmp_path / "dragoman.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE something (x)")
        yield path


@linux
def test_the_process_that_writes_is_named_as_long_as_it_does(file: Path) -> None:
    assert write_lock_holder(file) is None
    writing = subprocess.Popen(
        [sys.executable, "-c", HELD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writing.stdout is not None
    writing.stdout.readline()
    holder = write_lock_holder(file)
    assert holder is not None
    assert (holder.pid, holder.stopped) == (writing.pid, False)
    assert holder.name.startswith("python")
    assert str(holder) == f"process {writing.pid} ({holder.name})"
    writing.send_signal(signal.SIGSTOP)
    until(lambda: "which is stopped" in str(write_lock_holder(file)), what="it is seen to be stopped")
    writing.send_signal(signal.SIGCONT)
    writing.communicate(timeout=10)
    assert write_lock_holder(file) is None


@linux
def test_a_lock_of_this_process_is_nobody_elses(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert write_lock_holder(file) is None
        # And it is still there: asking must not drop it.
        with (
            closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError),
        ):
            other.execute("BEGIN IMMEDIATE")


LINES = [
    ("1: POSIX  ADVISORY  WRITE 77 08:01:INODE 120 120", 77),
    ("1: POSIX  ADVISORY  WRITE 77 fe:00:INODE 120 127", 77),
    ("1: OFDLCK ADVISORY  WRITE 77 08:01:INODE 0 EOF", None),
    ("1: POSIX  ADVISORY  READ 77 08:01:INODE 120 120", None),
    ("1: POSIX  ADVISORY  WRITE 77 08:01:INODE 121 121", None),
    ("1: POSIX  ADVISORY  WRITE 77 08:01:1INODE 120 120", None),
    ("1: -> POSIX  ADVISORY  WRITE 77 08:01:INODE 120 120", None),
    ("1: POSIX  ADVISORY  WRITE", None),
    ("", None),
]


@pytest.mark.parametrize(("line", "pid"), LINES)
def test_lines_of_the_kernel_are_read(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, pid: int | None
) -> None:
    inode = Path(f"{file}-shm").stat().st_ino
    listing = tmp_path / "locks"
    listing.write_text(f"9: FLOCK  ADVISORY  WRITE 1 00:01:2 0 EOF\n{line.replace('INODE', str(inode))}\n")
    monkeypatch.setattr(locks, "_LOCKS", listing)
    holder = write_lock_holder(file)
    assert (holder.pid if holder else None) == pid


def test_where_nobody_can_tell_nobody_is_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write_lock_holder(tmp_path / "none.db") is None
    monkeypatch.setattr(locks, "_LOCKS", tmp_path / "no such list")
    assert write_lock_holder(file) is None


def test_a_process_that_cannot_be_seen_is_still_named_by_its_number(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = Path(f"{file}-shm").stat().st_ino
    listing = tmp_path / "locks"
    listing.write_text(f"1: POSIX  ADVISORY  WRITE 99999999 08:01:{inode} 120 120\n")
    monkeypatch.setattr(locks, "_LOCKS", listing)
    assert write_lock_holder(file) == Holder(99999999, "of another machine or container", False)
