"""Batches that are one statement: which they are, and that what was remembered wrongly changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import KeptConfig
from dragoman.gateway.ports import JournalEntry, Lease, Placing
from dragoman.model import TaskState, Used
from dragoman.model.allowance import Allowance, Bound
from dragoman.model.errors import Fenced, MessageIdConflict, TaskNotCancelable, Unavailable
from dragoman.model.payload import pack
from dragoman.stores.postgres import PostgresStore, memory
from dragoman.stores.postgres.single import NotAsRememberedError, Single
from dragoman.stores.postgres.transaction import Transaction
from dragoman.stores.target import Target
from tests.contract.homes import PostgresHome
from tests.contract.postgres.folds import fold_once
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_PRINCIPAL,
    acceptance,
    begun,
    chunk,
    filters,
    message,
    one_page,
    purged,
    status,
)
from tests.harness.database_proxy import DatabaseProxy
from tests.harness.postgres import rows

RECEIVER = KeptConfig(id="c", generation="1.0", url="https://a.example/", scheme="", sealed=b"")
POINT = JournalEntry(ordinal=1, kind="step", name="a", acts=0, result=pack(1))


class Ways:
    """Which way batches have gone since this was made or last asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._taken: list[str] = []
        commit, prepare = Single.commit, Transaction.prepare

        async def committed(*arguments: Any) -> None:
            try:
                await commit(*arguments)
            except NotAsRememberedError:
                self._taken.append("refused")
                raise
            self._taken.append("single")

        async def prepared(*arguments: Any) -> None:
            self._taken.append("transaction")
            await prepare(*arguments)

        patch.setattr(Single, "commit", committed)
        patch.setattr(Transaction, "prepare", prepared)

    def taken(self) -> list[str]:
        taken, self._taken = self._taken, []
        return taken


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


Act = Callable[[PostgresStore, Lease], Awaitable[Any]]
SINGLE: dict[str, Act] = {
    "accept": lambda store, lease: store.accept(acceptance()),
    "accept what is not to show": lambda store, lease: store.accept(acceptance(visible=False)),
    "accept what may come twice": lambda store, lease: store.accept(acceptance(idempotent=False)),
    "append": lambda store, lease: store.append(lease, [status(TaskState.WORKING), chunk("x")]),
    "append nothing new": lambda store, lease: store.append(lease, []),
    "end": lambda store, lease: store.append(lease, [status(TaskState.COMPLETED)]),
    "begin work": lambda store, lease: store.begin_work([lease]),
    "wait": lambda store, lease: store.wait([lease]),
    "enter": lambda store, lease: store.enter(lease),
    "record": lambda store, lease: store.record(lease, POINT),
}
OTHERS: dict[str, Act] = {
    "a context that was named": lambda store, lease: store.accept(acceptance(message(context_id="named"))),
    "one more turn": lambda store, lease: store.accept(acceptance(message(task_id=lease.task_id))),
    "a new caller": lambda store, lease: store.accept(acceptance(scope=OTHER_PRINCIPAL)),
    "a quota": lambda store, lease: store.accept(acceptance(allowance=Allowance(running=Bound(principal=9)))),
    "a receiver": lambda store, lease: store.accept(acceptance(push=RECEIVER)),
    "a source": lambda store, lease: store.append(lease, [Used("somewhere")]),
    "cancel": lambda store, lease: store.cancel(ALICE, lease.task_id),
    "audit": lambda store, lease: store.add_to_audit([AuditEntry(action="x")]),
}


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in SINGLE.items()])
async def test_what_needs_no_reading_is_one_statement(store: PostgresStore, ways: Ways, act: Act) -> None:
    first = await begun(store)
    assert ways.taken() == ["transaction"]
    for lease in (first, await begun(store)):
        ways.taken()
        await act(store, lease)
        assert ways.taken() == ["single"]


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in OTHERS.items()])
async def test_what_asks_the_database_is_a_transaction(store: PostgresStore, ways: Ways, act: Act) -> None:
    lease = await begun(store)
    ways.taken()
    await act(store, lease)
    assert ways.taken() == ["transaction"]


async def test_what_is_done_beside_what_asks_the_database_is_a_transaction_too(
    store: PostgresStore, ways: Ways
) -> None:
    lease = await begun(store)
    ways.taken()
    await asyncio.gather(begun(store), store.append(lease, [Used("somewhere")]), begun(store))
    assert ways.taken() == ["transaction"]


