"""What SQLite's errors mean to a caller, and to an operator."""

import os
import sqlite3
from pathlib import Path

import pytest

from dragoman.stores.sqlite import connection
from dragoman.stores.sqlite.connection import cause_of, explain, is_busy, is_damage, unavailable


def failure(name: str, text: str = "a text of SQLite") -> sqlite3.Error:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error


CAUSES = [
    ("SQLITE_FULL", "has no room left on its disk"),
    ("SQLITE_READONLY", "is read-only"),
    ("SQLITE_READONLY_DBMOVED", "is read-only"),
    ("SQLITE_BUSY", "is locked by another process"),
    ("SQLITE_BUSY_SNAPSHOT", "is locked by another process"),
    ("SQLITE_CORRUPT", "is damaged"),
    ("SQLITE_CORRUPT_INDEX", "is damaged"),
    ("SQLITE_NOTADB", "is damaged"),
    ("SQLITE_IOERR_WRITE", "cannot be read or written, because its disk fails"),
    ("SQLITE_CANTOPEN", "cannot be opened"),
]


@pytest.mark.parametrize(("name", "words"), CAUSES)
def test_an_error_says_what_is_the_matter_with_the_store(name: str, words: str, tmp_path: Path) -> None:
    error = failure(name)
    assert cause_of(error) == words
    assert explain(error, tmp_path / "dragoman.db").startswith(words)
    refusal = unavailable(error)
    assert refusal.__cause__ is error
    assert "SQLite" not in refusal.message + explain(error, tmp_path / "dragoman.db")
    assert "damaged" in refusal.message if is_damage(error) else words in refusal.message


@pytest.mark.parametrize("name", ["SQLITE_ERROR", "SQLITE_CONSTRAINT_UNIQUE", ""])
def test_a_fault_of_our_own_is_not_laid_on_the_store(name: str) -> None:
    error = failure(name)
    assert cause_of(error) == ""
    assert not is_busy(error)
    assert not is_damage(error)
    assert unavailable(error).message == "The task store does not answer; nothing was stored. Try again later"
    assert cause_of(ValueError()) == cause_of(None) == ""


def test_an_operator_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "dragoman.db"
    monkeypatch.setattr(connection, "write_lock_holder", lambda path: "process 5 (vim)")
    assert explain(failure("SQLITE_BUSY"), file) == (
        "is locked by process 5 (vim); it goes on when that process has written, or has ended"
    )
    monkeypatch.setattr(connection, "write_lock_holder", lambda path: None)
    assert explain(failure("SQLITE_BUSY"), file) == "is locked by another process"
    assert "put a copy in its place" in explain(failure("SQLITE_CORRUPT"), file)


def test_a_disk_that_became_read_only_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = failure("SQLITE_IOERR_WRITE")
    assert "its disk fails" in explain(error, tmp_path / "dragoman.db")
    real = os.statvfs(tmp_path)
    read_only = os.statvfs_result((*real[:8], real.f_flag | os.ST_RDONLY, real.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    assert "read-only now" in explain(error, tmp_path / "dragoman.db")
