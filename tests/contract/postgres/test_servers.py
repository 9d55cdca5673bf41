"""Several servers on one PostgreSQL store: what they count, take over, and tell each other."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from dragoman.gateway.hooks import KeptConfig
from dragoman.gateway.ports import Accepted, Lease
from dragoman.model import TaskState
from dragoman.model.allowance import Allowance, Bound
from dragoman.model.errors import (
    DragomanError,
    MessageIdConflict,
    QuotaExceeded,
)
from dragoman.model.ids import new_id
from dragoman.stores.postgres import PostgresStore, replicas
from dragoman.stores.target import Target
from tests.contract.homes import PostgresHome
from tests.contract.postgres.folds import fold_once
from tests.contract.samples import (
    ALICE,
    OTHER_AGENT,
    acceptance,
    begun,
    chunk,
    filters,
    ids,
    listing,
    message,
    one_page,
    status,
)
from tests.harness.postgres import rows


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
            await fold_once(pool)
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
            store.append(lease, work, reveal=True), name(context_id, number), fold_once(pool)
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
        era = hung.era()
        assert hung.may_tell(era)
        lease = await begun(hung, push=kept())
        hook = await hung.hook(lease.task_id, "c")
        assert hook is not None
        beating = hung._replica._task
        assert beating is not None
        hung._loop.loop.call_soon_threadsafe(beating.cancel)
        async with asyncio.timeout(10):
            while not await other.open_hooks():
                await asyncio.sleep(0.02)
        assert not hung.may_tell(era)
        hung._loop.run(hung._replica._beat())
        assert hung.may_tell(hung.era()), "it lives again"
        assert not hung.may_tell(era), "and does not go on where it was"
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
