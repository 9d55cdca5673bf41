"""Stopping handlers, and keeping them to their number: cancel, deadline, grace, concurrency."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.engines import agent_loop
from dragoman.model import Message, Task, TaskState
from dragoman.model.errors import Fenced
from tests.contract.rooms import EngineRoom, eventually, state, texts

S = TaskState


class Doors:
    """What test and handlers tell each other, across threads."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.stopped: list[str] = []
        self.open = threading.Event()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def enter(self, name: str) -> None:
        with self._lock:
            self.entered.append(name)
            self.running += 1
            self.most = max(self.most, self.running)

    def leave(self) -> None:
        with self._lock:
            self.running -= 1

    async def wait(self) -> None:
        """Wait, on an agent's loop, until the doors are open."""
        while not self.open.is_set():
            await asyncio.sleep(0.005)


@pytest.fixture
def doors() -> Iterator[Doors]:
    """Doors that are open in the end, so that no handler stays behind them."""
    made = Doors()
    yield made
    made.open.set()


async def test_cancel_stops_an_async_handler_at_once(room: EngineRoom, doors: Doors) -> None:
    agent = Agent(id="worker")

    @agent.handler
    async def work(run: Run) -> None:
        doors.enter(run.text)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert run.cancelled
            doors.stopped.append(run.text)
            raise

    await room.start(agent)
    task_id = await room.begin(agent, "endless")
    await eventually(lambda: doors.entered, what="the handler runs")
    task = await room.cancel(agent, task_id)
    assert state(task) is S.CANCELED
    await eventually(lambda: doors.stopped == ["endless"], what="the handler is cancelled", seconds=2.0)
    assert [event.state for event in await room.events(task_id)][-1] is S.CANCELED


async def test_cancel_tells_a_handler_in_a_thread(room: EngineRoom, doors: Doors) -> None:
    agent = Agent(id="worker")
    refused: list[BaseException] = []

    @agent.handler
    def work(run: BlockingRun) -> str:
        assert not run.cancelled
        doors.enter(run.text)
        assert run.wait_cancelled(20)
        assert run.cancelled
        doors.stopped.append(run.text)
        try:
            run.working("too late")
        except Fenced as error:
            refused.append(error)
        return "too late"

    await room.start(agent)
    task_id = await room.begin(agent, "endless")
    await eventually(lambda: doors.entered, what="the handler runs")
    await room.cancel(agent, task_id)
    await eventually(lambda: refused, what="the handler learns of it", seconds=2.0)
    task = await room.read(agent, task_id)
    assert (state(task), texts(task)) == (S.CANCELED, [])


async def test_what_a_stopped_handler_still_does_reaches_nobody(room: EngineRoom, doors: Doors) -> None:
    agent = Agent(id="worker")

    @agent.handler
    async def work(run: Run) -> str:
        doors.enter(run.text)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            for act in (run.working("late"), run.artifact("late"), run.complete()):
                with pytest.raises(Fenced):
                    await act
            doors.stopped.append(run.text)
        return "swallowed the cancellation"

    await room.start(agent)
    task_id = await room.begin(agent)
    await eventually(lambda: doors.entered, what="the handler runs")
    await room.cancel(agent, task_id)
    await eventually(lambda: doors.stopped, what="the handler ended", seconds=2.0)
    task = await room.read(agent, task_id)
    assert (state(task), texts(task)) == (S.CANCELED, [])


async def test_a_run_that_waits_for_its_turn_is_never_entered_once_canceled(
    room: EngineRoom, doors: Doors
) -> None:
    agent = Agent(id="worker", max_runs=1)

    @agent.handler
    async def work(run: Run) -> None:
        doors.enter(run.text)
        await doors.wait()

    await room.start(agent)
    ids = [await room.begin(agent, text) for text in ("first", "second", "third")]
    await eventually(lambda: doors.entered == ["first"], what="the first handler runs")
    await room.cancel(agent, ids[1])
    doors.open.set()
    for task_id, ending in zip(ids, (S.COMPLETED, S.CANCELED, S.COMPLETED), strict=True):
        assert state(await room.ended(agent, task_id)) is ending
    assert doors.entered == ["first", "third"]


