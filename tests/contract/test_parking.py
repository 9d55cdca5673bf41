"""Runs that wait for their caller: parked at one stroke, left alone by everybody, entered again by an answer."""

import asyncio
from collections import Counter

import pytest

from dragoman.gateway.ports import JournalEntry, Lease, LostRun, RunRef, TaskStore
from dragoman.model import Received, RunFacts, StatusChange, TaskState
from dragoman.model.errors import Fenced, IllegalChange, TaskNotCancelable
from dragoman.model.ids import new_id
from dragoman.model.payload import ABSENT, pack, unpack
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    INTERRUPTED,
    OTHER_AGENT,
    TERMINAL,
    acceptance,
    begun,
    brought_to,
    changed,
    chunk,
    filters,
    message,
    on_many_loops,
    one_page,
    recorded,
    status,
)

S = TaskState
DAY = 24 * HOUR
LIMITS = {"writer": 7 * DAY, "reader": 7 * DAY}


def point(ordinal: int = 1, name: str = "which", *, acts: int = 0, kind: str = "ask") -> JournalEntry:
    return JournalEntry(ordinal=ordinal, kind=kind, name=name, acts=acts, result=ABSENT)


async def parked(store: TaskStore, state: TaskState = S.INPUT_REQUIRED, **how: object) -> Lease:
    """Accept a message as a new task, have it ask, and return the lease that it had."""
    lease = await begun(store, **how)
    await store.park(lease, status(state, "Which one?"), point(), reveal=True)
    return lease


async def answered(store: TaskStore, task_id: str, text: str = "The second") -> RunRef:
    """Answer a parked run and return what is to be executed."""
    commits = recorded(store)
    await store.accept(acceptance(message(text, task_id=task_id)))
    (run,) = [run for commit in commits for run in commit.runs]
    return run


@pytest.mark.parametrize("state", INTERRUPTED, ids=lambda state: state.name)
@pytest.mark.parametrize("visible", [True, False], ids=["shown", "hidden"])
async def test_a_run_is_parked_with_its_status_and_its_point_at_once(
    store: TaskStore, state: TaskState, visible: bool
) -> None:
    lease = await begun(store, visible=visible)
    commits = recorded(store)
    event = await store.park(lease, status(state, "Which one?"), point(acts=3), reveal=True)

    assert (event.seq, event.state) == (2, state)
    assert [one for commit in commits for one in commit.events] == [event]
    assert [commit.runs for commit in commits] == [[]]
    task = (await store.read(ALICE, lease.task_id)).task()
    assert task.status.state is state
    assert task.status.message is not None
    assert task.status.message.text == "Which one?"
    assert await store.journal(lease) == (point(acts=3),)
    assert (await one_page(store, filters(state=state))).total == 1


@pytest.mark.parametrize("state", INTERRUPTED, ids=lambda state: state.name)
async def test_nobody_who_was_there_before_can_write_to_a_parked_run(
    store: TaskStore, state: TaskState
) -> None:
    lease = await parked(store, state)
    before = await store.events(lease.task_id, 0)
    for write in (
        lambda: store.append(lease, [status(S.WORKING, "still here")]),
        lambda: store.append(lease, [status(S.COMPLETED)]),
        lambda: store.append(lease, [chunk("late")]),
        lambda: store.record(lease, point(2)),
        lambda: store.park(lease, status(S.INPUT_REQUIRED), point(2)),
        lambda: store.enter(lease),
    ):
        with pytest.raises(Fenced):
            await write()
    await store.begin_work([lease])
    await store.wait([lease])
    assert await store.fenced([lease]) == (lease.task_id,)
    assert await store.events(lease.task_id, 0) == before
    assert len(await store.journal(lease)) == 1
    assert await answered(store, lease.task_id)


