"""The schema is the sum of its numbered files, whichever way a store came to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.stores.sqlite import schema_status, script, upgrade
from dragoman.stores.sqlite.migrating import migrations, open_store
from tests.migration.stores import NEVER_OUT, NEWEST, OLDER, RECORDED, make, number_of, schema_of


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A store that was made anew."""
    file = tmp_path / "fresh.db"
    open_store(file).close()
    return file


def test_the_files_are_numbered_from_one_without_a_gap() -> None:
    steps = migrations()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.name.startswith(f"{step.number:04}_") for step in steps)


def test_every_older_schema_was_recorded() -> None:
    assert {*OLDER} | NEVER_OUT == {*range(1, NEWEST)}
    assert {*RECORDED} <= {*OLDER, NEWEST}


def test_a_new_store_is_the_sum_of_all_files(tmp_path: Path, fresh: Path) -> None:
    summed = tmp_path / "summed.db"
    with closing(sqlite3.connect(summed)) as store:
        for step in migrations():
            store.executescript(step.sql)
    assert schema_of(fresh) == schema_of(summed)
    assert number_of(fresh) == NEWEST


@pytest.mark.parametrize("schema", OLDER)
def test_an_upgraded_store_has_the_schema_of_a_new_one(tmp_path: Path, fresh: Path, schema: int) -> None:
    old = make(tmp_path / "old" / "dragoman.db", schema)
    upgrade(old, tmp_path / "backup.db", lambda done, total: None)
    assert schema_of(old) == schema_of(fresh)
    assert number_of(old) == NEWEST


@pytest.mark.parametrize("schema", OLDER)
def test_the_sql_that_is_shown_does_the_same(tmp_path: Path, fresh: Path, schema: int) -> None:
    old = make(tmp_path / "old" / "dragoman.db", schema)
    with closing(sqlite3.connect(old, isolation_level=None)) as store:
        store.executescript(script(schema_status(old)))
    assert schema_of(old) == schema_of(fresh)
    assert number_of(old) == NEWEST
    assert script(schema_status(old)) == ""


def test_the_sql_for_no_store_makes_a_new_one(tmp_path: Path, fresh: Path) -> None:
    made = tmp_path / "made.db"
    text = script(schema_status(made))
    assert not made.exists()
    with closing(sqlite3.connect(made, isolation_level=None)) as store:
        store.executescript(text)
    assert schema_of(made) == schema_of(fresh)
    assert number_of(made) == NEWEST
