"""Pages of tasks: their order, filters, cursors and contents."""

import asyncio
import random

import pytest

from dragoman.gateway.ports import TaskStore
from dragoman.model import Task, TaskState
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    acceptance,
    begun,
    brought_to,
    chunk,
    filters,
    ids,
    listing,
    message,
    one_page,
    purged,
    status,
)

S = TaskState


def place(task: Task) -> tuple[int, str]:
    """What decides where a task stands in a listing."""
    return task.status.timestamp, task.id


async def test_an_empty_listing_is_an_empty_page(store: TaskStore) -> None:
    page = await one_page(store, filters())
    assert (page.tasks, page.total, page.has_more, page.next_token) == ((), 0, False, "")


async def test_the_newest_status_change_comes_first(store: TaskStore, home: StoreHome) -> None:
    leases = []
    for _ in range(5):
        leases.append(await begun(store))
        home.shift_clock(1000)
    await store.append(leases[1], [status(S.WORKING)])
    home.shift_clock(1000)
    await store.append(leases[3], [chunk("an artifact is no status change")])
    expected = [leases[n].task_id for n in (1, 4, 3, 2, 0)]
    assert ids(await listing(store, filters())) == expected
    assert ids(await listing(store, filters(), size=2)) == expected


async def test_tasks_of_the_same_moment_are_ordered_by_id(store: TaskStore) -> None:
    """What arrives together shares a batch and its time; the ids are given in no order."""
    wanted = [f"task-{number:03}" for number in range(120)]
    random.Random(7).shuffle(wanted)
    await asyncio.gather(*(store.accept(acceptance(message(), task_id=task_id)) for task_id in wanted))
    pages = await listing(store, filters(), size=7)
    tasks = [task for page in pages for task in page.tasks]
    assert len({task.status.timestamp for task in tasks}) < 60
    assert [place(task) for task in tasks] == sorted(map(place, tasks), reverse=True)
    assert sorted(ids(pages)) == sorted(wanted)


@pytest.mark.parametrize(
    ("count", "size", "lengths"), [(6, 3, [3, 3]), (7, 3, [3, 3, 1]), (1, 1, [1]), (3, 50, [3])]
)
async def test_pages_are_full_but_the_last_which_says_that_it_is(
    store: TaskStore, count: int, size: int, lengths: list[int]
) -> None:
    for _ in range(count):
        await begun(store)
    pages = await listing(store, filters(), size=size)
    assert [len(page.tasks) for page in pages] == lengths
    assert [page.has_more for page in pages] == [True] * (len(lengths) - 1) + [False]
    assert {(page.total, page.page_size) for page in pages} == {(count, size)}


async def test_filters_let_through_what_they_name(store: TaskStore, home: StoreHome) -> None:
    expected: dict[tuple[str, TaskState], list[str]] = {}
    for context_id in ("one", "two"):
        for state in TaskState:
            home.shift_clock(1000)
            lease = await brought_to(store, state, sent=message(context_id=context_id))
            expected[context_id, state] = [lease.task_id]
    for (context_id, state), task_ids in expected.items():
        pages = await listing(store, filters(context_id=context_id, state=state))
        assert (ids(pages), pages[0].total) == (task_ids, 1)
        both = await listing(store, filters(state=state))
        assert (set(ids(both)), both[0].total) == (
            {*expected["one", state], *expected["two", state]},
            2,
        )
    for context_id in ("one", "two"):
        pages = await listing(store, filters(context_id=context_id), size=3)
        assert (len(ids(pages)), pages[0].total) == (8, 8)
    nothing = await one_page(store, filters(context_id="three"))
    assert (nothing.tasks, nothing.total) == ((), 0)


async def test_after_includes_its_own_moment(store: TaskStore, home: StoreHome) -> None:
    times = []
    for _ in range(4):
        accepted = await store.accept(acceptance(message(context_id="talk")))
        times.append((accepted.events[0].at, accepted.task_id))
        home.shift_clock(1000)
    for number, (at, _) in enumerate(times):
        inclusive = [task_id for _, task_id in reversed(times[number:])]
        for wanted in (
            filters(after=at),
            filters(after=at, context_id="talk"),
            filters(after=at, state=S.SUBMITTED),
        ):
            pages = await listing(store, wanted, size=2)
            assert (ids(pages), pages[0].total) == (inclusive, len(inclusive))
        exclusive = await one_page(store, filters(after=at + 1))
        assert exclusive.total == len(inclusive) - 1
    assert (await one_page(store, filters(after=0))).total == 4


async def test_a_cursor_outlives_the_task_it_was_made_from(store: TaskStore, home: StoreHome) -> None:
    ends = {3: S.FAILED, 7: S.CANCELED}
    for place in reversed(range(9)):
        await brought_to(store, ends.get(place, S.COMPLETED))
        home.shift_clock(1000)
    home.shift_clock(HOUR)
    everything = ids(await listing(store, filters()))
    first = await one_page(store, filters(), size=4)
    assert await purged(store, failed=HOUR) == 1
    second = await one_page(store, filters(), size=4, token=first.next_token)
    assert await purged(store, canceled=HOUR) == 1
    third = await one_page(store, filters(), size=4, token=second.next_token)
    assert ids([first, second, third]) == everything
    assert [page.total for page in (first, second, third)] == [9, 8, 7]


