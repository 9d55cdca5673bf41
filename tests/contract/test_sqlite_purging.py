"""How the SQLite store finds what to purge: by an index, whatever else there is, and a little at a time."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.gateway.ports import JournalEntry
from dragoman.model import TaskState
from dragoman.model.payload import pack
from dragoman.stores.sqlite import SqliteStore
from tests.contract.homes import SqliteHome
from tests.contract.samples import HOUR, begun, brought_to, chunk, message, purged, status

KEPT = 1_000_000
DAY = 24 * HOUR


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SqliteHome]:
    """A place for a SQLite store, whatever else is under contract."""
    place = SqliteHome(tmp_path)
    yield place
    place.remove()


async def test_no_statement_of_a_purge_looks_at_more_than_it_needs(home: SqliteHome) -> None:
    """Each is planned as a search by an index or a primary key: none goes over a table."""
    store = home.open()
    for context_id in ("", "one", "two"):
        for state in (TaskState.COMPLETED, TaskState.FAILED):
            await brought_to(store, state, sent=message(context_id=context_id))
    lease = await begun(store)
    await store.record(lease, JournalEntry(ordinal=1, kind="step", name="pay", acts=0, result=pack(1)))
    for _ in range(20):
        await store.append(lease, [chunk("x", append=True) for _ in range(100)])
    await store.append(lease, [status(TaskState.COMPLETED)])
    home.shift_clock(HOUR)
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    assert await purged(store, completed=HOUR, failed=HOUR) == 7
    store._connection.set_trace_callback(None)
    seen = {text for text in statements if text.split()[0] in ("SELECT", "DELETE", "INSERT", "UPDATE")}
    assert len(seen) > 12
    with closing(sqlite3.connect(home.path)) as connection:
        for text in seen:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")]
            # But the list of ids itself, and the two tables of one row.
            scans = [line for line in plan if line.startswith("SCAN") and "json_each" not in line]
            assert set(scans) <= {"SCAN clock", "SCAN server"}, (text, plan)
            # All identities of a scope would be too many.
            assert all("message_id=?" in line for line in plan if " identity " in line), (text, plan)


def fill(path: Path) -> None:
    """Write a million completed tasks of one scope that are a day old, with two events each, by the database itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY, id TEXT)")
        connection.execute(
            "INSERT INTO n WITH RECURSIVE m (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m WHERE i < ?)"
            " SELECT i, printf('0000%08d', i) FROM m",
            (KEPT,),
        )
        connection.execute("BEGIN")
        connection.execute("INSERT INTO scope VALUES (1, 'acme', 'alice', 'writer')")
        connection.execute(
            "INSERT INTO task SELECT id, 1, 'c' || id, 1, 0, 3, now_ms - ? + i, 2, 2, now_ms - ? + i, NULL, x'7b7d',"
            " 1, 1, 'done', 0, 0, 0, NULL, 0 FROM n, store_clock",
            (DAY, DAY),
        )
        connection.execute(
            'INSERT INTO event SELECT id, 1, 1, 0, CAST(\'{"c":"received","message":{}}\' AS BLOB) FROM n'
        )
        connection.execute(
            'INSERT INTO event SELECT id, 2, 1, 0, CAST(\'{"c":"status","state":3}\' AS BLOB) FROM n'
        )
        connection.execute("INSERT INTO identity SELECT 1, hex(randomblob(16)), x'00', id FROM n")
        connection.execute("INSERT INTO counter VALUES (1, '', 0, 0, ?, 0, 0, 0, 0, 0)", (KEPT,))
        connection.execute("COMMIT")


async def one_round(store: SqliteStore, *, thorough: bool, age: int) -> tuple[int, list[float]]:
    """A round: how many tasks it purged, and how many seconds each step took."""
    tasks, took, place = 0, [], ""
    while not took or place:
        began = time.perf_counter()
        step = await store.purge(
            {TaskState.COMPLETED: 100 * DAY, TaskState.FAILED: age}, place, thorough=thorough
        )
        took.append(time.perf_counter() - began)
        tasks, place = tasks + step.tasks, step.place
    return tasks, took


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.alone
async def test_beside_a_million_tasks_that_are_kept_the_few_that_are_old_are_found_at_once(
    home: SqliteHome,
) -> None:
    home.open()
    home.close()
    fill(home.path)
    store = home.open()
    for _ in range(50):
        await brought_to(store, TaskState.FAILED)
    home.shift_clock(HOUR)
    tasks, took = await one_round(store, thorough=False, age=HOUR)
    assert tasks == 50
    assert sum(took) < 1.0, took
    tasks, took = await one_round(store, thorough=False, age=HOUR)
    assert (tasks, len(took)) == (0, 1)
    assert took[0] < 0.1
    # A thorough one does look at everything, but never for long.
    tasks, took = await one_round(store, thorough=True, age=HOUR)
    assert tasks == 0
    assert sorted(took)[int(len(took) * 0.99)] < 0.05, max(took)
    assert sum(took) < 30
