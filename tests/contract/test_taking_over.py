"""Runs of a server that is gone: found, taken over once, or given up; and the journal that goes with them."""

import asyncio
from collections import Counter

import pytest

from dragoman.gateway.ports import JournalEntry, Lease, LostRun, TaskStore
from dragoman.model import Resumed, StatusChange, TaskState
from dragoman.model.errors import Fenced, TaskNotFound
from dragoman.model.ids import new_id
from dragoman.model.payload import pack, unpack
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    OTHER_TENANT,
    acceptance,
    begun,
    brought_to,
    changed,
    chunk,
    filters,
    message,
    one_page,
    recorded,
    status,
)

S = TaskState
LEASE = 15_000
"""The lease of the stores under contract, in milliseconds."""


def entry(ordinal: int, name: str = "pay", *, acts: int = 0, result: object = None) -> JournalEntry:
    return JournalEntry(ordinal=ordinal, kind="step", name=name, acts=acts, result=pack(result))


async def lost_run(store: TaskStore, task_id: str) -> LostRun:
    (run,) = [run for run in await store.lost() if run.task_id == task_id]
    return run


async def test_what_a_living_server_runs_is_not_lost(store: TaskStore) -> None:
    for state in TaskState:
        await brought_to(store, state)
    assert await store.lost() == ()


async def test_the_running_tasks_of_a_server_that_is_gone_are_lost_and_no_others(home: StoreHome) -> None:
    store = home.open()
    leases = {state: await brought_to(store, state) for state in TaskState}
    elsewhere = await begun(store, scope=OTHER_TENANT)
    hidden = await begun(store, visible=False)
    lost = await home.open().lost()
    running = {leases[S.SUBMITTED], leases[S.WORKING], hidden}
    expected = [
        LostRun(scope=ALICE, task_id=lease.task_id, epoch=1, attempt=1, entered=True) for lease in running
    ]
    expected.append(LostRun(scope=OTHER_TENANT, task_id=elsewhere.task_id, epoch=1, attempt=1, entered=True))
    assert sorted(lost, key=lambda run: run.task_id) == sorted(expected, key=lambda run: run.task_id)


async def test_lost_runs_come_in_the_order_in_which_their_tasks_were_accepted(home: StoreHome) -> None:
    store = home.open()
    states = [S.WORKING, S.SUBMITTED, S.WORKING, S.SUBMITTED, S.SUBMITTED, S.WORKING]
    leases = [await brought_to(store, state, deadline=1000 - at) for at, state in enumerate(states)]
    lost = await home.open().lost()
    assert [run.task_id for run in lost] == [lease.task_id for lease in leases]


async def test_a_run_that_keeps_its_state_for_as_long_as_a_lease_is_quiet(home: StoreHome) -> None:
    other = home.open()
    await begun(other)
    store = home.open()
    leases = {state: await brought_to(store, state) for state in TaskState}
    hidden = await begun(store, visible=False)
    waiting = await begun(store)
    await store.wait([waiting])
    speaking, adding = await brought_to(store, S.WORKING), await brought_to(store, S.WORKING)
    assert await store.quiet() == ()
    home.shift_clock(LEASE - 1_000)
    await store.append(speaking, [status(S.WORKING, "still here")])
    await store.append(adding, [chunk("an artifact is no change of state")])
    assert await store.quiet() == ()
    home.shift_clock(1_001)
    silent = {leases[S.SUBMITTED], leases[S.WORKING], hidden, adding}
    expected = [
        LostRun(scope=ALICE, task_id=lease.task_id, epoch=1, attempt=1, entered=True) for lease in silent
    ]
    expected.append(LostRun(scope=ALICE, task_id=waiting.task_id, epoch=1, attempt=1, entered=False))
    found = await store.quiet()
    assert sorted(found, key=lambda run: run.task_id) == sorted(expected, key=lambda run: run.task_id)


