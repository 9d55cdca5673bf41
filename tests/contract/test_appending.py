"""Appending to a run: fenced by lease and lifecycle, numbered without a gap, timed by the store."""

import asyncio

import pytest
from msgspec import structs

from dragoman.gateway.ports import Lease, TaskStore
from dragoman.model import Reply, StatusChange, TaskFold, TaskState
from dragoman.model.errors import Fenced, IllegalChange, TaskNotFound
from dragoman.model.ids import new_id
from dragoman.model.speech import agent_message
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_TENANT,
    TERMINAL,
    acceptance,
    begun,
    brought_to,
    changed,
    chunk,
    events_of,
    filters,
    message,
    on_many_loops,
    one_page,
    recorded,
    status,
)

S = TaskState
LIVE = (S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED)
ALLOWED = {
    S.SUBMITTED: {*TERMINAL, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED},
    S.WORKING: {*TERMINAL, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED},
    S.INPUT_REQUIRED: {*TERMINAL, S.WORKING},
    S.AUTH_REQUIRED: {*TERMINAL, S.WORKING},
}


async def test_appended_changes_follow_the_last_event_and_come_back_as_events(store: TaskStore) -> None:
    lease = await begun(store)
    changes = [status(S.WORKING, "on it"), chunk("a"), chunk("b", append=True), status(S.COMPLETED)]
    events = await store.append(lease, changes)
    assert [event.seq for event in events] == [2, 3, 4, 5]
    assert changed(events) == changes
    assert (await store.events(lease.task_id, 0))[1:] == events
    assert await store.events(lease.task_id, 3) == events[2:]
    assert await store.events(lease.task_id, 5) == ()
    task = (await store.read(ALICE, lease.task_id)).task()
    assert task.artifacts is not None
    assert [part.text for part in task.artifacts[0].parts] == ["a", "b"]
    assert (task.status.state, task.status.timestamp) == (S.COMPLETED, events[-1].at)


@pytest.mark.parametrize("state", LIVE, ids=lambda state: state.name)
async def test_a_task_takes_exactly_the_next_states_that_its_lifecycle_has(
    store: TaskStore, state: TaskState
) -> None:
    taken = set()
    for following in TaskState:
        lease = await brought_to(store, state)
        try:
            await store.append(lease, [status(following, "so be it")])
            taken.add(following)
        except IllegalChange:
            assert (await store.read(ALICE, lease.task_id)).task().status.state is state
    assert taken == ALLOWED[state]


