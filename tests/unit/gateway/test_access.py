"""What a caller may not see any more: reads, listings, sends and streams, and that cancelling is left."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec import structs

from dragoman.gateway import Answer, EventStream
from dragoman.gateway import access as access_module
from dragoman.gateway.access import Access
from dragoman.gateway.call import Call
from dragoman.gateway.ports import Lease
from dragoman.model import Principal, Task, TaskPage, TaskState, Used
from dragoman.model.errors import TaskNotFound
from dragoman.model.operation import CancelTask, GetTask, ListTasks, Operation, SubscribeToTask
from tests.unit.gateway.scripted import SCOPE, World, chunk, message, play, shown, status, told

S = TaskState
ME = Principal(SCOPE.tenant, SCOPE.principal)


class Granted:
    """Grants that a test takes away and gives back."""

    def __init__(self) -> None:
        self.give_back()

    def give_back(self) -> None:
        self.workspaces = {"lab"}
        self.sources = {"wiki", "crm"}

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        assert principal == ME
        return workspace in self.workspaces

    def may_use(self, principal: Principal, source: str) -> bool:
        assert principal == ME
        return source in self.sources


def take_workspace(grants: Granted) -> None:
    grants.workspaces.clear()


def take_source(grants: Granted) -> None:
    grants.sources.discard("wiki")


EITHER = pytest.mark.parametrize("take", [take_workspace, take_source])
Take = Callable[[Granted], None]


class Workspace(World):
    """A gateway for one caller of a workspace, whose runs work, use the source `wiki` and say so."""

    def __init__(self, heartbeat: float = 15.0) -> None:
        super().__init__(_work, heartbeat=heartbeat)
        self.grants = Granted()

    @property
    def caller(self) -> Call:
        return structs.replace(self.call(), access=Access(self.grants, ME, "lab"))

    async def sent(self, *, at_once: bool = True, message_id: str = "m") -> Task:
        request = message(return_immediately=at_once, message_id=message_id)
        answer = await self.gateway.perform(self.caller, Operation.SEND_MESSAGE, request)
        assert isinstance(answer, Answer)
        assert isinstance(answer.result, Task)
        return answer.result

    async def begun(self) -> Task:
        """Have a message accepted whose run has told of its work and waits for its end."""
        task = await self.sent()
        await self.settle()
        return task

    async def read(self, task: Task) -> Task:
        found = await self.gateway.perform(self.caller, Operation.GET_TASK, GetTask(task_id=task.id))
        assert isinstance(found, Task)
        return found

    async def cancelled(self, task: Task) -> Task:
        found = await self.gateway.perform(self.caller, Operation.CANCEL_TASK, CancelTask(task_id=task.id))
        assert isinstance(found, Task)
        return found

    async def subscribed(self, task: Task) -> EventStream:
        request = SubscribeToTask(task_id=task.id)
        stream = await self.gateway.perform(self.caller, Operation.SUBSCRIBE_TO_TASK, request)
        assert isinstance(stream, EventStream)
        return stream


async def _work(world: World, lease: Lease) -> None:
    await world.act(lease, Used("wiki"), status(S.WORKING, "reading the wiki"))


def receipt(task: Task) -> Task:
    """All that may be told of a task whose content is withheld."""
    return Task(id=task.id, context_id=task.context_id, status=task.status, artifacts=None)


def test_a_caller_with_all_grants_sees_everything() -> None:
    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        found = await world.read(task)
        assert found.status.message is not None
        assert found.status.message.text == "reading the wiki"
        page = await world.gateway.perform(world.caller, Operation.LIST_TASKS, ListTasks())
        assert isinstance(page, TaskPage)
        assert [one.id for one in page.tasks] == [task.id]

    play(scenario())


@EITHER
def test_what_is_withheld_is_not_there_for_reads_and_subscriptions(take: Take) -> None:
    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        take(world.grants)
        for read in (world.read, world.subscribed):
            with pytest.raises(TaskNotFound) as missing:
                await read(task)
            with pytest.raises(TaskNotFound) as unknown:
                await read(structs.replace(task, id="nobody's"))
            assert missing.value.message == unknown.value.message
        assert world.hub.count() == 0
        world.grants.give_back()
        assert (await world.read(task)).history

    play(scenario())


def test_without_the_workspace_nothing_is_listed() -> None:
    async def scenario() -> None:
        world = Workspace()
        await world.begun()
        take_workspace(world.grants)
        page = await world.gateway.perform(world.caller, Operation.LIST_TASKS, ListTasks())
        assert isinstance(page, TaskPage)
        assert (page.tasks, page.total, page.next_token) == ((), 0, "")

    play(scenario())


@EITHER
def test_a_cancel_of_what_is_withheld_works_and_tells_the_state_alone(take: Take) -> None:
    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        take(world.grants)
        found = await world.cancelled(task)
        assert found.status.state is S.CANCELED
        assert found == receipt(found)
        assert world.engine.stopped == [task.id]

    play(scenario())


@EITHER
def test_a_message_that_is_sent_again_tells_only_the_state_of_what_is_withheld(take: Take) -> None:
    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        take(world.grants)
        again = await world.sent()
        assert again == receipt(again)
        assert (again.id, again.status.state) == (task.id, S.WORKING)
        stream = await world.gateway.perform(
            world.caller, Operation.SEND_STREAMING_MESSAGE, message(message_id="m")
        )
        assert isinstance(stream, EventStream)
        (item,) = [item async for item in stream.items]
        assert item is not None
        assert item.value == again
        assert item.last

    play(scenario())


def test_a_wait_tells_only_the_state_of_what_came_to_be_withheld_meanwhile() -> None:
    async def scenario() -> None:
        world = Workspace()
        waiting = asyncio.ensure_future(world.sent(at_once=False))
        while not world.store.logs:
            await asyncio.sleep(0)
        await world.settle()
        take_source(world.grants)
        lease = Lease(next(iter(world.store.logs)), 1)
        await world.act(lease, chunk("from the wiki"), status(S.COMPLETED))
        found = await waiting
        assert found == receipt(found)
        assert found.status.state is S.COMPLETED

    play(scenario())


@EITHER
def test_a_live_stream_ends_at_once_where_something_is_to_be_shown_that_is_withheld(take: Take) -> None:
    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        stream = await world.subscribed(task)
        told_so_far = []
        async for item in stream.items:
            told_so_far.append(shown(item))
            if len(told_so_far) == 1:
                take(world.grants)
                await world.act(Lease(task.id, 1), chunk("from the wiki"))
        assert told_so_far == ["3 task WORKING"]
        assert world.hub.count() == 0

    play(scenario())


@EITHER
def test_a_quiet_stream_ends_too(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.subscribe.LOOK", 0.02)
    assert access_module.LOOK <= 4.0, "with the 1 s in which a change is noticed, no more than 5"

    async def scenario() -> None:
        world = Workspace()
        stream = await world.subscribed(await world.begun())
        reading = asyncio.ensure_future(told(stream))
        await asyncio.sleep(0.1)
        assert not reading.done()
        take(world.grants)
        assert await reading == ["3 task WORKING"], "and nothing else, however often it looked"

    play(scenario())


def test_looking_again_is_not_shown_and_life_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.subscribe.LOOK", 0.02)

    async def scenario() -> None:
        world = Workspace(heartbeat=0.2)
        task = await world.begun()
        stream = await world.subscribed(task)
        reading = asyncio.ensure_future(told(stream))
        await asyncio.sleep(0.7)
        await world.act(Lease(task.id, 1), status(S.COMPLETED))
        first, *quiet, last = await reading
        assert (first, last) == ("3 task WORKING", "4 COMPLETED")
        assert 2 <= len(quiet) <= 4, "one each 0.2 s, although it was looked at each 0.02 s"
        assert set(quiet) == {"nothing"}

    play(scenario())


def test_a_stream_ends_when_its_run_uses_a_source_that_the_caller_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.gateway.subscribe.LOOK", 0.02)

    async def scenario() -> None:
        world = Workspace()
        task = await world.begun()
        stream = await world.subscribed(task)
        reading = asyncio.ensure_future(told(stream))
        await asyncio.sleep(0)
        await world.act(Lease(task.id, 1), Used("payroll"), status(S.WORKING, "salaries"))
        assert await reading == ["3 task WORKING"]

    play(scenario())