async def test_a_run_that_was_left_lying_is_taken_up_like_a_lost_one(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    home.shift_clock(LEASE)
    (run,) = await store.quiet()
    commits = recorded(store)
    assert await store.take_over(run)
    (taken,) = commits[-1].runs
    assert (taken.lease, taken.attempt) == (Lease(lease.task_id, 2), 2)
    assert not await store.take_over(run)
    with pytest.raises(Fenced):
        await store.append(lease, [status(S.COMPLETED)])


async def test_a_run_that_is_taken_over_starts_its_next_attempt(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    await store.append(lease, [status(S.WORKING, "first try")])
    await store.accept(acceptance(message("And this", task_id=lease.task_id)))
    store = home.open()
    commits = recorded(store)
    assert await store.take_over(await lost_run(store, lease.task_id))

    (run,) = [run for commit in commits for run in commit.runs]
    assert (run.scope, run.lease, run.attempt) == (ALICE, Lease(lease.task_id, 2), 2)
    assert [turn.text for turn in run.messages] == ["Hello", "And this"]
    events = await store.events(lease.task_id, 0)
    assert isinstance(events[-1].change, Resumed)
    assert (events[-1].seq, events[-1].attempt, run.state) == (4, 2, S.WORKING)
    assert await store.lost() == ()
    with pytest.raises(Fenced):
        await store.append(lease, [status(S.COMPLETED)])
    (event,) = await store.append(run.lease, [status(S.COMPLETED)])
    assert (event.seq, event.attempt) == (5, 2)


async def test_of_many_that_take_a_run_over_one_gets_it(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    store = home.open()
    run = await lost_run(store, lease.task_id)
    results = await asyncio.gather(*(store.take_over(run) for _ in range(10)))
    assert Counter(results) == {True: 1, False: 9}
    assert len(await store.events(lease.task_id, 0)) == 2


async def test_a_run_that_ended_meanwhile_is_neither_taken_over_nor_given_up(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    store = home.open()
    run = await lost_run(store, lease.task_id)
    await store.cancel(ALICE, lease.task_id)
    before = await store.events(lease.task_id, 0)
    assert not await store.take_over(run)
    await store.give_up(run, "gone", reveal=True)
    assert await store.events(lease.task_id, 0) == before
    unknown = LostRun(scope=ALICE, task_id=new_id(), epoch=1, attempt=1, entered=True)
    assert not await store.take_over(unknown)
    await store.give_up(unknown, "gone", reveal=True)


async def test_a_run_that_is_given_up_fails_with_the_reason(home: StoreHome) -> None:
    store = home.open()
    lease, hidden, silent = await begun(store), await begun(store, visible=False), await begun(store)
    quiet = await begun(store, visible=False)
    store = home.open()
    for one, reveal in ((lease, True), (hidden, True), (quiet, False)):
        await store.give_up(await lost_run(store, one.task_id), "outcome unknown", reveal=reveal)

    for one in (lease, hidden):
        task = (await store.read(ALICE, one.task_id)).task()
        assert task.status.state is S.FAILED
        assert task.status.message is not None
        assert task.status.message.text == "outcome unknown"
        with pytest.raises(Fenced):
            await store.append(one, [status(S.COMPLETED)])
    with pytest.raises(TaskNotFound):
        await store.read(ALICE, quiet.task_id)
    assert [run.task_id for run in await store.lost()] == [silent.task_id]
    assert (await one_page(store, filters(state=S.FAILED))).total == 2


async def test_taking_over_again_counts_attempts_and_epochs_on(home: StoreHome) -> None:
    lease = await begun(home.open())
    for attempt in (2, 3, 4):
        store = home.open()
        run = await lost_run(store, lease.task_id)
        assert (run.attempt, run.epoch) == (attempt - 1, attempt - 1)
        assert await store.take_over(run)
    events = await store.events(lease.task_id, 0)
    assert [(event.seq, event.attempt) for event in events] == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("visible", [True, False], ids=["shown", "hidden"])
async def test_a_run_that_waited_to_be_entered_loses_no_attempt(home: StoreHome, visible: bool) -> None:
    store = home.open()
    lease = await begun(store, visible=visible)
    await store.wait([lease])
    for epoch in (2, 3):
        store = home.open()
        commits = recorded(store)
        run = await lost_run(store, lease.task_id)
        assert (run.entered, run.attempt) == (False, 1)
        assert await store.take_over(run)
        lease = commits[-1].runs[0].lease
        assert (lease.epoch, commits[-1].runs[0].attempt) == (epoch, 1)
        await store.wait([lease])


@pytest.mark.parametrize("visible", [True, False], ids=["shown", "hidden"])
async def test_a_run_that_waited_and_was_entered_loses_its_attempt(home: StoreHome, visible: bool) -> None:
    store = home.open()
    lease = await begun(store, visible=visible)
    await store.wait([lease])
    await store.enter(lease)
    store = home.open()
    run = await lost_run(store, lease.task_id)
    assert run.entered
    commits = recorded(store)
    assert await store.take_over(run)
    assert commits[-1].runs[0].attempt == 2


@pytest.mark.parametrize("visible", [True, False], ids=["shown", "hidden"])
async def test_a_run_that_waited_once_is_taken_for_entered_when_it_did_not_wait_again(
    home: StoreHome, visible: bool
) -> None:
    """The next server had room for it at once. Else a message that kills its server would be tried for ever."""
    store = home.open()
    lease = await begun(store, visible=visible)
    await store.wait([lease])
    store = home.open()
    assert await store.take_over(await lost_run(store, lease.task_id))
    assert (await lost_run(home.open(), lease.task_id)).entered


async def test_a_run_that_goes_on_after_an_answer_may_wait_as_well(home: StoreHome) -> None:
    store = home.open()
    lease = await brought_to(store, S.INPUT_REQUIRED)
    commits = recorded(store)
    await store.accept(acceptance(message("Here", task_id=lease.task_id)))
    await store.wait([commits[-1].runs[0].lease])
    assert not (await lost_run(home.open(), lease.task_id)).entered


async def test_waiting_changes_nothing_that_a_caller_sees_and_needs_a_good_lease(home: StoreHome) -> None:
    store = home.open()
    waiting, canceled, stale = await begun(store), await begun(store), await begun(store)
    await store.wait([waiting, canceled, Lease(stale.task_id, 9), Lease(new_id(), 1)])
    await store.cancel(ALICE, canceled.task_id)
    await store.begin_work([waiting])
    for lease, states in ((waiting, [S.SUBMITTED, S.WORKING]), (canceled, [S.SUBMITTED, S.CANCELED])):
        assert [event.state for event in await store.events(lease.task_id, 0)] == states
    for lease in (canceled, Lease(waiting.task_id, 2), Lease(new_id(), 1)):
        with pytest.raises(Fenced):
            await store.enter(lease)
    store = home.open()
    lost = {run.task_id: run.entered for run in await store.lost()}
    assert lost == {waiting.task_id: False, stale.task_id: True}


async def test_the_journal_keeps_its_order_and_values_over_attempts(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    entries = [entry(n, f"step {n}", acts=n, result={"n": n, "big": 10**20}) for n in range(1, 12)]
    for one in entries:
        await store.record(lease, one)
    assert await store.journal(lease) == tuple(entries)
    store = home.open()
    await store.take_over(await lost_run(store, lease.task_id))
    kept = await store.journal(Lease(lease.task_id, 2))
    assert kept == tuple(entries)
    assert unpack(kept[-1].result) == {"n": 11, "big": 10**20}
    await store.record(Lease(lease.task_id, 2), entry(12))
    assert len(await store.journal(Lease(lease.task_id, 2))) == 12


async def test_a_journal_belongs_to_its_run(store: TaskStore) -> None:
    one, other = await begun(store), await begun(store)
    await store.record(one, entry(1, "mine"))
    await store.record(other, entry(1, "theirs"))
    assert [point.name for point in await store.journal(one)] == ["mine"]
    assert [point.name for point in await store.journal(other)] == ["theirs"]


async def test_only_who_holds_the_lease_writes_the_journal(store: TaskStore) -> None:
    lease = await begun(store)
    await store.record(lease, entry(1))
    for stale in (Lease(lease.task_id, 2), Lease(new_id(), 1)):
        with pytest.raises(Fenced):
            await store.record(stale, entry(2))
    await store.cancel(ALICE, lease.task_id)
    with pytest.raises(Fenced):
        await store.record(lease, entry(2))
    assert len(await store.journal(lease)) == 1


async def test_artifacts_after_the_last_journaled_point_no_longer_count(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    await store.append(lease, [chunk("kept ", artifact_id="a"), chunk("whole", artifact_id="b")])
    await store.record(lease, entry(1, acts=2))
    await store.append(lease, [chunk("lost", artifact_id="a", append=True), chunk("lost", artifact_id="c")])
    store = home.open()
    await store.take_over(await lost_run(store, lease.task_id))

    assert changed(await store.events(lease.task_id, 5)) == [Resumed(kept=3)]
    lease = Lease(lease.task_id, 2)
    await store.append(lease, [chunk("again", artifact_id="a", append=True), StatusChange(S.COMPLETED)])
    artifacts = (await store.read(ALICE, lease.task_id)).task().artifacts or ()
    texts = {one.artifact_id: "".join(part.text for part in one.parts) for one in artifacts}
    assert texts == {"a": "kept again", "b": "whole"}


async def test_without_a_journal_nothing_of_the_lost_attempt_counts(home: StoreHome) -> None:
    store = home.open()
    lease = await begun(store)
    await store.append(lease, [status(S.WORKING), chunk("half")])
    store = home.open()
    await store.take_over(await lost_run(store, lease.task_id))
    task = (await store.read(ALICE, lease.task_id)).task()
    assert (task.artifacts, task.status.state) == ((), S.WORKING)
    assert [turn.text for turn in task.history] == ["Hello"]


async def test_fenced_names_the_leases_that_are_good_no_more(store: TaskStore) -> None:
    running, waiting = await brought_to(store, S.WORKING), await brought_to(store, S.INPUT_REQUIRED)
    ended = [await brought_to(store, state) for state in (S.COMPLETED, S.CANCELED)]
    stale, unknown = Lease(running.task_id, 9), Lease(new_id(), 1)
    asked = [running, waiting, *ended, stale, unknown]
    good_no_more = tuple(lease.task_id for lease in (*ended, stale, unknown))
    assert await store.fenced(asked) == good_no_more
    assert await store.fenced([]) == ()