@pytest.mark.parametrize("state", [S.INPUT_REQUIRED, S.AUTH_REQUIRED], ids=lambda state: state.name)
async def test_a_waiting_task_takes_no_artifact(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    with pytest.raises(IllegalChange):
        await store.append(lease, [chunk("too early")])


async def test_of_changes_with_an_illegal_one_among_them_none_is_stored(store: TaskStore) -> None:
    lease, commits = await begun(store), recorded(store)
    with pytest.raises(IllegalChange):
        await store.append(lease, [status(S.WORKING), chunk("x"), status(S.COMPLETED), chunk("too late")])
    assert not commits
    assert len(await store.events(lease.task_id, 0)) == 1
    (first, *_) = await store.append(lease, [status(S.WORKING)])
    assert first.seq == 2
    assert (await one_page(store, filters(state=S.WORKING))).total == 1


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_nothing_is_added_to_a_finished_task(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    before = await store.events(lease.task_id, 0)
    for change in (chunk("late"), status(S.WORKING, "late"), status(S.COMPLETED), status(state)):
        with pytest.raises(Fenced):
            await store.append(lease, [change])
    assert await store.events(lease.task_id, 0) == before


async def test_a_lease_of_another_epoch_or_of_no_task_writes_nothing(store: TaskStore) -> None:
    lease = await begun(store)
    for wrong in (Lease(lease.task_id, 0), Lease(lease.task_id, 2), Lease(new_id(), 1)):
        with pytest.raises(Fenced):
            await store.append(wrong, [status(S.WORKING)])
    assert len(await store.events(lease.task_id, 0)) == 1


async def test_sequences_have_no_gap_under_concurrent_appenders(store: TaskStore) -> None:
    commits = recorded(store)
    leases = [await begun(store) for _ in range(4)]

    async def append(number: int) -> int:
        changes = [chunk(f"{number}.{i}", append=True) for i in range(1 + number % 3)]
        return len(await store.append(leases[number % 4], changes))

    counts = await on_many_loops(append, count=120)
    assert all(isinstance(count, int) for count in counts), counts
    for lease in leases:
        events = await store.events(lease.task_id, 0)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert tuple(events_of(commits, lease.task_id)) == events
    assert sum(counts) + 4 == sum([len(await store.events(lease.task_id, 0)) for lease in leases])


async def test_status_times_never_go_back_and_are_the_same_in_event_row_read_and_page(
    store: TaskStore, home: StoreHome
) -> None:
    lease = await begun(store)
    last = 0
    for text, shift in (("one", 0), ("two", HOUR), ("three", -5 * HOUR), ("four", -HOUR), ("five", 9 * HOUR)):
        home.shift_clock(shift)
        (event,) = await store.append(lease, [status(S.WORKING, text)])
        assert event.at >= last
        last = event.at
        assert home.status_row(lease.task_id) == (S.WORKING, event.at, event.seq)
        assert (await store.events(lease.task_id, event.seq - 1))[0].at == event.at
        assert (await store.read(ALICE, lease.task_id)).task().status.timestamp == event.at
        assert (await one_page(store, filters())).tasks[0].status.timestamp == event.at
    home.shift_clock(-20 * HOUR)
    canceled = await store.cancel(ALICE, lease.task_id)
    assert canceled.at == last == home.status_row(lease.task_id)[1]


async def test_the_store_sets_the_time_by_its_own_clock(store: TaskStore, home: StoreHome) -> None:
    before = (await store.accept(acceptance(message()))).events[0].at
    home.shift_clock(100 * HOUR)
    after = (await store.accept(acceptance(message()))).events[0].at
    assert 100 * HOUR <= after - before < 100 * HOUR + 60_000


async def test_an_artifact_moves_neither_the_state_nor_its_time(store: TaskStore, home: StoreHome) -> None:
    lease = await begun(store)
    (working,) = await store.append(lease, [status(S.WORKING)])
    home.shift_clock(HOUR)
    await store.append(lease, [chunk("a"), chunk("b", append=True)])
    assert home.status_row(lease.task_id) == (S.WORKING, working.at, 4)
    assert (await store.read(ALICE, lease.task_id)).task().status.timestamp == working.at


async def test_a_working_task_that_says_nothing_new_gets_no_event(store: TaskStore) -> None:
    lease = await brought_to(store, S.WORKING)
    commits = recorded(store)
    assert await store.append(lease, [StatusChange(S.WORKING)]) == ()
    assert not commits
    assert len(await store.append(lease, [StatusChange(S.WORKING), chunk("a")])) == 1


async def test_a_hidden_task_shows_from_the_change_that_reveals_it(store: TaskStore) -> None:
    lease = await begun(store, visible=False)
    with pytest.raises(TaskNotFound):
        await store.read(ALICE, lease.task_id)
    assert (await store.read(ALICE, lease.task_id, hidden=True)).seq == 1
    await store.append(lease, [status(S.WORKING)], reveal=True)
    assert (await store.read(ALICE, lease.task_id)).task().status.state is S.WORKING
    assert (await one_page(store, filters(state=S.WORKING))).total == 1


async def test_a_bare_reply_ends_a_run_whose_task_never_shows(store: TaskStore) -> None:
    lease = await begun(store, visible=False)
    reply = agent_message("Hi", task_id="", context_id="")
    (event,) = await store.append(lease, [Reply(reply)])
    assert event.ends_run
    assert (await store.read(ALICE, lease.task_id, hidden=True)).reply == reply
    with pytest.raises(TaskNotFound):
        await store.read(ALICE, lease.task_id)
    with pytest.raises(Fenced):
        await store.append(lease, [status(S.COMPLETED)])
    assert (await one_page(store, filters())).total == 0


async def test_a_bare_reply_to_a_task_that_shows_completes_it(store: TaskStore) -> None:
    lease = await begun(store, visible=False)
    await store.begin_work([lease])
    (event,) = await store.append(lease, [Reply(agent_message("Hi", task_id="", context_id=""))])
    assert isinstance(event.change, StatusChange)
    assert event.change.message is not None
    assert (event.change.message.text, event.change.message.task_id) == ("Hi", lease.task_id)
    task = (await store.read(ALICE, lease.task_id)).task()
    assert task.status.state is S.COMPLETED
    assert (await one_page(store, filters(state=S.COMPLETED))).total == 1


async def test_begin_work_moves_what_is_submitted_and_leaves_the_rest(store: TaskStore) -> None:
    fresh, hidden = await begun(store), await begun(store, visible=False)
    others = [await brought_to(store, state) for state in TaskState if state is not S.SUBMITTED]
    before = [await store.events(lease.task_id, 0) for lease in others]
    stale = Lease((await begun(store)).task_id, 7)
    await store.begin_work([fresh, *others, Lease(new_id(), 1), stale, hidden])

    for lease in (fresh, hidden):
        assert changed(await store.events(lease.task_id, 1)) == [StatusChange(S.WORKING)]
        assert (await store.read(ALICE, lease.task_id)).task().status.state is S.WORKING
    assert [await store.events(lease.task_id, 0) for lease in others] == before
    assert (await store.read(ALICE, stale.task_id)).task().status.state is S.SUBMITTED
    await asyncio.gather(store.begin_work([fresh]), store.begin_work([]))
    assert len(await store.events(fresh.task_id, 0)) == 2


async def test_a_task_is_read_as_it_stood_at_any_of_its_events(store: TaskStore) -> None:
    lease = await begun(store)
    await store.append(lease, [status(S.WORKING, "one"), chunk("a"), chunk("b", append=True)])
    await store.append(lease, [status(S.WORKING, "two"), status(S.COMPLETED)])
    events = await store.events(lease.task_id, 0)
    for until in range(1, len(events) + 3):
        stood = TaskFold(lease.task_id, events[0].context_id)
        stood.apply_all(events[:until])
        read = await store.read(ALICE, lease.task_id, until=until)
        stands = structs.replace(stood.task(), run=read.facts)
        assert (read.seq, read.task()) == (min(until, len(events)), stands)
        assert read.facts.sequence == stood.facts.sequence
    with pytest.raises(TaskNotFound):
        await store.read(OTHER_TENANT, lease.task_id, until=1)


@pytest.mark.parametrize("count", [400, 3000])
async def test_a_task_of_many_events_is_read_like_any_other(store: TaskStore, count: int) -> None:
    """Also at once, by many, and while it grows."""
    lease = await begun(store)
    for first in range(0, count, 200):
        await store.append(lease, [chunk(f"{first + number} ", append=True) for number in range(200)])
    whole = "".join(f"{number} " for number in range(count))

    async def grow() -> None:
        for _ in range(20):
            await store.append(lease, [chunk("!", append=True)])

    reads = [store.read(ALICE, lease.task_id) for _ in range(10)]
    logs = [store.events(lease.task_id, after) for after in (0, 1, count // 2, count)]
    pages = [one_page(store, filters(), history_length=10, artifacts=True) for _ in range(3)]
    folds, events, listed, _ = await asyncio.gather(
        asyncio.gather(*reads), asyncio.gather(*logs), asyncio.gather(*pages), grow()
    )
    for task in (*(fold.task() for fold in folds), *(page.tasks[0] for page in listed)):
        (artifact,) = task.artifacts or ()
        text = "".join(part.text for part in artifact.parts)
        assert text.rstrip("!") == whole and len(text) - len(whole) <= 20
    for after, log in zip((0, 1, count // 2, count), events, strict=True):
        assert [event.seq for event in log] == list(range(after + 1, after + 1 + len(log)))
        assert after + len(log) > count
