"""Runs that an engine outside executes: what it is to be told is kept with the task until it is certain to know."""

import pytest

from dragoman.gateway.dispatching import DispatchedRun, Notice
from dragoman.gateway.ports import JournalEntry, Lease, LostRun, Placing
from dragoman.model import StatusChange, TaskState
from dragoman.model.errors import Fenced
from dragoman.model.payload import ABSENT
from tests.contract.homes import OpenStore, StoreHome
from tests.contract.samples import ALICE, acceptance, changed, message, recorded, status

S = TaskState
HOLD = 10_000


def engine_store(home: StoreHome) -> OpenStore:
    return home.open(Placing.ENGINE)


async def accepted(store: OpenStore) -> str:
    return (await store.accept(acceptance())).task_id


async def only(store: OpenStore) -> DispatchedRun:
    (found,) = await store.due(10, HOLD)
    return found


async def taken(store: OpenStore, task_id: str) -> Lease:
    """Take a run as an activity does, and return its lease."""
    commits = recorded(store)
    found = await store.standing(task_id)
    assert found is not None
    assert found.run is not None
    assert await store.take_over(found.run)
    (run,) = [run for commit in commits for run in commit.runs]
    return run.lease


async def parked(store: OpenStore, lease: Lease) -> None:
    entry = JournalEntry(ordinal=1, kind="ask", name="", acts=0, result=ABSENT)
    await store.park(lease, StatusChange(S.INPUT_REQUIRED), entry, reveal=True)


async def test_a_new_run_is_nobodys_and_the_engine_is_to_be_told_of_it(home: StoreHome) -> None:
    store = engine_store(home)
    commits = recorded(store)
    task_id = await accepted(store)
    (commit,) = commits
    assert commit.runs == []
    assert [run.lease for run in commit.offered] == [Lease(task_id, 1)]
    assert await store.offered() == {ALICE.agent: 1}
    found = await only(store)
    assert (found.task_id, found.notice, found.epoch, found.tries) == (task_id, Notice.START, 1, 0)
    assert found.run == LostRun(scope=ALICE, task_id=task_id, epoch=1, attempt=1, entered=False)
    assert (found.state, found.is_held) == (S.SUBMITTED, False)


async def test_what_one_server_is_about_to_tell_no_other_gets_for_a_while(home: StoreHome) -> None:
    store = engine_store(home)
    await accepted(store)
    assert len(await store.due(10, HOLD)) == 1
    assert await store.due(10, HOLD) == ()
    home.shift_clock(HOLD)
    assert len(await store.due(10, HOLD)) == 1


async def test_those_due_longest_come_first_and_not_more_than_are_asked_for(home: StoreHome) -> None:
    store = engine_store(home)
    tasks = []
    for _ in range(3):
        tasks.append(await accepted(store))
        home.shift_clock(10)
    assert sorted(one.task_id for one in await store.due(2, HOLD)) == tasks[:2]
    assert [one.task_id for one in await store.due(2, HOLD)] == tasks[2:]


async def test_a_notice_that_was_told_is_none_and_the_run_is_looked_at_again_later(home: StoreHome) -> None:
    store = engine_store(home)
    await accepted(store)
    await store.told_engine(await only(store), 30_000)
    home.shift_clock(29_000)
    assert await store.due(10, HOLD) == ()
    home.shift_clock(1_000)
    assert (await only(store)).notice is Notice.NONE


async def test_a_notice_that_did_not_come_is_due_again(home: StoreHome) -> None:
    store = engine_store(home)
    await accepted(store)
    await store.not_told_engine(await only(store), 500)
    home.shift_clock(500)
    found = await only(store)
    assert (found.notice, found.tries) == (Notice.START, 1)