async def test_a_context_that_was_named_before_needs_no_reading(
    store: PostgresStore, other: PostgresStore, ways: Ways
) -> None:
    talk = [message(context_id="talk") for _ in range(4)]
    assert not (await store.accept(acceptance(talk[0]))).replayed
    assert ways.taken() == ["transaction"]
    first, second = await asyncio.gather(*(begun(store, sent=sent) for sent in talk[1:3]))
    assert ways.taken() == ["single"]
    await store.append(first, [status(TaskState.COMPLETED)])
    await other.accept(acceptance(talk[3]))
    await other.cancel(ALICE, second.task_id)
    for state, total in (
        (None, 4),
        (TaskState.COMPLETED, 1),
        (TaskState.CANCELED, 1),
        (TaskState.SUBMITTED, 2),
    ):
        assert (await one_page(other, filters(context_id="talk", state=state))).total == total


async def test_a_context_whose_counters_are_gone_gets_new_ones(
    store: PostgresStore, home: PostgresHome, ways: Ways
) -> None:
    """They go with the last task of a context; a server may still remember them."""
    leases = [await begun(store, sent=message(context_id="talk")) for _ in range(2)]
    for lease in leases:
        await store.append(lease, [status(TaskState.COMPLETED)])
    home.shift_clock(10_000)
    assert await purged(store, completed=1) == 2
    pool = await asyncpg.create_pool(home.url, min_size=1, max_size=1)
    await fold_once(pool)
    await pool.close()
    assert rows(home.url, "SELECT 1 FROM counter WHERE context_id <> ''") == []
    await begun(store, sent=message(context_id="other"))
    ways.taken()
    for way in (["refused", "transaction"], ["single"]):
        await begun(store, sent=message(context_id="talk"))
        assert ways.taken() == way
    assert (await one_page(store, filters(context_id="talk"))).total == 2


async def test_a_run_that_was_taken_up_is_remembered_too(home: PostgresHome, ways: Ways) -> None:
    server = home.open(Placing.WORKERS)
    lease = await begun(server)

    async def joined() -> PostgresStore:
        return PostgresStore(Target(home.url), lease=15.0)

    worker = await joined()
    try:
        assert await worker.take_offered({ALICE.agent: 1}, 1) == 1
        ways.taken()
        taken = Lease(lease.task_id, 2)
        await worker.append(taken, [chunk("x")])
        await worker.append(taken, [status(TaskState.COMPLETED)])
        assert ways.taken() == ["single", "single"]
        with pytest.raises(Fenced):
            await server.append(lease, [chunk("y")])
    finally:
        worker.close()


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(act, id=name)
        for name, act in SINGLE.items()
        if name not in ("begin work", "wait") and not name.startswith("accept")
    ],
)
async def test_a_run_that_was_canceled_at_another_server_takes_nothing_more(
    store: PostgresStore, other: PostgresStore, ways: Ways, home: PostgresHome, act: Act
) -> None:
    lease = await begun(store)
    await other.cancel(ALICE, lease.task_id)
    for expected in (["refused", "transaction"], ["transaction"]):
        ways.taken()
        with pytest.raises(Fenced):
            await act(store, lease)
        assert ways.taken() == expected
    assert [event.seq for event in await store.events(lease.task_id, 0)] == [1, 2]
    assert rows(home.url, "SELECT 1 FROM journal") == []


@pytest.mark.parametrize("name", ["begin work", "wait"])
async def test_a_run_that_was_canceled_at_another_server_is_passed_over(
    store: PostgresStore, other: PostgresStore, ways: Ways, home: PostgresHome, name: str
) -> None:
    lease = await begun(store)
    await other.cancel(ALICE, lease.task_id)
    ways.taken()
    await SINGLE[name](store, lease)
    assert ways.taken() == ["refused", "transaction"]
    assert home.status_row(lease.task_id)[0] == TaskState.CANCELED


async def test_what_was_written_at_another_server_comes_first(
    store: PostgresStore, other: PostgresStore, ways: Ways
) -> None:
    lease = await begun(store)
    await other.accept(acceptance(message("more", task_id=lease.task_id)))
    ways.taken()
    (event,) = await store.append(lease, [chunk("x")])
    assert event.seq == 3
    (event,) = await store.append(lease, [chunk("y")])
    assert event.seq == 4
    assert ways.taken() == ["refused", "transaction", "single"]
    assert [event.seq for event in await other.events(lease.task_id, 0)] == [1, 2, 3, 4]