@pytest.mark.parametrize("kind", ["async", "thread", "generator in a thread"])
async def test_a_stopped_handler_that_goes_on_is_abandoned_and_gives_its_place_up(
    room: EngineRoom, doors: Doors, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(agent_loop, "GRACE", 0.2)
    agent = Agent(id="worker", max_runs=1)

    async def deaf(run: Run) -> str:
        if run.text == "deaf":
            doors.enter(run.text)
            while not doors.open.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
        return "done"

    def deaf_in_thread(run: BlockingRun) -> str:
        if run.text == "deaf":
            doors.enter(run.text)
            doors.open.wait(20)
        return "done"

    def deaf_generator(run: BlockingRun) -> Iterator[str]:
        yield deaf_in_thread(run)

    agent.handler({"async": deaf, "thread": deaf_in_thread}.get(kind, deaf_generator))
    await room.start(agent)
    task_id = await room.begin(agent, "deaf")
    await eventually(lambda: doors.entered, what="the handler runs")
    next_id = await room.begin(agent, "next")
    await room.cancel(agent, task_id)
    task = await room.ended(agent, next_id, seconds=4.0)
    assert (state(task), texts(task)) == (S.COMPLETED, ["done"])
    assert not doors.open.is_set()


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_no_more_runs_than_allowed_go_on_at_once_and_none_is_left_out(
    room: EngineRoom, doors: Doors, kind: str
) -> None:
    agent = Agent(id="worker", max_runs=3)

    async def work(run: Run) -> str:
        doors.enter(run.text)
        await doors.wait()
        doors.leave()
        return run.text

    def work_in_thread(run: BlockingRun) -> str:
        doors.enter(run.text)
        doors.open.wait(20)
        doors.leave()
        return run.text

    agent.handler(work if kind == "async" else work_in_thread)
    await room.start(agent)
    ids = [await room.begin(agent, f"{number}") for number in range(12)]
    await eventually(lambda: doors.running == 3, what="three handlers run")
    doors.open.set()
    for number, task_id in enumerate(ids):
        assert texts(await room.ended(agent, task_id)) == [f"{number}"]
    assert doors.most == 3
    assert doors.entered[3:] == [f"{number}" for number in range(3, 12)] or kind == "thread"
    assert sorted(doors.entered, key=int) == [f"{number}" for number in range(12)]


async def test_one_agent_does_not_wait_for_another(room: EngineRoom, doors: Doors) -> None:
    stuck, other = Agent(id="stuck", max_runs=1), Agent(id="other", max_runs=1)

    @stuck.handler
    async def block(run: Run) -> None:
        doors.enter("stuck")
        doors.open.wait(20)

    @other.handler
    async def answer(run: Run) -> str:
        return "at once"

    await room.start(stuck, other)
    stuck_id = await room.begin(stuck)
    await eventually(lambda: doors.entered, what="the blocking handler runs")
    assert texts(await room.send(other, "Hello")) == ["at once"]
    canceled = await room.cancel(stuck, stuck_id)
    assert state(canceled) is S.CANCELED
    assert texts(await room.send(other, "And again")) == ["at once"]


async def test_a_run_past_its_deadline_is_failed_and_its_handler_stopped(
    room: EngineRoom, doors: Doors
) -> None:
    agent = Agent(id="worker", deadline=0.4)

    @agent.handler
    async def work(run: Run) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            doors.stopped.append(run.text)
            raise

    await room.start(agent)
    task = await room.send(agent, "endless")
    assert isinstance(task, Task)
    assert state(task) is S.FAILED
    assert task.status.message is not None
    assert "deadline" in task.status.message.text
    await eventually(lambda: doors.stopped, what="the handler is stopped", seconds=2.0)


@pytest.mark.parametrize("replies", ["task", "either"])
async def test_a_run_that_does_nothing_for_a_while_shows_as_a_working_task(
    room: EngineRoom, doors: Doors, replies: str
) -> None:
    agent = Agent(id="worker", replies=replies)

    @agent.handler
    async def work(run: Run) -> None:
        await doors.wait()
        await run.reply("at last")

    await room.start(agent)
    task_id = await room.begin(agent)
    while state(await room.read(agent, task_id)) is not S.WORKING:
        await asyncio.sleep(0.005)
    doors.open.set()
    task = await room.ended(agent, task_id)
    assert task.status.message is not None
    assert (state(task), task.status.message.text) == (S.COMPLETED, "at last")


async def test_a_message_agent_may_take_its_time_and_never_shows(room: EngineRoom, doors: Doors) -> None:
    agent = Agent(id="worker", replies="message")

    @agent.handler
    async def work(run: Run) -> str:
        doors.enter(run.task_id)
        await asyncio.sleep(0.5)
        return "at last"

    await room.start(agent)
    reply = await room.send(agent, "Hello")
    assert isinstance(reply, Message)
    assert reply.text == "at last"
    states = [event.state for event in await room.events(doors.entered[0])]
    assert states == [S.SUBMITTED, None]
