"""The PostgreSQL store beyond the contract: batches, totals, several servers on it, and a database that is gone."""

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import KeptConfig
from dragoman.gateway.ports import Accepted, ApprovalRequest, JournalEntry, Lease
from dragoman.model import TaskState, Used
from dragoman.model.allowance import Allowance, Bound
from dragoman.model.errors import (
    ApprovalNotFound,
    DragomanError,
    MessageIdConflict,
    QuotaExceeded,
    TaskNotFound,
    Unavailable,
)
from dragoman.model.ids import new_id
from dragoman.model.payload import pack
from dragoman.stores.postgres import PostgresStore, connection, folding, reader, replicas
from dragoman.stores.postgres.transaction import Transaction, Work
from dragoman.stores.postgres.writer import MAX_BATCH
from dragoman.stores.target import Target
from tests.contract.homes import InstalledPostgresHome, PostgresHome
from tests.contract.samples import (
    ALICE,
    OTHER_AGENT,
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


@pytest.fixture(params=[PostgresHome, InstalledPostgresHome], ids=lambda kind: kind.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PostgresHome]:
    """A place for a PostgreSQL store, whatever else is under contract."""
    place: PostgresHome = request.param(tmp_path)
    yield place
    place.remove()


@pytest.fixture
def other(home: PostgresHome, store: PostgresStore, serving_loop: asyncio.Runner) -> Iterator[PostgresStore]:
    """A second server's store on the same database; each knows of the other."""

    async def joined() -> PostgresStore:
        opened = PostgresStore(Target(home.url), lease=15.0)
        while not store._replica.has_peers:
            await asyncio.sleep(0.02)
        return opened

    opened = serving_loop.run(joined())
    yield opened
    opened.close()


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
        await asyncio.gather(*(_fold(pool) for _ in range(4)))
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


async def _fold(pool: Any) -> None:
    async with pool.acquire() as one:
        await folding.fold(one)


async def test_two_servers_count_as_one(
    store: PostgresStore, other: PostgresStore, home: PostgresHome
) -> None:
    """Tasks of few contexts, hidden ones too, that are begun, shown, moved and canceled at both at once."""
    contexts = ("one", "two", "three", "")
    both: tuple[PostgresStore, PostgresStore] = (store, other)

    async def live(number: int) -> None:
        mine, theirs = both[number % 2], both[(number + 1) % 2]
        sent = message(f"{number}", context_id=contexts[number % 4])
        lease = await begun(mine, sent=sent, visible=number % 3 != 0)
        with suppress(DragomanError):
            await asyncio.gather(
                theirs.append(lease, [status(TaskState.WORKING)], reveal=number % 2 == 0),
                mine.append(lease, [chunk("x", append=True)]),
                theirs.cancel(ALICE, lease.task_id) if number % 5 == 0 else asyncio.sleep(0),
            )

    async def folding_meanwhile() -> None:
        pool = await asyncpg.create_pool(home.url, min_size=1, max_size=1)
        for _ in range(10):
            await _fold(pool)
            await asyncio.sleep(0.02)
        await pool.close()

    await asyncio.gather(*(live(number) for number in range(120)), folding_meanwhile())
    for context_id in (None, "one", "two", "three"):
        for state in (None, *TaskState):
            wanted = filters(context_id=context_id, state=state)
            found = await listing(store, wanted)
            assert {page.total for page in found} == {len(ids(found))}, (context_id, state)
    for task_id in ids(await listing(other, filters())):
        events = await other.events(task_id, 0)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_runs_that_show_while_their_contexts_are_named_are_counted_once(
    store: PostgresStore, other: PostgresStore, home: PostgresHome
) -> None:
    """Hidden runs have contexts that nobody has named yet: somebody does, at the other server, and may be refused."""
    full = Allowance(running=Bound(tenant=1))
    pool = await asyncpg.create_pool(home.url, min_size=1, max_size=1)

    async def name(context_id: str, number: int) -> int:
        """Name a context and return how many more tasks it has then."""
        sent = message(context_id=context_id)
        try:
            await other.accept(acceptance(sent, allowance=full if number % 3 == 0 else None))
        except QuotaExceeded:
            return 0
        return 1

    async def live(number: int) -> None:
        accepted = await store.accept(acceptance(visible=False))
        context_id, lease = accepted.events[0].context_id, Lease(accepted.task_id, 1)
        work = [chunk("x"), status(TaskState.COMPLETED if number % 2 else TaskState.WORKING)]
        # Before it shows, at the same moment, and afterwards.
        before = await name(context_id, number // 2) if number % 4 < 2 else 0
        _, meanwhile, *_ = await asyncio.gather(
            store.append(lease, work, reveal=True), name(context_id, number), _fold(pool)
        )
        if number % 2 == 0:
            await other.cancel(ALICE, lease.task_id)
        named = before + meanwhile + await name(context_id, 1)
        assert (await one_page(store, filters(context_id=context_id))).total == 1 + named
        ended = TaskState.COMPLETED if number % 2 else TaskState.CANCELED
        assert (await one_page(other, filters(context_id=context_id, state=ended))).total == 1

    for first in range(0, 60, 6):
        await asyncio.gather(*(live(number) for number in range(first, first + 6)))
    await pool.close()


async def test_a_run_that_shows_in_the_very_moment_in_which_its_context_is_named_is_counted_once(
    store: PostgresStore, home: PostgresHome
) -> None:
    """Its context was named before by a message that was refused: it is marked, but there are no counters any more."""
    hidden = await store.accept(acceptance(visible=False))
    context_id, task_id = hidden.events[0].context_id, hidden.task_id
    full = Allowance(running=Bound(tenant=1))
    with pytest.raises(QuotaExceeded):
        await store.accept(acceptance(message(context_id=context_id), allowance=full))
    marked = rows(home.url, "SELECT counted, (SELECT count(*) FROM counter) FROM task WHERE id = $1", task_id)
    assert [tuple(row) for row in marked] == [(True, 0)]

    showing = await asyncpg.connect(home.url)
    async with showing.transaction():
        await showing.execute(
            "INSERT INTO counter_step SELECT scope_id, name, state, 1 FROM task, unnest(ARRAY['', context_id]) name"
            " WHERE id = $1",
            task_id,
        )
        await showing.execute("UPDATE task SET visible = true WHERE id = $1", task_id)
        naming = asyncio.create_task(store.accept(acceptance(message(context_id=context_id))))
        while not await showing.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
    await showing.close()
    await naming
    assert (await one_page(store, filters(context_id=context_id))).total == 2


async def test_a_message_that_races_at_two_servers_is_accepted_once(
    store: PostgresStore, other: PostgresStore
) -> None:
    for number in range(20):
        results = await asyncio.gather(
            *(
                one.accept(acceptance(message(text, message_id=f"same {number}")))
                for one in (store, other)
                for text in ("even", "odd", "even")
            ),
            return_exceptions=True,
        )
        accepted = [result for result in results if isinstance(result, Accepted)]
        refused = [result for result in results if isinstance(result, MessageIdConflict)]
        assert len(accepted) + len(refused) == 6
        assert len({one.task_id for one in accepted}) == 1
        assert sum(not one.replayed for one in accepted) == 1
    assert (await one_page(store, filters())).total == 20


async def test_a_run_in_the_hands_of_a_living_server_is_not_lost(
    store: PostgresStore, other: PostgresStore
) -> None:
    lease = await begun(store)
    assert await other.lost() == ()
    store._loop.run(store._replica.leave())
    assert [run.task_id for run in await other.lost()] == [lease.task_id]


async def test_the_events_of_one_server_are_told_to_the_other(
    home: PostgresHome, store: PostgresStore
) -> None:
    told: dict[str, tuple[int, int]] = {}
    listening = PostgresStore(Target(home.url), lease=15.0, on_elsewhere=told.update)
    try:
        while not store._replica.has_peers:
            await asyncio.sleep(0.02)
        lease = await begun(store)
        events = await store.append(lease, [status(TaskState.WORKING), chunk("x"), chunk("y")])
        async with asyncio.timeout(5):
            while told.get(lease.task_id) != (2, 4):
                await asyncio.sleep(0.01)
        assert tuple(await listening.committed(told)) == events
        assert await listening.heads([lease.task_id, new_id()]) == {lease.task_id: 4}
    finally:
        await asyncio.to_thread(listening.close)


def kept(config_id: str = "c", **more: Any) -> KeptConfig:
    values = {"generation": "1.0", "url": "https://a.example/", "scheme": "", "sealed": b"sealed"} | more
    return KeptConfig(id=config_id, **values)


async def test_a_receiver_is_told_by_the_server_that_kept_it_and_by_another_when_that_is_gone(
    home: PostgresHome, store: PostgresStore, other: PostgresStore
) -> None:
    lease = await begun(store, push=kept())
    hook = await store.hook(lease.task_id, "c")
    assert hook is not None
    assert await other.open_hooks() == []
    assert await other.open_hooks(lease.task_id) == []
    assert await other.hook(lease.task_id, "c") is None
    assert not await other.not_told(hook, 1, "not its own", wait=None)
    assert await store.open_hooks() == [(lease.task_id, "c", True)]
    home.close()
    assert await other.open_hooks() == [(lease.task_id, "c", True)]
    assert await other.hook(lease.task_id, "c") == hook
    assert await other.not_told(hook, 1, "its own", wait=10)


async def test_of_servers_that_look_at_once_one_takes_over(
    home: PostgresHome, store: PostgresStore, other: PostgresStore
) -> None:
    left = {(await begun(store, push=kept())).task_id for _ in range(40)}
    third = PostgresStore(Target(home.url), lease=15.0)
    try:
        home.close()
        found = await asyncio.gather(*(one.open_hooks(task) for task in left for one in (other, third)))
        assert sorted(task for each in found for task, _, _ in each) == sorted(left)
        mine, theirs = [{task for task, _, _ in await one.open_hooks()} for one in (other, third)]
        assert mine | theirs == left
        assert not mine & theirs
    finally:
        third.close()


async def test_a_server_that_hung_tells_nothing_more_of_what_was_taken_over(
    home: PostgresHome, other: PostgresStore
) -> None:
    hung = PostgresStore(Target(home.url), lease=0.5)
    try:
        assert hung.may_tell()
        lease = await begun(hung, push=kept())
        hook = await hung.hook(lease.task_id, "c")
        assert hook is not None
        beating = hung._replica._task
        assert beating is not None
        hung._loop.loop.call_soon_threadsafe(beating.cancel)
        async with asyncio.timeout(10):
            while not await other.open_hooks():
                await asyncio.sleep(0.02)
        assert not hung.may_tell()
        assert await hung.hook(lease.task_id, "c") is None
        assert not await hung.not_told(hook, 8, "late", wait=None)
        assert await other.hook(lease.task_id, "c") == hook
    finally:
        hung.close()


async def test_the_server_that_tells_a_receiver_is_told_what_is_changed_at_another(
    home: PostgresHome, other: PostgresStore
) -> None:
    heard: asyncio.Queue[list[str]] = asyncio.Queue()
    owner = PostgresStore(
        Target(home.url), lease=15.0, on_hooked=lambda task_ids: heard.put_nowait([*task_ids])
    )
    try:
        lease = await begun(owner, push=kept())
        async with asyncio.timeout(10):
            while not other._replica.has_peers:
                await asyncio.sleep(0.02)
            await other.set_hook(ALICE, lease.task_id, kept(sealed=b"anew"))
            assert await heard.get() == [lease.task_id]
            assert await other.open_hooks() == [], "it is the owner's yet"
            await other.set_hook(ALICE, lease.task_id, kept("own"))
            await other.delete_hook(ALICE, lease.task_id, "c")
            assert await heard.get() == [lease.task_id]
            assert await other.open_hooks() == [(lease.task_id, "own", False)]
        assert heard.empty(), "nobody is told of what is not his"
    finally:
        owner.close()


@pytest.mark.parametrize("whose", ["tenant", "principal"])
async def test_two_servers_hold_a_quota_as_one(
    store: PostgresStore, other: PostgresStore, whose: str
) -> None:
    allowance = Allowance(running=Bound(**{whose: 7}))
    sent = [acceptance(allowance=allowance) for _ in range(60)]
    results = await asyncio.gather(
        *((store, other)[n % 2].accept(one) for n, one in enumerate(sent)), return_exceptions=True
    )
    assert sum(not isinstance(one, BaseException) for one in results) == 7
    assert all(isinstance(one, QuotaExceeded) for one in results if isinstance(one, BaseException))


async def test_a_message_that_is_refused_leaves_no_counters_and_no_scope(
    home: PostgresHome, store: PostgresStore
) -> None:
    allowance = Allowance(running=Bound(tenant=1))
    await begun(store, allowance=allowance)
    before = rows(home.url, "SELECT (SELECT count(*) FROM counter), (SELECT count(*) FROM scope)")
    for number in range(3):
        sent = message(context_id=f"new {number}")
        with pytest.raises(QuotaExceeded):
            await store.accept(acceptance(sent, scope=OTHER_AGENT, allowance=allowance))
    assert rows(home.url, "SELECT (SELECT count(*) FROM counter), (SELECT count(*) FROM scope)") == before
    await begun(store, scope=OTHER_AGENT)
    assert await store.scopes() == (ALICE, OTHER_AGENT)


async def test_a_change_of_tenants_is_told_to_the_other(home: PostgresHome, store: PostgresStore) -> None:
    noticed = asyncio.Event()
    listening = PostgresStore(Target(home.url), lease=15.0, on_noticed=noticed.set)
    try:
        await store.administer(lambda book: book.add_tenant("acme"))
        async with asyncio.timeout(5):
            await noticed.wait()
        kept = await listening.kept(0)
        assert kept is not None
        assert kept.tenants == ["acme"]
    finally:
        await asyncio.to_thread(listening.close)


async def test_a_server_that_comes_is_told_from_then_on_without_a_heartbeat_of_others(
    home: PostgresHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "BEAT_SECONDS", 3600.0)
    first = PostgresStore(Target(home.url), lease=36_000)
    assert not first._replica.has_peers
    second = PostgresStore(Target(home.url), lease=36_000)
    try:
        async with asyncio.timeout(5):
            while not first._replica.has_peers:
                await asyncio.sleep(0.01)
    finally:
        second.close()
        first.close()


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
    monkeypatch.setattr(reader, "ACQUIRE_SECONDS", 0.2)
    gate = threading.Event()
    busy = [asyncio.ensure_future(store.consult(lambda book: gate.wait(10))) for _ in range(8)]
    await asyncio.sleep(0.3)
    with pytest.raises(Unavailable) as refusal:
        await store.scopes()
    assert refusal.value.retry_after == 5
    gate.set()
    assert await asyncio.gather(*busy) == [True] * 8
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
