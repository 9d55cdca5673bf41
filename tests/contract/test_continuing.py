"""A message to a task that exists: what is refused, and what goes on."""

import pytest

from dragoman.gateway.ports import TaskStore
from dragoman.model import Received, TaskState
from dragoman.model.errors import (
    DragomanError,
    Fenced,
    InvalidParams,
    TaskNotFound,
    UnsupportedOperation,
)
from dragoman.model.ids import new_id
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    INTERRUPTED,
    STRANGERS,
    TERMINAL,
    acceptance,
    begun,
    brought_to,
    filters,
    message,
    on_many_loops,
    one_page,
    recorded,
    status,
)


async def refused(store: TaskStore, task_id: str, **how: object) -> DragomanError:
    """Send a message to a task, see that it is refused and that nothing of it was stored; return the error."""
    sent = message("More", task_id=task_id, context_id=str(how.pop("context_id", "")))
    commits = recorded(store)
    with pytest.raises(DragomanError) as refusal:
        await store.accept(acceptance(sent, **how))
    assert not commits
    unbound = message("More", message_id=sent.message_id)
    assert not (await store.accept(acceptance(unbound, **how))).replayed
    return refusal.value


async def test_a_task_that_never_was_takes_no_message(store: TaskStore) -> None:
    assert type(await refused(store, new_id())) is TaskNotFound


@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_a_task_of_another_scope_takes_no_message(store: TaskStore, scope: object) -> None:
    lease = await begun(store)
    assert type(await refused(store, lease.task_id, scope=scope)) is TaskNotFound
    assert len(await store.events(lease.task_id, 0)) == 1


async def test_a_task_that_nobody_may_see_takes_no_message(store: TaskStore) -> None:
    lease = await begun(store, visible=False)
    assert type(await refused(store, lease.task_id)) is TaskNotFound


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_a_finished_task_takes_no_message(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    assert type(await refused(store, lease.task_id)) is UnsupportedOperation
    assert (await store.read(ALICE, lease.task_id)).task().status.state is state


async def test_a_message_in_another_context_than_its_task_is_refused(store: TaskStore) -> None:
    lease = await begun(store, sent=message(context_id="mine"))
    error = await refused(store, lease.task_id, context_id="another")
    assert isinstance(error, InvalidParams)
    assert [violation.field for violation in error.violations] == ["message.contextId"]


async def test_a_message_may_name_the_context_of_its_task(store: TaskStore) -> None:
    lease = await begun(store, sent=message(context_id="mine"))
    sent = message("More", task_id=lease.task_id, context_id="mine")
    assert (await store.accept(acceptance(sent))).task_id == lease.task_id


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.WORKING], ids=lambda state: state.name)
async def test_a_message_to_a_running_task_joins_its_history_and_starts_nothing(
    store: TaskStore, state: TaskState
) -> None:
    lease = await brought_to(store, state)
    before = await store.events(lease.task_id, 0)
    commits, sent = recorded(store), message("More", task_id=lease.task_id)
    accepted = await store.accept(acceptance(sent))

    assert (accepted.task_id, accepted.replayed) == (lease.task_id, False)
    assert [event.change for event in accepted.events] == [Received(sent, None)]
    assert accepted.events[0].seq == before[-1].seq + 1
    assert [len(commit.runs) for commit in commits] == [0]
    task = (await store.read(ALICE, lease.task_id)).task()
    assert task.status.state is state
    assert [turn.text for turn in task.history] == ["Hello", "More"]
    assert await store.append(lease, [status(TaskState.COMPLETED)])


async def test_history_is_in_the_order_in_which_things_were_said(store: TaskStore) -> None:
    lease = await begun(store, sent=message("1 caller"))
    await store.append(lease, [status(TaskState.WORKING, "2 agent")])
    await store.accept(acceptance(message("3 caller", task_id=lease.task_id)))
    await store.accept(acceptance(message("4 caller", task_id=lease.task_id)))
    await store.append(lease, [status(TaskState.WORKING, "5 agent")])
    await store.append(lease, [status(TaskState.COMPLETED)])
    history = (await store.read(ALICE, lease.task_id)).task().history
    assert [turn.text for turn in history] == ["1 caller", "2 agent", "3 caller", "4 caller", "5 agent"]


@pytest.mark.parametrize("state", INTERRUPTED, ids=lambda state: state.name)
async def test_a_message_to_a_waiting_task_enters_its_run_again(store: TaskStore, state: TaskState) -> None:
    lease = await begun(store)
    await store.append(lease, [status(state, "Which language?")])
    commits, sent = recorded(store), message("French", task_id=lease.task_id)
    accepted = await store.accept(acceptance(sent))

    assert [event.change for event in accepted.events] == [Received(sent, TaskState.WORKING)]
    (run,) = [run for commit in commits for run in commit.runs]
    assert (run.lease.task_id, run.lease.epoch, run.attempt) == (lease.task_id, lease.epoch + 1, 1)
    assert [turn.text for turn in run.messages] == ["Hello", "French"]
    assert run.state is TaskState.WORKING
    with pytest.raises(Fenced):
        await store.append(lease, [status(TaskState.WORKING, "the old handler speaks")])
    await store.append(run.lease, [status(TaskState.COMPLETED)])
    task = (await store.read(ALICE, lease.task_id)).task()
    assert [turn.text for turn in task.history] == ["Hello", "Which language?", "French"]


async def test_the_time_that_a_task_waits_for_its_caller_does_not_count(
    store: TaskStore, home: StoreHome
) -> None:
    commits = recorded(store)
    lease = await begun(store, deadline=HOUR)
    await store.append(lease, [status(TaskState.INPUT_REQUIRED)])
    home.shift_clock(3 * HOUR)
    assert await store.expire() == ()
    await store.accept(acceptance(message("Here", task_id=lease.task_id)))
    first, second = (run for commit in commits for run in commit.runs)
    assert 3 * HOUR <= second.deadline_at - first.deadline_at < 3 * HOUR + 60_000
    assert await store.expire() == ()


async def test_a_repeated_answer_is_the_same_answer(store: TaskStore) -> None:
    lease = await brought_to(store, TaskState.INPUT_REQUIRED)
    sent = message("French", task_id=lease.task_id)
    await store.accept(acceptance(sent))
    commits = recorded(store)
    again = await store.accept(acceptance(sent))
    assert (again.task_id, again.replayed, again.events) == (lease.task_id, True, ())
    assert not commits


async def test_of_many_answers_at_once_one_enters_the_run_again(store: TaskStore) -> None:
    lease = await brought_to(store, TaskState.INPUT_REQUIRED)
    commits = recorded(store)
    await on_many_loops(
        lambda n: store.accept(acceptance(message(f"answer {n}", task_id=lease.task_id))), count=20
    )
    assert len([run for commit in commits for run in commit.runs]) == 1
    task = (await store.read(ALICE, lease.task_id)).task()
    assert task.status.state is TaskState.WORKING
    assert len(task.history) == 21
    assert (await one_page(store, filters(state=TaskState.WORKING))).total == 1
