"""Upgrading a store: all of it or nothing, never under a server, and not a row is lost."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.stores.schema import Migration
from dragoman.stores.sqlite import StoreError, migrating, upgrade
from dragoman.stores.sqlite.connection import open_writer
from dragoman.stores.sqlite.migrating import migrations, statements
from dragoman.stores.sqlite.ownership import HEARTBEAT_TIMEOUT_MS, Ownership, OwnershipLost
from tests.harness.paths import SOURCE
from tests.migration.stores import NEWEST, OLDER, make, number_of, rows_of, schema_of

ROOT = SOURCE.parent


def silent(done: int, total: int) -> None:
    """Show no progress."""


@pytest.fixture(params=OLDER)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of an older schema."""
    return make(tmp_path / "data" / "dragoman.db", request.param)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "backup.db"


def test_an_upgrade_keeps_every_row_and_a_copy_of_the_store_as_it_was(old: Path, copy: Path) -> None:
    before, schema, number = rows_of(old), schema_of(old), number_of(old)
    done = upgrade(old, copy, silent)
    assert (done.before, done.schema, done.backup) == (number, NEWEST, copy)
    assert number_of(old) == NEWEST
    assert rows_of(old, before) == before
    assert number_of(copy) == number
    assert schema_of(copy) == schema
    assert rows_of(copy) == before
    assert copy.stat().st_mode & 0o777 == 0o600


def test_an_upgrade_of_a_current_store_does_nothing(old: Path, copy: Path) -> None:
    upgrade(old, copy, silent)
    content = old.read_bytes()
    again = upgrade(old, copy.with_name("other.db"), silent)
    assert (again.before, again.schema, again.backup) == (NEWEST, NEWEST, None)
    assert old.read_bytes() == content
    assert not copy.with_name("other.db").exists()


def test_an_upgrade_of_no_store_makes_none(tmp_path: Path, copy: Path) -> None:
    missing = tmp_path / "dragoman.db"
    assert upgrade(missing, copy, silent).schema == 0
    assert not missing.exists()
    assert not copy.exists()


def test_a_store_that_a_server_has_is_left_alone(old: Path, copy: Path) -> None:
    before = number_of(old)
    with closing(open_writer(old)) as server:
        ownership = Ownership.take(server, old)
        with pytest.raises(
            StoreError, match=r"in use by a Dragoman server \(process \d+\); stop it, then upgrade"
        ):
            upgrade(old, copy, silent)
        ownership.check(server)
        ownership.release(server)
    assert number_of(old) == before
    assert not copy.exists()


def test_a_frozen_server_is_passed_over_and_can_write_nothing_any_more(old: Path, copy: Path) -> None:
    with closing(open_writer(old)) as server:
        ownership = Ownership.take(server, old)
        server.execute("UPDATE server SET heartbeat_at = heartbeat_at - ?", (HEARTBEAT_TIMEOUT_MS + 1,))
        assert upgrade(old, copy, silent).schema == NEWEST
        with pytest.raises(OwnershipLost):
            ownership.check(server)
        ownership.release(server)


def test_a_server_that_takes_the_store_meanwhile_keeps_it_as_it_is(old: Path, copy: Path) -> None:
    before = number_of(old)

    def take(done: int, total: int) -> None:
        with closing(sqlite3.connect(old)) as other, other:
            other.execute("UPDATE server SET epoch = epoch + 1")

    with pytest.raises(StoreError, match="has taken"):
        upgrade(old, copy, take)
    assert number_of(old) == before


def test_a_long_copy_shows_that_the_store_is_in_use(
    old: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr("dragoman.stores.sqlite.backup.STEP_PAGES", 4)
    beats = []

    def age(done: int, total: int) -> None:
        with closing(sqlite3.connect(old)) as other, other:
            beats.append(other.execute("SELECT heartbeat_at FROM server").fetchone()[0])
            other.execute("UPDATE server SET heartbeat_at = 0")

    upgrade(old, copy, age)
    assert len(beats) > 2
    assert all(beats)


def test_a_step_that_fails_leaves_the_store_as_it_was(
    old: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, schema, number = rows_of(old), schema_of(old), number_of(old)
    wrong = Migration(
        NEWEST + 1, "wrong", "CREATE TABLE made (a);\nDROP TABLE journal;\nINSERT INTO nowhere VALUES (1);\n"
    )
    steps = [*migrations(), wrong]
    monkeypatch.setattr(migrating, "migrations", lambda: steps)
    with pytest.raises(StoreError, match="could not be upgraded and is as it was"):
        upgrade(old, copy, silent)
    assert (rows_of(old), schema_of(old), number_of(old)) == (before, schema, number)


def test_an_upgrade_that_was_killed_anywhere_left_all_or_nothing(old: Path, tmp_path: Path) -> None:
    before, schema, number = rows_of(old), schema_of(old), number_of(old)
    killed, died_after = 0, 0
    for at in range(1, 200):
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.migration.dying_upgrade",
                str(old),
                str(tmp_path / f"{at}.db"),
                str(at),
            ],
            cwd=ROOT,
            env={"PYTHONPATH": f"{SOURCE}:{ROOT}"},
            capture_output=True,
            timeout=30,
            check=False,
        )
        killed += ended.returncode == -signal.SIGKILL
        if number_of(old) == NEWEST:
            died_after = ended.returncode
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert (rows_of(old), schema_of(old), number_of(old)) == (before, schema, number)
    # Killed before each statement of the migration at least, and in the end either after its commit or not at all.
    assert killed > len([statement for step in migrations()[number:] for statement in statements(step)])
    assert died_after in (0, -signal.SIGKILL)
    assert rows_of(old, before) == before
    assert upgrade(old, tmp_path / "last.db", silent).schema == NEWEST
