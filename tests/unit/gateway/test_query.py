"""Reading and cancelling tasks through the gateway."""

from typing import Any

import pytest

from dragoman.gateway.capability import check_capability
from dragoman.gateway.ports import AgentSettings, Lease
from dragoman.gateway.query import history_bound
from dragoman.model import Cursor, Filters, Received, Role, Scope, Task, TaskPage, TaskState, TextPart
from dragoman.model.errors import (
    DragomanError,
    InvalidParams,
    PushNotificationNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)
from dragoman.model.message import Message
from dragoman.model.operation import CancelTask, GetExtendedCard, GetTask, ListTasks, Operation, Request
from tests.unit.gateway.scripted import OTHERS, SCOPE, World, chunk, message, play, status

WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED
OPERATIONS = {
    GetTask: Operation.GET_TASK,
    ListTasks: Operation.LIST_TASKS,
    CancelTask: Operation.CANCEL_TASK,
    GetExtendedCard: Operation.GET_EXTENDED_CARD,
}


async def perform(world: World, request: Request, scope: Scope = SCOPE) -> Any:
    return await world.gateway.perform(world.call(scope=scope), OPERATIONS[type(request)], request)


async def accepted(world: World, message_id: str = "m") -> Lease:
    answer = await world.send(message(message_id=message_id, return_immediately=True))
    assert isinstance(answer.result, Task)
    return Lease(answer.result.id, 1)


@pytest.mark.parametrize(
    ("asked", "bound"), [(None, 100), (0, 0), (1, 1), (1000, 1000), (1001, 1000), (2**31 - 1, 1000)]
)
def test_history_has_a_bound_however_much_is_asked_for(asked: int | None, bound: int) -> None:
    assert history_bound(asked) == bound


def test_a_task_is_read_with_its_artifacts_and_newest_messages() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        more = [
            Received(Message(message_id=str(n), role=Role.USER, parts=(TextPart(text=str(n)),)))
            for n in range(150)
        ]
        await world.act(lease, status(WORKING), chunk("x"), *more)
        task = await perform(world, GetTask(task_id=lease.task_id))
        assert [said.text for said in task.history] == [str(number) for number in range(50, 150)]
        assert [artifact.artifact_id for artifact in task.artifacts] == ["a"]
        assert len((await perform(world, GetTask(task_id=lease.task_id, history_length=2))).history) == 2
        assert (await perform(world, GetTask(task_id=lease.task_id, history_length=0))).history == ()

    play(scenario())


@pytest.mark.parametrize("kind", [GetTask, CancelTask])
def test_a_task_that_is_missing_and_one_of_somebody_else_cannot_be_told_apart(kind: type[Any]) -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        with pytest.raises(TaskNotFound) as missing:
            await perform(world, kind(task_id="unknown"))
        for scope in OTHERS:
            with pytest.raises(TaskNotFound) as foreign:
                await perform(world, kind(task_id=lease.task_id), scope)
            assert foreign.value.message == missing.value.message
            assert foreign.value.metadata.keys() == missing.value.metadata.keys()
        assert world.engine.stopped == []

    play(scenario())


def test_a_listing_of_another_caller_or_other_filters_does_not_take_the_token() -> None:
    async def scenario() -> None:
        world = World()
        await accepted(world)
        for filters in (
            Filters(SCOPE, "c", None, None),
            *(Filters(scope, None, None, None) for scope in OTHERS),
        ):
            cursor = Cursor(1, "t", filters.fingerprint())
            with pytest.raises(InvalidParams) as refusal:
                await perform(world, ListTasks(cursor=cursor))
            assert refusal.value.violations[0].field == "pageToken"
        own = Cursor(1, "t", Filters(SCOPE, None, None, None).fingerprint())
        assert isinstance(await perform(world, ListTasks(cursor=own)), TaskPage)

    play(scenario())


def test_a_listing_asks_the_store_for_what_the_caller_asked() -> None:
    async def scenario() -> None:
        world = World()
        for number in range(3):
            await accepted(world, str(number))
        page = await perform(world, ListTasks(page_size=2, history_length=5, include_artifacts=True))
        assert (len(page.tasks), page.page_size, page.has_more) == (2, 2, True)
        assert all(task.artifacts == () and len(task.history) == 1 for task in page.tasks)
        bare = await perform(world, ListTasks())
        assert all(task.artifacts is None and task.history == () for task in bare.tasks)

    play(scenario())


def test_a_canceled_task_is_canceled_for_ever_and_its_handler_stopped() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(WORKING))
        task = await perform(world, CancelTask(task_id=lease.task_id))
        assert task.status.state is TaskState.CANCELED
        assert world.engine.stopped == [lease.task_id]
        with pytest.raises(TaskNotCancelable):
            await perform(world, CancelTask(task_id=lease.task_id))
        assert world.engine.stopped == [lease.task_id]

    play(scenario())


def test_a_finished_task_cannot_be_canceled() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(COMPLETED))
        with pytest.raises(TaskNotCancelable):
            await perform(world, CancelTask(task_id=lease.task_id))
        assert world.engine.stopped == []

    play(scenario())


@pytest.mark.parametrize(
    ("operation", "refusal"),
    [
        (Operation.CREATE_PUSH_CONFIG, PushNotificationNotSupported),
        (Operation.GET_PUSH_CONFIG, PushNotificationNotSupported),
        (Operation.LIST_PUSH_CONFIGS, PushNotificationNotSupported),
        (Operation.DELETE_PUSH_CONFIG, PushNotificationNotSupported),
        (Operation.GET_EXTENDED_CARD, UnsupportedOperation),
    ],
)
def test_a_capability_that_the_card_does_not_declare_is_refused_anew_each_time(
    operation: Operation, refusal: type[DragomanError]
) -> None:
    raised = []
    for _ in range(2):
        with pytest.raises(refusal) as caught:
            check_capability(AgentSettings(), operation)
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert type(raised[0]) is refusal


def test_an_extended_card_that_is_not_declared_is_refused() -> None:
    async def scenario() -> None:
        with pytest.raises(UnsupportedOperation):
            await perform(World(), GetExtendedCard())

    play(scenario())
