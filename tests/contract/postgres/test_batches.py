"""The PostgreSQL store beyond the contract: batches, totals, and who waits for whom."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.ports import Accepted, ApprovalRequest, JournalEntry, Lease
from dragoman.model import TaskState, Used
from dragoman.model.errors import (
    ApprovalNotFound,
    MessageIdConflict,
    TaskNotFound,
    Unavailable,
)
from dragoman.model.ids import new_id
from dragoman.model.payload import pack
from dragoman.stores.postgres import PostgresStore, connection, reader
from dragoman.stores.postgres.transaction import Transaction, Work
from dragoman.stores.postgres.writer import MAX_BATCH
from tests.contract.homes import PostgresHome
from tests.contract.postgres.folds import fold_once
from tests.contract.samples import (
    ALICE,
    TERMINAL,
    acceptance,
    begun,
    chunk,
    events_of,
    filters,
    ids,
    listing,
    message,
    one_page,
    recorded,
    status,
)
from tests.harness.postgres import rows

GOOD = 30
NUL = "before\0after"


async def refuse_by_database(tx: Transaction) -> None:
    """Write something, and then something that the database itself refuses."""
    await tx.db.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    await tx.db.execute("INSERT INTO no_such_table VALUES (1)")


async def refuse_by_constraint(tx: Transaction) -> None:
    """The same by a constraint."""
    await tx.db.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    await tx.db.execute("INSERT INTO clock VALUES (2, 0)")


async def refuse_by_mistake(tx: Transaction) -> None:
    """A fault in our own code."""
    await tx.db.execute("INSERT INTO scope (tenant, principal, agent) VALUES ('left', 'over', 'row')")
    raise ZeroDivisionError


async def refuse_by_rule(tx: Transaction) -> None:
    """A rule that does not hold; nothing was written before."""
    raise TaskNotFound("nowhere")


def hold(store: PostgresStore, gate: threading.Event) -> asyncio.Future[Any]:
    """Keep the lane busy until the gate opens: what is written meanwhile becomes one batch."""

    async def wait(tx: Transaction) -> bool:
        return await asyncio.to_thread(gate.wait, 10)

    return asyncio.ensure_future(store._writer.run(Work(act=wait)))


@pytest.mark.parametrize(
    "bad", [refuse_by_database, refuse_by_mistake, refuse_by_rule], ids=lambda bad: bad.__name__
)
async def test_batches_one_after_the_other_leave_no_transaction_open(
    home: PostgresHome, store: PostgresStore, bad: Any
) -> None:
    """What waits when a batch is committed is begun with that commit; it may fail all the same."""
    work: list[Awaitable[Any]] = [store.accept(acceptance()) for _ in range(2 * MAX_BATCH + 10)]
    work.insert(MAX_BATCH + 5, store._writer.run(Work(act=bad)))
    done = await asyncio.gather(*work, return_exceptions=True)
    assert [number for number, one in enumerate(done) if isinstance(one, Exception)] == [MAX_BATCH + 5]
    left = rows(home.url, "SELECT state FROM pg_stat_activity WHERE datname = current_database()")
    assert [state for (state,) in left if state and "transaction" in state] == []
    stored = rows(home.url, "SELECT count(*) FROM task")[0][0]
    assert stored == 2 * MAX_BATCH + 10


@pytest.mark.parametrize("at", [0, 15, GOOD])
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
    store: PostgresStore, bad: Any, error: type[Exception], at: int
) -> None:
    commits = recorded(store)
    gate = threading.Event()
    held = hold(store, gate)
    await asyncio.sleep(0.05)
    work: list[Awaitable[Any]] = [store.accept(acceptance(message(f"{n}"))) for n in range(GOOD)]
    work.insert(at, store._writer.run(Work(act=bad)))
    waiting = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(0)
    gate.set()
    assert await held

    with pytest.raises(error) as refusal:
        await waiting.pop(at)
    assert "no_such_table" not in getattr(refusal.value, "message", "")
    accepted = await asyncio.gather(*waiting)
    for one in accepted:
        assert await store.events(one.task_id, 0) == one.events == tuple(events_of(commits, one.task_id))
    assert len([run for commit in commits for run in commit.runs]) == GOOD
    assert (await one_page(store, filters())).total == GOOD
    assert await store.scopes() == (ALICE,)


async def test_equal_and_unequal_messages_of_one_batch_are_told_apart(store: PostgresStore) -> None:
    gate = threading.Event()
    held = hold(store, gate)
    await asyncio.sleep(0.05)
    missing = message("more", message_id="same", task_id=new_id())
    sent = [missing, missing, *(message(text, message_id="same") for text in ("one", "one", "two"))]
    waiting = [asyncio.ensure_future(store.accept(acceptance(one))) for one in sent]
    await asyncio.sleep(0)
    gate.set()
    await held
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [
        TaskNotFound,
        TaskNotFound,
        Accepted,
        Accepted,
        MessageIdConflict,
    ]
    first, again = results[2], results[3]
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.task_id == again.task_id, first.replayed, again.replayed) == (True, False, True)
    known = await store.known(acceptance(message("one", message_id="same")))
    assert known is not None
    assert known.task_id == first.task_id


async def test_a_message_that_was_refused_leaves_its_id_free(store: PostgresStore) -> None:
    with pytest.raises(TaskNotFound):
        await store.accept(acceptance(message("x", message_id="free", task_id=new_id())))
    lease = await begun(store)
    more = message("y", message_id="free", task_id=lease.task_id)
    assert not (await store.accept(acceptance(more))).replayed


async def test_what_people_and_programs_name_may_hold_a_null_character(store: PostgresStore) -> None:
    sent = message(NUL, message_id=NUL, context_id=NUL)
    accepted = await store.accept(acceptance(sent))
    lease = Lease(accepted.task_id, 1)
    assert (await store.accept(acceptance(sent))).replayed
    await store.append(lease, [Used(NUL), chunk(NUL, artifact_id=NUL)])
    point = JournalEntry(ordinal=1, kind="step", name=NUL, acts=0, result=pack(NUL))
    await store.record(lease, point)
    asks = structs.replace(point, ordinal=2, kind="approve", result=pack(None))
    wanted = ApprovalRequest(id=new_id(), action=NUL, details=pack({NUL: NUL}))
    await store.park(lease, status(TaskState.INPUT_REQUIRED), asks, approval=wanted)
    fold = await store.read(ALICE, accepted.task_id)
    assert (fold.context_id, fold.sources) == (NUL, {NUL})
    assert fold.task().history[0] == sent
    (page,) = await listing(store, filters(context_id=NUL))
    assert (page.total, [task.context_id for task in page.tasks]) == (1, [NUL])
    assert ids([await one_page(store, filters(), withheld=NUL.__eq__)]) == []
    assert (await store.journal(lease))[0] == point
    (approval,) = await store.approvals("acme", after="", limit=2)
    assert (approval.action, approval.sources) == (NUL, (NUL,))
    await store.add_to_audit([AuditEntry(action="x", target=NUL)])
    (row,) = await store.consult(lambda book: book.audited(since=0, after=0, limit=9))
    assert row.entry.target == "before␀after"


async def test_no_task_and_no_approval_is_named_by_an_id_with_a_null_character(store: PostgresStore) -> None:
    lease = await begun(store)
    wrong = f"{lease.task_id}\0"
    for call in (
        store.read(ALICE, wrong),
        store.events(wrong, 0),
        store.cancel(ALICE, wrong),
        store.accept(acceptance(message(task_id=wrong))),
    ):
        with pytest.raises(TaskNotFound):
            await call
    with pytest.raises(ApprovalNotFound):
        await store.approval("acme", wrong)
    assert await store.run(wrong) is None
    assert await store.approvals("acme", after=wrong, limit=1) == ()
    assert await store.consult(lambda book: book.find_token(wrong)) is None


async def test_totals_are_the_same_before_and_after_their_steps_are_folded(
    store: PostgresStore, home: PostgresHome
) -> None:
    leases = [await begun(store, sent=message(context_id="talk")) for _ in range(6)]
    await store.append(leases[0], [status(TaskState.COMPLETED)])
    expected = [(None, None, 6), (None, TaskState.SUBMITTED, 5), ("talk", TaskState.COMPLETED, 1)]

    async def fold() -> None:
        pool = await asyncpg.create_pool(home.url, min_size=1, max_size=4)
        await asyncio.gather(*(fold_once(pool) for _ in range(4)))
        await pool.close()

    for _ in range(2):
        for context_id, state, total in expected:
            page = await one_page(store, filters(context_id=context_id, state=state))
            assert page.total == total
        await fold()
        assert rows(home.url, "SELECT count(*) FROM counter_step")[0][0] == 0
    home.shift_clock(10_000)
    for lease in leases[1:]:
        await store.cancel(ALICE, lease.task_id)
    home.shift_clock(10_000)
    step = await store.purge(dict.fromkeys(TERMINAL, 1), "")
    assert step.tasks == 6
    await fold()
    assert rows(home.url, "SELECT count(*) FROM counter WHERE context_id <> '' OR n <> 0")[0][0] == 0
    await begun(store, sent=message(context_id="talk"))
    assert (await one_page(store, filters(context_id="talk"))).total == 1


async def test_a_row_that_somebody_holds_delays_its_own_writers_alone(
    home: PostgresHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.SETTINGS, "lock_timeout", "200ms")
    store = home.open()
    stuck, free = await begun(store), [await begun(store) for _ in range(5)]
    holder = await asyncpg.connect(home.url)
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM task WHERE id = $1 FOR UPDATE", stuck.task_id)
        results = await asyncio.gather(
            *(store.append(lease, [chunk("x")]) for lease in (stuck, *free)), return_exceptions=True
        )
    await holder.close()
    assert [type(result) for result in results] == [Unavailable] + [tuple] * 5
    (event,) = await store.append(stuck, [chunk("x")])
    assert event.seq == 2


async def test_a_read_that_gets_no_connection_is_told_so_in_time(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    busy = [asyncio.ensure_future(store.consult(lambda book: gate.wait(10))) for _ in range(reader.READERS)]
    pool = store._readers._pool
    async with asyncio.timeout(10):
        while pool.get_size() - pool.get_idle_size() < reader.READERS:
            await asyncio.sleep(0.02)
    monkeypatch.setattr(reader, "ACQUIRE_SECONDS", 0.2)
    with pytest.raises(Unavailable) as refusal:
        await store.scopes()
    assert refusal.value.retry_after == 5
    gate.set()
    assert await asyncio.gather(*busy) == [True] * reader.READERS
    assert await store.scopes() == ()


async def test_a_closed_store_has_written_what_was_waiting(home: PostgresHome) -> None:
    store = home.open()
    accepting = [asyncio.ensure_future(begun(store)) for _ in range(30)]
    await asyncio.sleep(0)
    home.close()
    leases = await asyncio.gather(*accepting)
    for call in (begun(store), store.read(ALICE, new_id()), store.administer(lambda book: book.now)):
        with pytest.raises(Unavailable, match="closed"):
            await call
    assert rows(home.url, "SELECT count(*) FROM replica")[0][0] == 0
    store = home.open()
    for lease in leases:
        assert len(await store.events(lease.task_id, 0)) == 1