async def test_tasks_that_stay_where_they_are_come_exactly_once_while_others_come_and_move(
    store: TaskStore, home: StoreHome
) -> None:
    leases = {}
    for _ in range(40):
        lease = await begun(store)
        leases[lease.task_id] = lease
        home.shift_clock(1000)
    chance = random.Random(11)
    moved: set[str] = set()
    seen: list[str] = []
    token = ""
    while True:
        page = await one_page(store, filters(), size=3, token=token)
        seen += ids([page])
        if not page.has_more:
            break
        token = page.next_token
        home.shift_clock(1000)
        mover = chance.choice(sorted(leases))
        moved.add(mover)
        await asyncio.gather(
            begun(store),
            store.append(leases[mover], [status(S.WORKING, "moving")]),
            begun(store),
        )
    still = set(leases) - moved
    assert still
    assert [task_id for task_id in seen if task_id in still] == sorted(still, reverse=True)
    assert set(seen) <= set(leases), "what came later stands before the cursor"


async def test_history_and_artifacts_come_as_far_as_they_are_asked_for(store: TaskStore) -> None:
    lease = await begun(store, sent=message("first"))
    await store.append(lease, [status(S.WORKING, "second"), chunk("result"), status(S.WORKING, "third")])
    await store.append(lease, [status(S.COMPLETED, "the state's own")])
    whole = (await store.read(ALICE, lease.task_id)).task()
    assert whole.artifacts is not None
    assert len(whole.artifacts) == 1

    texts = ["first", "second", "third"]
    for history_length in (0, 1, 2, 3, 9):
        for artifacts in (False, True):
            page = await one_page(store, filters(), history_length=history_length, artifacts=artifacts)
            (task,) = page.tasks
            assert (task.status, task.context_id) == (whole.status, whole.context_id)
            assert task.artifacts == (whole.artifacts if artifacts else None)
            newest = texts[-history_length:] if history_length else []
            assert [turn.text for turn in task.history] == newest


async def test_a_page_of_big_tasks_is_cut_and_its_rest_comes_on_the_next(store: TaskStore) -> None:
    """About a MiB a page, but always a task, however big it is by itself."""
    sizes = (300, 300, 300, 300, 300, 3000, 10, 10, 10)
    for size in sizes:
        lease = await begun(store)
        await store.append(lease, [chunk("x" * size * 1024)])
    everything = ids(await listing(store, filters()))
    pages, token = [], ""
    while not pages or token:
        pages.append(await one_page(store, filters(), size=50, token=token, artifacts=True))
        token = pages[-1].next_token
    assert ids(pages) == everything
    assert {page.total for page in pages} == {len(sizes)}
    for page in pages:
        weights = [len(part.text) for task in page.tasks for part in (task.artifacts or ())[0].parts]
        assert weights
        assert sum(weights[:-1]) <= 1024 * 1024
    assert len(pages) == 3


async def test_a_listed_task_shows_what_the_agent_says_of_its_state(store: TaskStore) -> None:
    for state in (S.WORKING, S.INPUT_REQUIRED, S.FAILED, S.COMPLETED, S.REJECTED):
        lease = await begun(store)
        await store.append(lease, [status(state, f"this is {state.name}")])
        (task,) = (await one_page(store, filters(state=state))).tasks
        assert task.status == (await store.read(ALICE, lease.task_id)).task().status
        assert task.status.message is not None
        assert task.status.message.text == f"this is {state.name}"


async def test_a_task_that_nobody_may_see_is_in_no_page_and_no_total(
    store: TaskStore, home: StoreHome
) -> None:
    hidden = await begun(store, visible=False, sent=message(context_id="talk"))
    await begun(store, sent=message(context_id="talk"))
    every = [
        filters(),
        filters(context_id="talk"),
        filters(state=S.SUBMITTED),
        filters(after=0),
        filters(context_id="talk", state=S.SUBMITTED, after=0),
    ]
    for wanted in every:
        page = await one_page(store, wanted)
        assert (len(page.tasks), page.total) == (1, 1)
    await store.append(hidden, [status(S.WORKING)], reveal=True)
    for wanted, total in zip(every, (2, 2, 1, 2, 1), strict=True):
        page = await one_page(store, wanted)
        assert (len(page.tasks), page.total) == (total, total)


async def test_a_page_of_a_store_whose_clock_went_back_keeps_its_order(
    store: TaskStore, home: StoreHome
) -> None:
    first, second = await begun(store), await begun(store)
    home.shift_clock(HOUR)
    await store.append(second, [status(S.WORKING)])
    home.shift_clock(-2 * HOUR)
    await store.append(first, [status(S.WORKING)])
    await store.append(second, [status(S.COMPLETED)])
    pages = await listing(store, filters(), size=1)
    assert ids(pages) == [second.task_id, first.task_id]