async def test_whoever_takes_a_run_knows_that_the_engine_was_told(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    lease = await taken(store, task_id)
    assert lease.epoch == 2
    assert len(await store.events(task_id, 0)) == 1, "nothing is taken back: nobody has written anything yet"
    assert await store.offered() == {}
    home.shift_clock(HOLD)
    found = await only(store)
    assert found.notice is Notice.NONE
    assert found.run is not None
    assert (found.run.attempt, found.run.entered) == (1, True)


async def test_a_run_of_an_engine_outside_is_neither_lost_nor_quiet(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    await taken(store, task_id)
    waiting = await accepted(store)
    home.shift_clock(60_000)
    assert await store.quiet() == ()
    other = engine_store(home)
    assert await other.lost() == ()
    found = await other.standing(task_id)
    assert found is not None
    assert found.run == LostRun(scope=ALICE, task_id=task_id, epoch=2, attempt=1, entered=True)
    assert not found.is_held
    assert (await other.standing(waiting)) is not None


async def test_a_second_taking_is_the_next_attempt_and_fences_the_first_out(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    first = await taken(store, task_id)
    found = await store.standing(task_id)
    assert found is not None
    assert found.run is not None
    assert await store.take_over(found.run)
    assert not await store.take_over(found.run), "somebody else was quicker"
    with pytest.raises(Fenced):
        await store.append(first, [status(S.COMPLETED)])
    again = await store.standing(task_id)
    assert again is not None
    assert again.run is not None
    assert again.run.attempt == 2


async def test_an_answered_run_is_nobodys_and_the_engine_is_to_be_told_to_go_on(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    await parked(store, await taken(store, task_id))
    standing = await store.standing(task_id)
    assert standing is not None
    assert standing.run is not None
    assert (standing.state, standing.run.epoch) == (S.INPUT_REQUIRED, 3)
    commits = recorded(store)
    await store.accept(acceptance(message("blue", task_id=task_id)))
    assert [commit.runs for commit in commits] == [[]]
    found = await only(store)
    assert (found.notice, found.epoch) == (Notice.RESUME, 4)
    lease = await taken(store, task_id)
    await store.append(lease, [status(S.COMPLETED)])
    assert (await store.events(task_id, 0))[-1].change == status(S.COMPLETED)


async def test_a_run_that_the_embedded_engine_parked_is_started_when_it_is_answered(home: StoreHome) -> None:
    store = home.open()
    commits = recorded(store)
    task_id = await accepted(store)
    await parked(store, commits[0].runs[0].lease)
    other = engine_store(home)
    await other.accept(acceptance(message("blue", task_id=task_id)))
    found = await only(other)
    assert (found.task_id, found.notice) == (task_id, Notice.START)


async def test_of_a_run_that_its_handler_ended_nothing_is_left_to_tell(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    await store.append(await taken(store, task_id), [status(S.COMPLETED)])
    home.shift_clock(60_000)
    assert await store.due(10, HOLD) == ()
    assert await store.standing(task_id) is None


@pytest.mark.parametrize("entered", [False, True])
@pytest.mark.parametrize("how", ["cancel", "expire", "give up"])
async def test_of_a_run_that_ended_otherwise_the_engine_is_told_and_then_nothing_is_left(
    home: StoreHome, how: str, entered: bool
) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    if entered:
        await taken(store, task_id)
    standing = await store.standing(task_id)
    assert standing is not None
    assert standing.run is not None
    if how == "cancel":
        await store.cancel(ALICE, task_id)
    elif how == "give up":
        await store.give_up(standing.run, "Unknown.", reveal=True)
    else:
        home.shift_clock(2 * 3_600_000)
        assert len(await store.expire()) == 1
    home.shift_clock(HOLD)
    found = await only(store)
    assert found.notice is Notice.STOP
    assert found.state is not None
    assert found.state.is_terminal
    await store.told_engine(found, 1000)
    home.shift_clock(60_000)
    assert await store.due(10, HOLD) == ()


async def test_what_is_noted_of_an_old_notice_leaves_a_new_one_as_it_is(home: StoreHome) -> None:
    store = engine_store(home)
    task_id = await accepted(store)
    start = await only(store)
    await store.cancel(ALICE, task_id)
    await store.told_engine(start, 30_000)
    await store.not_told_engine(start, 30_000)
    found = await only(store)
    assert (found.notice, found.tries) == (Notice.STOP, 0)


async def test_a_server_without_such_an_engine_tells_of_the_end_as_well(home: StoreHome) -> None:
    task_id = await accepted(engine_store(home))
    store = home.open()
    assert await store.lost() == (), "it is not its to execute"
    await store.cancel(ALICE, task_id)
    assert (await only(store)).notice is Notice.STOP
    own = await accepted(store)
    assert await store.standing(own) is None


async def test_a_message_that_is_refused_leaves_nothing_to_tell(home: StoreHome) -> None:
    store = engine_store(home)
    sent = acceptance(message("one"))
    first = await store.accept(sent)
    replayed = await store.accept(sent)
    assert replayed.replayed
    assert changed(await store.events(first.task_id, 0))
    assert len(await store.due(10, HOLD)) == 1