async def test_one_that_has_changed_has_its_batch_done_again_whole(
    store: PostgresStore, other: PostgresStore, ways: Ways, home: PostgresHome
) -> None:
    leases = [await begun(store) for _ in range(9)]
    await other.cancel(ALICE, leases[4].task_id)
    ways.taken()
    sent = message("new")
    done = await asyncio.gather(
        *(store.append(lease, [chunk("x")]) for lease in leases),
        store.accept(acceptance(sent)),
        store.record(leases[0], POINT),
        return_exceptions=True,
    )
    assert ways.taken() == ["refused", "transaction"]
    assert [number for number, one in enumerate(done) if isinstance(one, Exception)] == [4]
    assert isinstance(done[4], Fenced)
    counts = rows(home.url, "SELECT count(*) FROM event GROUP BY task_id ORDER BY 1")
    assert [count for (count,) in counts] == [1] + [2] * 9
    assert (await store.accept(acceptance(sent))).replayed


async def test_a_message_that_another_server_has_accepted_is_not_accepted_again(
    store: PostgresStore, other: PostgresStore, ways: Ways, home: PostgresHome
) -> None:
    await begun(store)
    accepted = await other.accept(acceptance(message("x", message_id="m")))
    ways.taken()
    again = await store.accept(acceptance(message("x", message_id="m")))
    assert (again.task_id, again.replayed) == (accepted.task_id, True)
    assert ways.taken() == ["refused", "transaction"]
    # It is known from now on: nothing is tried in vain.
    assert (await store.accept(acceptance(message("x", message_id="m")))).replayed
    with pytest.raises(MessageIdConflict):
        await store.accept(acceptance(message("y", message_id="m")))
    assert ways.taken() == ["transaction"] * 2
    assert rows(home.url, "SELECT count(*) FROM task")[0][0] == 2


