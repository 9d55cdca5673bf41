"""The schema of a PostgreSQL store: the sum of its numbered files, applied once, by the command and by nothing else."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.stores.errors import StoreError
from dragoman.stores.postgres import schema_status, script, upgrade
from dragoman.stores.postgres.migrating import migrations
from dragoman.stores.target import Target
from tests.harness.postgres import databases, execute, rows
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.migration.test_served import dragoman

NEWEST = migrations()[-1].number

_SHAPE = """
SELECT 'column', table_name || '.' || column_name, concat_ws(' ', ordinal_position, data_type, collation_name,
    is_nullable, column_default, identity_generation) FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT 'function', proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""


def shape(url: str) -> set[tuple[Any, ...]]:
    """Everything that a database's schema names, with its definition."""
    return {tuple(row) for row in rows(url, _SHAPE)}


def number(url: str) -> int:
    """The number of a database's schema."""
    found: int = rows(url, "SELECT version FROM schema_version")[0][0]
    return found


@pytest.fixture
def empty() -> Iterator[str]:
    """A database without a schema."""
    url = databases().make_empty()
    yield url
    databases().drop(url)


@pytest.fixture
def config(empty: str, tmp_path: Path) -> Path:
    """A configuration that names it."""
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[store]\nurl = "{empty}"\n', encoding="utf-8")
    return file


def test_the_files_are_numbered_from_one_without_a_gap() -> None:
    steps = migrations()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.name.startswith(f"{step.number:04}_") for step in steps)


def test_an_upgrade_is_the_sum_of_all_files_and_so_is_the_sql_that_is_shown(empty: str) -> None:
    status = schema_status(Target(empty))
    assert (status.schema, status.newest) == (0, NEWEST)
    execute(empty, script(status))
    assert number(empty) == NEWEST
    assert script(schema_status(Target(empty))) == ""
    summed, upgraded = databases().make_empty(), databases().make_empty()
    try:
        for step in migrations():
            execute(summed, step.sql)
        upgrade(Target(upgraded))
        assert shape(empty) == shape(summed) == shape(upgraded)
        assert len(shape(empty)) > 100
    finally:
        databases().drop(summed)
        databases().drop(upgraded)


def test_of_several_upgrades_at_once_one_does_the_work(empty: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: upgrade(Target(empty)), range(4)))
    assert sorted(one.before for one in done) == [0, *[NEWEST] * 3]
    assert number(empty) == NEWEST


def test_an_upgrade_that_fails_leaves_everything_as_it_was(empty: str) -> None:
    execute(empty, "CREATE TABLE run_source (mine text)")
    before = shape(empty)
    with pytest.raises(StoreError, match=r"as it was.*run_source"):
        upgrade(Target(empty))
    assert shape(empty) == before


def test_a_newer_schema_is_left_alone(empty: str) -> None:
    upgrade(Target(empty))
    execute(empty, "UPDATE schema_version SET version = $1", NEWEST + 1)
    for work in (schema_status, upgrade):
        with pytest.raises(StoreError, match=f"schema {NEWEST + 1}, newer .* use a newer Dragoman"):
            work(Target(empty))


def test_an_upgrade_waits_until_no_server_is_there(empty: str, config: Path, tmp_path: Path) -> None:
    upgrade(Target(empty))
    with ServerProcess(tmp_path / "data", config=config):
        # As if there were something to do.
        execute(empty, "UPDATE schema_version SET version = $1", NEWEST - 1 or -1)
        with pytest.raises(StoreError, match="in use by 1 Dragoman server; stop"):
            upgrade(Target(empty))


def test_a_server_refuses_a_database_that_was_not_migrated_and_says_what_to_run(
    empty: str, config: Path, tmp_path: Path
) -> None:
    with (
        pytest.raises(ServerDidNotStartError) as refusal,
        ServerProcess(tmp_path / "data", config=config),
    ):
        pass
    assert "holds no store yet. Run `dragoman migrate upgrade`" in str(refusal.value)
    assert shape(empty) == set()
    upgrade(Target(empty))
    execute(empty, "UPDATE schema_version SET version = $1", NEWEST - 1 or -1)
    with (
        pytest.raises(ServerDidNotStartError) as refusal,
        ServerProcess(tmp_path / "data", config=config),
    ):
        pass
    assert f"this Dragoman needs {NEWEST}" in str(refusal.value)
    assert "`dragoman migrate upgrade`" in str(refusal.value)


def test_the_commands_make_a_store_and_tell_of_it(empty: str, config: Path, tmp_path: Path) -> None:
    status = dragoman("migrate", "status", "--config", config, "--json", cwd=tmp_path)
    assert (status.returncode, json.loads(status.stdout)["schema"]) == (1, 0)
    assert dragoman("migrate", "sql", "--config", config, cwd=tmp_path).stdout.startswith("BEGIN;")
    refused = dragoman("migrate", "upgrade", "--config", config, "--backup", "x", cwd=tmp_path)
    assert (refused.returncode, "pg_dump" in refused.stderr) == (2, True)
    made = dragoman("migrate", "upgrade", "--config", config, "--json", cwd=tmp_path)
    facts = json.loads(made.stdout)
    assert (made.returncode, facts["before"], facts["schema"]) == (0, 0, NEWEST)
    again = dragoman("migrate", "upgrade", "--config", config, cwd=tmp_path)
    assert (again.returncode, "nothing was done" in again.stdout) == (0, True)
    status = dragoman("migrate", "status", "--config", config, "--json", cwd=tmp_path)
    assert (status.returncode, json.loads(status.stdout)["pending"]) == (0, [])


def test_a_database_that_is_not_there_is_said_to_be_so(tmp_path: Path, config: Path, empty: str) -> None:
    config.write_text(f'[store]\nurl = "{empty}_not"\n', encoding="utf-8")
    for command in (("migrate", "status"), ("serve", "--listen", "127.0.0.1:0"), ("check",)):
        found = dragoman(*command, "--config", config, cwd=tmp_path)
        assert (found.returncode, "is not there" in found.stderr) == (1, True)
        assert "Traceback" not in found.stderr