@pytest.mark.parametrize("stale", [Lease("", 9), None], ids=["stale", "unknown"])
async def test_only_who_holds_the_lease_parks_a_run(store: TaskStore, stale: Lease | None) -> None:
    lease = await begun(store)
    wrong = Lease(lease.task_id, stale.epoch) if stale is not None else Lease(new_id(), 1)
    with pytest.raises(Fenced):
        await store.park(wrong, status(S.INPUT_REQUIRED), point())
    assert len(await store.events(lease.task_id, 0)) == 1
    assert await store.journal(lease) == ()


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_a_finished_run_is_not_parked(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    with pytest.raises(Fenced):
        await store.park(lease, status(S.INPUT_REQUIRED), point())


async def test_a_run_is_not_parked_in_a_state_that_cannot_come_now(store: TaskStore) -> None:
    lease = await brought_to(store, S.INPUT_REQUIRED)
    with pytest.raises(IllegalChange):
        await store.park(lease, status(S.AUTH_REQUIRED), point())
    assert await store.journal(lease) == ()
    await store.append(lease, [status(S.COMPLETED)])


@pytest.mark.parametrize("state", INTERRUPTED, ids=lambda state: state.name)
async def test_the_next_message_answers_and_enters_the_run_again(store: TaskStore, state: TaskState) -> None:
    lease = await parked(store, state)
    run = await answered(store, lease.task_id)
    assert (run.attempt, run.again, run.state, run.visible) == (1, True, S.WORKING, True)
    assert run.lease.epoch > lease.epoch
    assert [turn.text for turn in run.messages] == ["Hello", "The second"]
    (entry,) = await store.journal(run.lease)
    assert unpack(entry.result) == 1
    assert changed(await store.events(lease.task_id, 2)) == [Received(run.messages[1], S.WORKING)]
    await store.append(run.lease, [status(S.COMPLETED)])
    task = (await store.read(ALICE, lease.task_id)).task()
    assert [turn.text for turn in task.history] == ["Hello", "Which one?", "The second"]


async def test_each_question_gets_the_message_that_came_after_it(store: TaskStore) -> None:
    lease = await begun(store)
    await store.accept(acceptance(message("And be quick", task_id=lease.task_id)))
    await store.record(lease, JournalEntry(ordinal=1, kind="step", name="s", acts=0, result=pack(None)))
    await store.park(lease, status(S.INPUT_REQUIRED), point(2, "first"))
    run = await answered(store, lease.task_id, "to the first")
    await store.accept(acceptance(message("By the way", task_id=lease.task_id)))
    await store.park(run.lease, status(S.AUTH_REQUIRED), point(3, "second"))
    run = await answered(store, lease.task_id, "to the second")

    results = [unpack(entry.result) for entry in await store.journal(run.lease)]
    assert results[0] is None
    assert [run.messages[index].text for index in results[1:]] == ["to the first", "to the second"]
    assert [turn.text for turn in run.messages] == [
        "Hello",
        "And be quick",
        "to the first",
        "By the way",
        "to the second",
    ]


async def test_of_many_answers_at_once_one_is_the_answer_and_the_others_are_history(store: TaskStore) -> None:
    lease = await parked(store)
    commits = recorded(store)
    await on_many_loops(
        lambda n: store.accept(acceptance(message(f"answer {n}", task_id=lease.task_id))), count=20
    )
    (run,) = [run for commit in commits for run in commit.runs]
    (entry,) = await store.journal(run.lease)
    answer = run.messages[unpack(entry.result)]
    events = await store.events(lease.task_id, 2)
    assert [event.state for event in events] == [S.WORKING, *[None] * 19]
    assert events[0].change == Received(answer, S.WORKING)
    history = (await store.read(ALICE, lease.task_id)).task().history
    assert {turn.text for turn in history[2:]} == {f"answer {n}" for n in range(20)}
    assert len(history) == 22


async def test_an_answer_that_is_sent_again_enters_nothing_again(store: TaskStore) -> None:
    lease = await parked(store)
    sent = message("The second", task_id=lease.task_id)
    await store.accept(acceptance(sent))
    commits = recorded(store)
    again = await store.accept(acceptance(sent))
    assert (again.replayed, again.events, commits) == (True, (), [])
    assert len((await store.read(ALICE, lease.task_id)).task().history) == 3


async def test_parked_runs_are_nobodys_and_are_never_taken_over(home: StoreHome) -> None:
    store = home.open()
    lease = await parked(store)
    before = (await store.read(ALICE, lease.task_id)).task()
    for _ in range(2):
        store = home.open()
        assert await store.lost() == ()
        for epoch in range(4):
            run = LostRun(scope=ALICE, task_id=lease.task_id, epoch=epoch, attempt=1, entered=True)
            assert not await store.take_over(run)
            await store.give_up(run, "gone", reveal=True)
    assert (await store.read(ALICE, lease.task_id)).task() == before
    run = await answered(store, lease.task_id)
    assert (run.attempt, [turn.text for turn in run.messages]) == (1, ["Hello", "The second"])


async def test_a_run_that_parks_while_it_is_taken_for_lost_stays_parked(home: StoreHome) -> None:
    lease = await begun(home.open())
    store = home.open()
    (run,) = await store.lost()
    await store.park(lease, status(S.INPUT_REQUIRED), point())
    assert not await store.take_over(run)
    await store.give_up(run, "gone", reveal=True)
    assert (await store.read(ALICE, lease.task_id)).task().status.state is S.INPUT_REQUIRED


async def test_a_run_that_was_answered_and_lost_starts_its_next_attempt_with_the_answer(
    home: StoreHome,
) -> None:
    store = home.open()
    lease = await begun(store)
    await store.append(lease, [chunk("kept")])
    await store.park(lease, status(S.INPUT_REQUIRED, "Which one?"), point(acts=1))
    run = await answered(store, lease.task_id)
    await store.append(run.lease, [chunk("lost", artifact_id="lost")])
    store = home.open()
    commits = recorded(store)
    (lost,) = await store.lost()
    assert (lost.entered, lost.attempt) == (True, 1)
    assert await store.take_over(lost)

    run = commits[-1].runs[0]
    assert (run.attempt, run.again) == (2, True)
    (entry,) = await store.journal(run.lease)
    assert run.messages[unpack(entry.result)].text == "The second"
    task = (await store.read(ALICE, lease.task_id)).task()
    assert [artifact.artifact_id for artifact in task.artifacts or ()] == ["result"]
    assert [turn.text for turn in task.history] == ["Hello", "Which one?", "The second"]


async def test_the_deadline_moves_by_the_time_that_a_run_was_parked_and_by_nothing_else(
    store: TaskStore, home: StoreHome
) -> None:
    commits = recorded(store)
    lease = await begun(store, deadline=HOUR)
    (first,) = [run for commit in commits for run in commit.runs]
    home.shift_clock(HOUR // 2)
    await store.accept(acceptance(message("Working yet?", task_id=lease.task_id)))
    at = first.deadline_at
    for days in (3, 5):
        await store.park(lease, status(S.INPUT_REQUIRED), point(days))
        home.shift_clock(days * DAY)
        assert await store.expire() == ()
        assert await store.expire_parked(LIMITS) == ()
        run = await answered(store, lease.task_id)
        assert days * DAY <= run.deadline_at - at < days * DAY + 60_000
        assert (await store.read(ALICE, lease.task_id)).facts.deadline == run.deadline_at
        at, lease = run.deadline_at, run.lease
    home.shift_clock(HOUR // 2 - 120_000)
    assert await store.expire() == ()
    home.shift_clock(240_000)
    assert [event.task_id for event in await store.expire()] == [lease.task_id]


async def test_a_clock_that_goes_back_while_a_run_is_parked_takes_no_time_from_it(
    store: TaskStore, home: StoreHome
) -> None:
    commits = recorded(store)
    lease = await parked(store, deadline=HOUR)
    home.shift_clock(-5 * HOUR)
    run = await answered(store, lease.task_id)
    assert run.deadline_at == commits[0].runs[0].deadline_at
    assert (await store.read(ALICE, lease.task_id)).facts.deadline == run.deadline_at


async def test_a_task_tells_how_far_its_run_has_come_as_it_stood_at_any_of_its_events(
    store: TaskStore, home: StoreHome
) -> None:
    commits = recorded(store)
    lease = await begun(store, deadline=HOUR)
    await store.append(lease, [status(S.WORKING)])
    await store.park(lease, status(S.INPUT_REQUIRED), point())
    home.shift_clock(DAY)
    run = await answered(store, lease.task_id)
    await store.append(run.lease, [status(S.COMPLETED)])
    first = commits[0].runs[0].deadline_at
    for until, deadline in enumerate((first, first, None, run.deadline_at, None), 1):
        read = await store.read(ALICE, lease.task_id, until=until)
        assert read.facts == RunFacts(sequence=until, attempt=1, deadline=deadline)


@pytest.mark.parametrize("whole", [False, True], ids=["outlined", "whole"])
async def test_a_listed_task_tells_of_its_run_what_it_tells_when_it_is_read(
    home: StoreHome, whole: bool
) -> None:
    store = home.open()
    waits, done, lost = await parked(store), await brought_to(store, S.COMPLETED), await begun(store)
    await store.append(lost, [chunk("half")])
    store = home.open()
    (run,) = await store.lost()
    await store.take_over(run)
    page = await one_page(store, filters(), history_length=int(whole), artifacts=whole)
    found = {task.id: task.run for task in page.tasks}
    for lease in (waits, done, lost):
        assert found[lease.task_id] == (await store.read(ALICE, lease.task_id)).facts
    assert [run.attempt for run in found.values() if run is not None and run.deadline is not None] == [2]


async def test_a_run_that_waits_too_long_fails_with_the_reason(store: TaskStore, home: StoreHome) -> None:
    late = [await parked(store, state) for state in INTERRUPTED]
    patient = await parked(store, scope=OTHER_AGENT)
    running, finished = await begun(store, deadline=90 * DAY), await brought_to(store, S.COMPLETED)
    home.shift_clock(5 * DAY)
    in_time = await parked(store)
    limits = {"writer": 7 * DAY, "reader": 30 * DAY, "unused": HOUR}
    assert await store.expire_parked(limits) == ()
    home.shift_clock(3 * DAY)
    commits = recorded(store)
    events = await store.expire_parked(limits)

    assert {event.task_id for event in events} == {lease.task_id for lease in late}
    assert [event for commit in commits for event in commit.events] == list(events)
    for event in events:
        assert isinstance(event.change, StatusChange)
        assert event.change.state is S.FAILED
        assert event.change.message is not None
        assert "Nobody answered" in event.change.message.text
    for lease, scope, state in (
        (in_time, ALICE, S.INPUT_REQUIRED),
        (patient, OTHER_AGENT, S.INPUT_REQUIRED),
        (running, ALICE, S.SUBMITTED),
        (finished, ALICE, S.COMPLETED),
    ):
        assert (await store.read(scope, lease.task_id)).task().status.state is state
    assert (await one_page(store, filters(state=S.FAILED))).total == 2
    assert await store.expire_parked(limits) == ()
    assert await store.expire_parked({}) == ()
    home.shift_clock(40 * DAY)
    assert len(await store.expire_parked(limits)) == 2


async def test_a_parked_run_is_canceled_at_once(store: TaskStore) -> None:
    lease = await parked(store)
    event = await store.cancel(ALICE, lease.task_id)
    assert event.state is S.CANCELED
    with pytest.raises(TaskNotCancelable):
        await store.cancel(ALICE, lease.task_id)
    assert (await one_page(store, filters(state=S.INPUT_REQUIRED))).total == 0


async def test_answer_cancel_and_expiry_at_once_leave_one_outcome(store: TaskStore, home: StoreHome) -> None:
    leases = [await parked(store) for _ in range(8)]
    home.shift_clock(8 * DAY)
    commits = recorded(store)
    for lease in leases:
        await asyncio.gather(
            store.accept(acceptance(message("Here", task_id=lease.task_id))),
            store.cancel(ALICE, lease.task_id),
            store.expire_parked(LIMITS),
            return_exceptions=True,
        )
    for lease in leases:
        events = await store.events(lease.task_id, 0)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert sum(event.ends_run for event in events) == 1
    states = Counter([(await store.read(ALICE, lease.task_id)).task().status.state for lease in leases])
    assert set(states) <= {S.CANCELED, S.FAILED}
    totals = {state: (await one_page(store, filters(state=state))).total for state in TaskState}
    assert {state: total for state, total in totals.items() if total} == states
    assert len([run for commit in commits for run in commit.runs]) <= 8