async def test_a_message_that_comes_again_is_not_taken_for_a_new_one(
    store: PostgresStore, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MOST", 2)
    await begun(store)
    sent = [message(f"{number}") for number in range(3)]
    accepted = [await store.accept(acceptance(one)) for one in sent]
    assert ways.taken() == ["transaction", "single", "single", "single"]
    for number, way in ((2, ["transaction"]), (0, ["refused", "transaction"]), (0, ["transaction"])):
        again = await store.accept(acceptance(sent[number]))
        assert (again.task_id, again.replayed) == (accepted[number].task_id, True)
        assert ways.taken() == way


async def test_a_message_that_comes_twice_in_a_batch_is_accepted_once(
    store: PostgresStore, ways: Ways, home: PostgresHome
) -> None:
    await begun(store)
    ways.taken()
    sent = message("x", message_id="m")
    first, again, wrong = await asyncio.gather(
        store.accept(acceptance(sent)),
        store.accept(acceptance(sent)),
        store.accept(acceptance(message("y", message_id="m"))),
        return_exceptions=True,
    )
    assert ways.taken() == ["single"]
    assert not isinstance(first, BaseException)
    assert not isinstance(again, BaseException)
    assert (first.task_id == again.task_id, first.replayed, again.replayed) == (True, False, True)
    assert isinstance(wrong, MessageIdConflict)
    assert rows(home.url, "SELECT count(*) FROM task")[0][0] == 2


@pytest.mark.parametrize("by", [HOUR, -HOUR])
async def test_a_clock_that_was_moved_is_looked_at_again(
    store: PostgresStore, home: PostgresHome, ways: Ways, by: int
) -> None:
    before = (await store.accept(acceptance())).events[0].at
    home.shift_clock(by)
    ways.taken()
    accepted = await store.accept(acceptance())
    assert ways.taken() == ["refused", "transaction"]
    assert abs(accepted.events[0].at - before - by) < 60_000
    again = await store.accept(acceptance())
    assert ways.taken() == ["single"]
    assert abs(again.events[0].at - before - by) < 60_000
    (at,) = rows(home.url, "SELECT at FROM event WHERE task_id = $1", again.task_id)[0]
    assert at == again.events[0].at


async def test_times_are_those_of_the_store_and_never_go_back(
    store: PostgresStore, home: PostgresHome
) -> None:
    times = []
    for number in range(50):
        (before,) = rows(home.url, "SELECT now_ms FROM store_clock")[0] if number % 10 == 0 else (0,)
        accepted = await store.accept(acceptance())
        times.append(accepted.events[0].at)
        if before:
            (after,) = rows(home.url, "SELECT now_ms FROM store_clock")[0]
            assert before - 1000 < times[-1] <= after
    assert times == sorted(times)


async def test_rows_that_were_forgotten_are_read(
    store: PostgresStore, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MOST", 2)
    leases = [await begun(store) for _ in range(3)]
    ways.taken()
    for lease, way in zip(leases, ("transaction", "transaction", "single"), strict=True):
        await store.append(lease, [chunk("x")])
        assert ways.taken() == [way]
        # It is remembered again, in the place of another.
        leases_left = sum(store._writer._memory.covers([one.task_id]) for one in leases)
        assert leases_left == 2
        if way == "transaction":
            await store.append(leases[2], [chunk("y")])
            ways.taken()


async def test_runs_that_are_over_or_wait_for_their_callers_are_not_remembered(store: PostgresStore) -> None:
    done, parked, canceled, kept = [await begun(store) for _ in range(4)]
    await store.append(done, [status(TaskState.COMPLETED)])
    asks = JournalEntry(ordinal=1, kind="ask", name="q", acts=0, result=pack(None))
    await store.park(parked, status(TaskState.INPUT_REQUIRED), asks)
    await store.cancel(ALICE, canceled.task_id)
    remembered = [store._writer._memory.covers([one.task_id]) for one in (done, parked, canceled, kept)]
    assert remembered == [False, False, False, True]
    with pytest.raises(TaskNotCancelable):
        await store.cancel(ALICE, done.task_id)


async def test_an_audited_message_is_noted_by_the_same_statement(store: PostgresStore, ways: Ways) -> None:
    await begun(store)
    ways.taken()
    entry = AuditEntry(action="SendMessage", tenant="acme", principal="alice")
    accepted = await store.accept(structs.replace(acceptance(), audit=entry))
    assert ways.taken() == ["single"]
    (row,) = await store.consult(lambda book: book.audited(since=0, after=0, limit=9))
    assert (row.entry.action, accepted.task_id in row.entry.target) == ("SendMessage", True)


async def test_a_statement_that_still_waits_when_its_connection_breaks_is_ended_first(
    home: PostgresHome,
) -> None:
    """Otherwise it might be done after its caller has been told that it was not."""
    with DatabaseProxy(home.url) as proxy:
        store = PostgresStore(Target(proxy.url), lease=15.0)
        try:
            lease = await begun(store)
            holder = await asyncpg.connect(home.url)
            async with holder.transaction():
                await holder.execute("SELECT 1 FROM task WHERE id = $1 FOR UPDATE", lease.task_id)
                appending = asyncio.ensure_future(store.append(lease, [chunk("x")]))
                waiting = (
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                async with asyncio.timeout(10):
                    while not await holder.fetchval(waiting):
                        await asyncio.sleep(0.01)
                proxy.cut()
                with pytest.raises(Unavailable):
                    await appending
                assert await holder.fetchval(waiting) == 0
            await holder.close()
            assert len(await store.events(lease.task_id, 0)) == 1
            (event,) = await store.append(lease, [chunk("x")])
            assert event.seq == 2
        finally:
            store.close()


@pytest.mark.parametrize("act", ["accept", "append", "record", "enter"])
async def test_what_was_committed_without_an_answer_is_found_by_what_was_written(
    home: PostgresHome, ways: Ways, act: str
) -> None:
    with DatabaseProxy(home.url) as proxy:
        store = PostgresStore(Target(proxy.url), lease=15.0)
        try:
            lease = await begun(store)
            await begun(store)
            ways.taken()
            proxy.lose_commits(1)
            if act == "enter":
                # It leaves nothing to look for: whoever does it does it again.
                with pytest.raises(Unavailable):
                    await store.enter(lease)
                await store.enter(lease)
            else:
                await SINGLE[act](store, lease)
            assert proxy.lost_commits == 1
            counts = [rows(home.url, f"SELECT count(*) FROM {table}")[0][0] for table in ("event", "journal")]  # noqa: S608
            assert counts == {"accept": [3, 0], "append": [4, 0], "record": [2, 1], "enter": [2, 0]}[act]
        finally:
            store.close()


async def test_what_never_came_to_the_database_was_not_done(home: PostgresHome, ways: Ways) -> None:
    with DatabaseProxy(home.url) as proxy:
        store = PostgresStore(Target(proxy.url), lease=15.0)
        try:
            lease = await begun(store)
            await store.append(lease, [chunk("x")])
            proxy.lose_requests(1)
            with pytest.raises(Unavailable):
                await store.append(lease, [chunk("y")])
            ways.taken()
            (event,) = await store.append(lease, [chunk("y")])
            assert event.seq == 3
            assert ways.taken() == ["transaction"]
            assert (await one_page(store, filters())).total == 1
        finally:
            store.close()
