"""The SQLite store's group commit: what fails in a batch fails alone, and a store that is held up answers in time."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway.hooks import KeptConfig
from dragoman.gateway.ports import TaskStore
from dragoman.model import TaskState, Used
from dragoman.model.errors import DragomanError, TaskNotFound, Unavailable
from dragoman.stores.sqlite import SqliteStore, connection
from dragoman.stores.sqlite.writer import Transaction, Work
from tests.contract.homes import SqliteHome
from tests.contract.samples import (
    ALICE,
    acceptance,
    begun,
    events_of,
    filters,
    message,
    one_page,
    recorded,
    status,
)
from tests.contract.test_auditing import SEND, audited, done

GOOD = 50


@pytest.fixture
def home(tmp_path: Path) -> SqliteHome:
    """A place for a SQLite store, whatever else is under contract."""
    return SqliteHome(tmp_path)


def refuse_by_database(tx: Transaction) -> None:
    """Write something, and then something that the database itself refuses."""
    tx.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    tx.execute("INSERT INTO no_such_table VALUES (1)")


def refuse_by_constraint(tx: Transaction) -> None:
    """The same by a constraint."""
    tx.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    tx.execute("INSERT INTO clock VALUES (2, 0)")


def refuse_by_mistake(tx: Transaction) -> None:
    """A fault in our own code."""
    tx.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    raise ZeroDivisionError


def refuse_by_rule(tx: Transaction) -> None:
    """A rule that does not hold; nothing was written before."""
    raise TaskNotFound("nowhere")


async def awaited(store: SqliteStore, work: Work) -> Any:
    """Run `work` in its turn: when this is awaited."""
    return await store._writer.run(work)


@pytest.mark.parametrize("at", [0, 25, GOOD])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (refuse_by_database, Unavailable),
        (refuse_by_constraint, Unavailable),
        (refuse_by_mistake, ZeroDivisionError),
        (refuse_by_rule, TaskNotFound),
    ],
    ids=lambda value: value.__name__,
)
async def test_a_failing_operation_fails_alone_in_its_batch(
    store: SqliteStore, bad: Work, error: type[Exception], at: int
) -> None:
    commits = recorded(store)
    gate = threading.Event()
    # While the writer waits in this one, the others gather in their order and become the next batch.
    held = asyncio.ensure_future(store._writer.run(lambda _: gate.wait(10)))
    work: list[Awaitable[Any]] = [store.accept(acceptance(message(f"{n}"))) for n in range(GOOD)]
    work.insert(at, awaited(store, bad))
    waiting = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(0)
    gate.set()
    assert await held

    with pytest.raises(error):
        await waiting.pop(at)
    accepted = await asyncio.gather(*waiting)
    for one in accepted:
        assert await store.events(one.task_id, 0) == one.events == tuple(events_of(commits, one.task_id))
    assert len([run for commit in commits for run in commit.runs]) == GOOD
    assert (await one_page(store, filters())).total == GOOD
    assert await store.scopes() == (ALICE,)


async def test_an_error_of_the_database_tells_its_caller_nothing_of_a_statement(store: SqliteStore) -> None:
    with pytest.raises(Unavailable) as refusal:
        await store._writer.run(refuse_by_database)
    assert "no_such_table" not in refusal.value.message
    assert "INSERT" not in refusal.value.message


@pytest.mark.alone
async def test_a_store_whose_file_another_process_holds_refuses_a_whole_batch_in_good_time(
    home: SqliteHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every caller waits once for the lock, not once for each of those before it."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.3)
    store = home.open()
    with closing(sqlite3.connect(home.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        results = await asyncio.gather(*(begun(store) for _ in range(20)), return_exceptions=True)
        took = time.monotonic() - began
        other.execute("ROLLBACK")
    assert [type(result) for result in results] == [Unavailable] * 20
    assert (await begun(store)).epoch == 1
    home.close()
    assert took < 1.5, f"the last of 20 callers was told after {took:.1f} s that the store is busy"


async def test_a_store_that_is_read_while_it_is_written_shows_whole_commits_only(store: TaskStore) -> None:
    """A reader on another thread never finds a task without its event, or a total that is off."""
    stop = threading.Event()

    async def read() -> int:
        looks = 0
        while not stop.is_set() or looks == 0:
            page = await one_page(store, filters(), size=100)
            assert page.total == len(page.tasks) or page.has_more
            for task in page.tasks[:5]:
                fold = await store.read(ALICE, task.id)
                assert fold.seq == 1
            looks += 1
        return looks

    reading = asyncio.ensure_future(asyncio.to_thread(lambda: asyncio.run(read())))
    for _ in range(10):
        await asyncio.gather(*(begun(store) for _ in range(10)))
    stop.set()
    assert await reading > 0


async def test_a_closed_store_has_written_what_was_waiting(home: SqliteHome) -> None:
    store = home.open()
    accepting = [asyncio.ensure_future(begun(store)) for _ in range(30)]
    await asyncio.sleep(0)
    home.close()
    leases = await asyncio.gather(*accepting)
    store = home.open()
    try:
        for lease in leases:
            assert len(await store.events(lease.task_id, 0)) == 1
        with pytest.raises(DragomanError):
            await store.read(ALICE, "no such task")
    finally:
        home.close()


async def test_a_task_without_push_configurations_runs_no_statement_for_them(home: SqliteHome) -> None:
    store = home.open()
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    lease = await begun(store)
    await store.append(lease, [status(TaskState.WORKING)])
    await store.append(lease, [status(TaskState.COMPLETED)])
    assert statements and not [one for one in statements if "push_config" in one]
    await begun(
        store, push=KeptConfig(id="c", generation="1.0", url="https://a.example/", scheme="", sealed=b"")
    )
    assert len([one for one in statements if "push_config" in one]) == 1
    store._connection.set_trace_callback(None)


async def test_one_bad_operation_of_a_batch_takes_no_row_of_its_neighbours_and_leaves_none_twice(
    store: SqliteStore,
) -> None:
    gate = threading.Event()
    held = asyncio.ensure_future(store._writer.run(lambda _: gate.wait(10)))
    asked = [structs.replace(acceptance(message(f"{n}")), audit=SEND) for n in range(20)]
    waiting = [asyncio.ensure_future(store.accept(one)) for one in asked[:10]]
    bad = asyncio.ensure_future(awaited(store, refuse_by_database))
    waiting += [asyncio.ensure_future(store.accept(one)) for one in asked[10:]]
    await asyncio.sleep(0)
    gate.set()
    await held
    with pytest.raises(DragomanError):
        await bad
    accepted = await asyncio.gather(*waiting)
    assert await audited(store) == [done(SEND, one.task_id) for one in accepted]


async def test_a_listing_of_somebody_who_has_all_grants_needs_no_thread(store: SqliteStore) -> None:
    lease = await begun(store)
    await store.append(lease, [Used("wiki")])
    threads: list[int] = []

    def withheld(source: str) -> bool:
        threads.append(threading.get_ident())
        return False

    assert len((await one_page(store, filters(), withheld=withheld)).tasks) == 1
    assert set(threads) == {threading.get_ident()}
