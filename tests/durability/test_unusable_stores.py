"""A store that cannot be used: the server says which and why, in one line, and ends with code 1."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.ledger import LedgerServer, dragoman

pytestmark = pytest.mark.sqlite

OBEYING_MODES = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    if os.geteuid() == 0
    else ()
)
"""What makes file modes count, for root too."""


def refused(data: Path, *, prefix: tuple[str, ...] = ()) -> str:
    """What `dragoman serve` says on standard error when it ends with code 1, in good order."""
    ended = dragoman(
        *("serve", "--data", str(data), "--listen", "127.0.0.1:0"),
        folder=next(place for place in data.parents if place.is_dir() and place.name != "data"),
        prefix=prefix,
        seconds=15.0,
    )
    assert ended.returncode == 1, (ended.returncode, ended.stderr)
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.stdout == ""
    lines = [line for line in ended.stderr.splitlines() if line.startswith("dragoman: ")]
    assert len(lines) == 1, ended.stderr
    assert str(data) in lines[0]
    return lines[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty data folder."""
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def used(server: LedgerServer) -> Path:
    """A data folder whose server has ended."""
    with server:
        assert server.terminate() == 0
    return server.data


@pytest.mark.parametrize("content", [b"no database at all\n" * 400, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_file_that_is_no_database_is_named(folder: Path, content: bytes) -> None:
    (folder / "dragoman.db").write_bytes(content)
    assert "dragoman.db" in refused(folder)
    assert (folder / "dragoman.db").read_bytes() == content


def test_a_database_of_something_else_is_left_alone(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "dragoman.db")) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    assert "something else" in refused(folder)
    with closing(sqlite3.connect(folder / "dragoman.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("recipe",)]


def test_a_newer_schema_is_refused_and_left_alone(used: Path) -> None:
    with closing(sqlite3.connect(used / "dragoman.db")) as connection:
        (known,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {known + 1}")
    line = refused(used)
    assert "newer" in line
    assert str(known + 1) in line
    with closing(sqlite3.connect(used / "dragoman.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (known + 1,)


def test_a_folder_in_the_place_of_the_file_is_named(folder: Path) -> None:
    (folder / "dragoman.db").mkdir()
    assert "dragoman.db" in refused(folder)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("I am a file")
    refused(tmp_path / "data")


needs_modes = pytest.mark.needs(*(["setpriv"] if OBEYING_MODES else []))


@needs_modes
def test_a_read_only_folder_is_named(folder: Path) -> None:
    folder.chmod(0o500)
    refused(folder, prefix=OBEYING_MODES)


@needs_modes
def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    folder.chmod(0o500)
    refused(folder / "deeper" / "data", prefix=OBEYING_MODES)


@needs_modes
def test_a_read_only_file_is_named(used: Path) -> None:
    (used / "dragoman.db").chmod(0o400)
    refused(used, prefix=OBEYING_MODES)


@needs_modes
def test_a_used_folder_that_became_read_only_is_named(used: Path) -> None:
    for name in ("dragoman.db-wal", "dragoman.db-shm", "dragoman.db.lock"):
        (used / name).unlink(missing_ok=True)
    used.chmod(0o500)
    refused(used, prefix=OBEYING_MODES)


def test_a_store_that_is_private_stays_private(used: Path) -> None:
    assert used.stat().st_mode & 0o777 == 0o700
    for file in used.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_copy_of_a_store_serves_in_another_folder(server: LedgerServer, used: Path) -> None:
    copy = used.parent / "copy"
    shutil.copytree(used, copy)
    with LedgerServer(copy) as other:
        assert other.pid
