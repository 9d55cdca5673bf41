"""The schema of a PostgreSQL store: the sum of its numbered files, applied once, by the command and by nothing else."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.stores.errors import StoreError
from dragoman.stores.postgres import migrating, schema_status, script, upgrade
from dragoman.stores.postgres.migrating import migrations
from dragoman.stores.schema import Migration, SchemaStatus
from dragoman.stores.target import Target
from tests.harness.postgres import Databases, ask, databases, execute, installed_databases, rows
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


@pytest.fixture(params=[databases, installed_databases], ids=lambda found: found.__name__)
def made(request: pytest.FixtureRequest) -> Databases:
    """The databases of each version that is tested."""
    found: Databases = request.param()
    return found


@pytest.fixture
def empty(made: Databases) -> Iterator[str]:
    """A database without a schema."""
    url = made.make_empty()
    yield url
    made.drop(url)


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


def test_an_upgrade_is_the_sum_of_all_files_and_so_is_the_sql_that_is_shown(
    made: Databases, empty: str
) -> None:
    status = schema_status(Target(empty))
    assert (status.schema, status.newest) == (0, NEWEST)
    execute(empty, script(status))
    assert number(empty) == NEWEST
    assert script(schema_status(Target(empty))) == ""
    summed, upgraded = made.make_empty(), made.make_empty()
    try:
        for step in migrations():
            execute(summed, step.sql)
        upgrade(Target(upgraded))
        assert shape(empty) == shape(summed) == shape(upgraded)
        assert len(shape(empty)) > 100
    finally:
        made.drop(summed)
        made.drop(upgraded)


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


def test_a_newer_schema_that_takes_no_older_servers_is_left_alone(empty: str) -> None:
    upgrade(Target(empty))
    execute(empty, "UPDATE schema_version SET version = $1, oldest = $1", NEWEST + 1)
    for work in (schema_status, upgrade):
        with pytest.raises(StoreError, match=f"schema {NEWEST + 1}, newer .* use a newer Dragoman"):
            work(Target(empty))


def test_a_newer_schema_that_takes_older_servers_is_served_and_not_touched(
    empty: str, config: Path, tmp_path: Path
) -> None:
    upgrade(Target(empty))
    execute(empty, "UPDATE schema_version SET version = $1, oldest = $2", NEWEST + 1, NEWEST)
    status = dragoman("migrate", "status", "--config", config, cwd=tmp_path)
    said = f"schema {NEWEST + 1}, which this Dragoman, of schema {NEWEST}, may use"
    assert (status.returncode, said in status.stdout) == (0, True)
    with ServerProcess(tmp_path / "data", config=config) as server:
        assert server.url
    done = upgrade(Target(empty))
    assert (done.before, done.schema, number(empty)) == (NEWEST + 1, NEWEST + 1, NEWEST + 1)


def test_an_upgrade_waits_until_no_server_is_there_that_could_not_go_on(
    empty: str, config: Path, tmp_path: Path
) -> None:
    upgrade(Target(empty))
    with ServerProcess(tmp_path / "data", config=config):
        # As if that server were older and there were something to do.
        execute(empty, "UPDATE schema_version SET version = $1", NEWEST - 1)
        execute(empty, "UPDATE replica SET schema = $1", NEWEST - 1)
        with pytest.raises(StoreError, match="in use by 1 Dragoman server that could not go on; stop"):
            upgrade(Target(empty))


def test_a_server_that_starts_during_an_upgrade_waits_for_it_and_is_refused_if_it_could_not_go_on(
    empty: str, config: Path, tmp_path: Path
) -> None:
    upgrade(Target(empty))
    server = ServerProcess(tmp_path / "data", config=config)

    async def change(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", migrating._LOCK)
            starting = asyncio.ensure_future(asyncio.to_thread(server.start))
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            async with asyncio.timeout(20):
                while not await connection.fetchval(waiting):
                    await asyncio.sleep(0.05)
            assert await connection.fetchval("SELECT count(*) FROM replica") == 0
            await connection.execute("UPDATE schema_version SET version = $1, oldest = $1", NEWEST + 1)
        with pytest.raises(ServerDidNotStartError, match="use a newer Dragoman"):
            await starting

    ask(empty, change)
    assert rows(empty, "SELECT count(*) FROM replica")[0][0] == 0


@pytest.mark.parametrize(
    ("sql", "oldest"),
    [
        ("-- One more table.\nCREATE TABLE more (id integer);", 7),
        ("-- One more table. Servers of schema 5 and later may go on.\nCREATE TABLE more (id integer);", 7),
        (
            "-- One more table.\n-- Servers of schema 5 and later may go on.\nCREATE TABLE more (id integer);",
            5,
        ),
    ],
)
def test_a_file_says_on_a_line_of_its_own_which_servers_can_go_on(sql: str, oldest: int) -> None:
    assert Migration(7, "0007_more", sql).oldest == oldest


def test_the_oldest_schema_that_may_go_on_is_the_newest_that_any_file_asks_for(empty: str) -> None:
    upgrade(Target(empty))
    steps = [
        Migration(NEWEST + more, "", f"-- Servers of schema {oldest} and later may go on.")
        for more, oldest in ((1, NEWEST), (2, NEWEST + 1), (3, NEWEST))
    ]
    for count, expected in ((1, NEWEST), (3, NEWEST + 1)):
        status = SchemaStatus("", NEWEST, NEWEST + count, tuple(steps[:count]))
        execute(empty, script(status))
        assert rows(empty, "SELECT version, oldest FROM schema_version")[0] == (NEWEST + count, expected)


def test_an_upgrade_gives_way_to_who_has_a_table_and_says_so_if_that_lasts(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_WAIT", "50ms")
    monkeypatch.setattr(migrating, "PAUSE_SECONDS", 0.05)
    upgrade(Target(empty))
    change = "-- Servers of schema 1 and later may go on.\nALTER TABLE task ADD COLUMN more integer;"
    step = Migration(NEWEST + 1, "more", change)
    monkeypatch.setattr(migrating, "migrations", lambda: [*migrations(), step])
    before = shape(empty)

    async def hold(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute("LOCK TABLE task IN ACCESS SHARE MODE")
            with pytest.raises(StoreError, match=r"is as it was: a table was in use .* pg_dump"):
                await asyncio.to_thread(upgrade, Target(empty))

    ask(empty, hold)
    assert shape(empty) == before
    assert upgrade(Target(empty)).schema == NEWEST + 1
    assert shape(empty) > before


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
    execute(empty, "UPDATE schema_version SET version = $1", NEWEST - 1)
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
