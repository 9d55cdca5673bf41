"""How a task ends against the will of its handler: cancelled or expired. The first ending stays for ever."""

import asyncio
from collections import Counter

import pytest

from dragoman.gateway.ports import Lease, TaskStore
from dragoman.model import Role, StatusChange, TaskEvent, TaskState
from dragoman.model.errors import Fenced, TaskNotCancelable, TaskNotFound
from dragoman.model.ids import new_id
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    STRANGERS,
    TERMINAL,
    begun,
    brought_to,
    filters,
    on_many_loops,
    one_page,
    recorded,
    status,
)

S = TaskState
LIVE = (S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED)


@pytest.mark.parametrize("state", LIVE, ids=lambda state: state.name)
async def test_a_live_task_is_canceled_at_once_and_its_run_fenced_out(
    store: TaskStore, state: TaskState
) -> None:
    lease = await brought_to(store, state)
    before = await store.events(lease.task_id, 0)
    commits = recorded(store)
    event = await store.cancel(ALICE, lease.task_id)

    assert (event.seq, event.change) == (before[-1].seq + 1, StatusChange(S.CANCELED))
    assert [commit.events for commit in commits] == [[event]]
    assert (await store.read(ALICE, lease.task_id)).task().status.state is S.CANCELED
    assert await store.fenced([lease]) == (lease.task_id,)
    for change in (status(S.COMPLETED), status(S.WORKING, "still here")):
        with pytest.raises(Fenced):
            await store.append(lease, [change])
    assert (await one_page(store, filters(state=S.CANCELED))).total == 1
    assert (await one_page(store, filters(state=state))).total == 0


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_a_finished_task_is_not_cancelable(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    before = await store.events(lease.task_id, 0)
    with pytest.raises(TaskNotCancelable):
        await store.cancel(ALICE, lease.task_id)
    assert await store.events(lease.task_id, 0) == before


async def test_of_many_cancels_at_once_one_counts(store: TaskStore) -> None:
    for _ in range(5):
        lease = await brought_to(store, S.WORKING)
        results = await on_many_loops(lambda _, lease=lease: store.cancel(ALICE, lease.task_id), count=20)
        assert Counter(type(result) for result in results) == {TaskEvent: 1, TaskNotCancelable: 19}
        assert len(await store.events(lease.task_id, 0)) == 3


async def test_a_task_that_is_not_there_or_not_the_callers_or_hidden_is_not_found(store: TaskStore) -> None:
    lease, hidden = await begun(store), await begun(store, visible=False)
    targets = [(ALICE, new_id()), (ALICE, hidden.task_id), *((scope, lease.task_id) for scope in STRANGERS)]
    for scope, task_id in targets:
        with pytest.raises(TaskNotFound):
            await store.cancel(scope, task_id)
    assert await store.fenced([lease, hidden]) == ()


async def test_the_first_ending_of_a_task_stays_whoever_races_for_it(
    store: TaskStore, home: StoreHome
) -> None:
    """Handler, caller and clock race for 60 tasks, from different threads; each task ends exactly once."""
    winners: Counter[TaskState] = Counter()
    for round_ in range(3):
        leases = [await brought_to(store, S.WORKING, deadline=HOUR) for _ in range(20)]
        home.shift_clock(2 * HOUR)

        async def end(number: int, leases: list[Lease] = leases, turn: int = round_) -> object:
            lease = leases[number // 3]
            match (number + turn) % 3:
                case 0:
                    return await store.append(lease, [status(S.COMPLETED)])
                case 1:
                    return await store.cancel(ALICE, lease.task_id)
                case _:
                    return await store.expire() if number > 45 else ()

        results = await on_many_loops(end, count=60)
        lost = [result for result in results if isinstance(result, BaseException)]
        assert {type(error) for error in lost} <= {Fenced, TaskNotCancelable}
        await store.expire()
        for lease in leases:
            events = await store.events(lease.task_id, 0)
            endings = [event for event in events if event.ends_run]
            assert endings == [events[-1]]
            assert [event.seq for event in events] == [1, 2, 3]
            assert home.status_row(lease.task_id) == (events[-1].state, events[-1].at, 3)
            winners[events[-1].state or S.WORKING] += 1
    assert winners.total() == 60
    assert (await one_page(store, filters())).total == 60
    for state, count in winners.items():
        assert (await one_page(store, filters(state=state))).total == count


async def test_the_caller_and_the_handler_both_learn_who_was_first(store: TaskStore) -> None:
    for number in range(60):
        lease = await brought_to(store, S.WORKING)
        acts = [store.append(lease, [status(S.COMPLETED)]), store.cancel(ALICE, lease.task_id)]
        if number % 2:
            acts.reverse()
        results = await asyncio.gather(*acts, return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert len(refused) == 1
        state = (await store.read(ALICE, lease.task_id)).task().status.state
        assert state is (S.CANCELED if isinstance(refused[0], Fenced) else S.COMPLETED)
        assert isinstance(refused[0], Fenced | TaskNotCancelable)


async def test_a_run_past_its_deadline_fails_with_a_word_about_it(store: TaskStore, home: StoreHome) -> None:
    late = [await brought_to(store, state, deadline=HOUR) for state in (S.SUBMITTED, S.WORKING)]
    hidden = await begun(store, deadline=HOUR, visible=False)
    in_time = await begun(store, deadline=3 * HOUR)
    parked = await brought_to(store, S.INPUT_REQUIRED, deadline=HOUR)
    finished = await brought_to(store, S.COMPLETED, deadline=HOUR)
    assert await store.expire() == ()
    home.shift_clock(2 * HOUR)
    commits = recorded(store)
    events = await store.expire()

    expired = [*late, hidden]
    assert {event.task_id for event in events} == {lease.task_id for lease in expired}
    assert [event for commit in commits for event in commit.events] == list(events)
    for event in events:
        assert isinstance(event.change, StatusChange)
        assert event.change.state is S.FAILED
        assert event.change.message is not None
        assert event.change.message.role is Role.AGENT
        assert "deadline" in event.change.message.text
    assert set(await store.fenced([*late, hidden, in_time])) == {lease.task_id for lease in expired}
    for lease, state in ((in_time, S.SUBMITTED), (parked, S.INPUT_REQUIRED), (finished, S.COMPLETED)):
        assert (await store.read(ALICE, lease.task_id)).task().status.state is state
    assert (await one_page(store, filters(state=S.FAILED))).total == 2
    assert await store.expire() == ()


async def test_a_thousand_late_runs_all_fail_within_a_few_sweeps(store: TaskStore, home: StoreHome) -> None:
    leases = await asyncio.gather(*(begun(store, deadline=HOUR) for _ in range(1000)))
    home.shift_clock(2 * HOUR)
    expired: list[str] = []
    for _ in range(10):
        expired += [event.task_id for event in await store.expire()]
    assert sorted(expired) == sorted(lease.task_id for lease in leases)
    assert (await one_page(store, filters(state=S.FAILED))).total == 1000
