"""How a handler ends that is parked: nothing swallows it, nothing of it goes on, and it is never there twice."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.engines import agent_loop
from dragoman.model import Received, StatusChange, Task, TaskState
from dragoman.model.errors import TaskNotCancelable, UnsupportedOperation
from tests.contract.rooms import NOTHING, EngineRoom, eventually, said, state, texts

S = TaskState
HOUR = 3_600_000
DAY = 24 * HOUR


def agent_of(work: Callable[..., Any], **settings: Any) -> Agent:
    agent = Agent(id="worker", **settings)
    agent.handler(work)
    return agent


async def asked(room: EngineRoom, agent: Agent, text: str = "Hello") -> Task:
    """Send a message that is answered with a question."""
    task = await room.send(agent, text)
    assert isinstance(task, Task)
    assert state(task).is_interrupted
    return task


def states(events: tuple[Any, ...]) -> list[TaskState | None]:
    return [change.state for change in said(events) if isinstance(change, StatusChange | Received)]


@asynccontextmanager
async def connection(log: list[str]) -> AsyncIterator[None]:
    log.append("open")
    try:
        yield
    finally:
        log.append("closed")


async def test_what_an_async_handler_has_open_is_closed(room: EngineRoom) -> None:
    log: list[str] = []

    async def work(run: Run) -> str:
        async with connection(log):
            try:
                answer = await run.ask("Which one?")
            except Exception:
                log.append("taken for an error")
                raise
            finally:
                log.append(f"finally, cancelled: {run.cancelled}")
            return answer.text

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(lambda: room.held() == NOTHING, what="the handler ended")
    assert log == ["open", "finally, cancelled: False", "closed"]
    assert texts(await room.answer(agent, task.id, "this")) == ["this"]
    assert log == ["open", "finally, cancelled: False", "closed"] * 2


@pytest.mark.parametrize("kind", ["async generator", "thread", "generator in a thread"])
async def test_what_a_handler_of_any_kind_has_open_is_closed(room: EngineRoom, kind: str) -> None:
    log: list[str] = []

    async def work(run: Run) -> AsyncIterator[str]:
        try:
            yield (await run.ask("Which one?")).text
        except Exception:  # noqa: BLE001  # as careless handlers do
            log.append("taken for an error")
        finally:
            log.append("closed")

    def work_in_thread(run: BlockingRun) -> str:
        try:
            return run.ask("Which one?").text
        except Exception:
            log.append("taken for an error")
            raise
        finally:
            log.append("closed")

    def work_and_yield(run: BlockingRun) -> Iterator[str]:
        try:
            yield run.ask("Which one?").text
        except Exception:  # noqa: BLE001  # as careless handlers do
            log.append("taken for an error")
        finally:
            log.append("closed")

    agent = agent_of({"async generator": work, "thread": work_in_thread}.get(kind, work_and_yield))
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(lambda: room.held() == NOTHING, what="the handler ended")
    assert log == ["closed"]
    assert texts(await room.answer(agent, task.id, "this")) == ["this"]
    assert log == ["closed", "closed"]


@pytest.mark.parametrize("kind", ["async", "async generator", "thread", "generator in a thread"])
async def test_a_handler_that_swallows_everything_still_does_nothing_more(
    room: EngineRoom, kind: str
) -> None:
    swallowed: list[str] = []

    def swallow(error: BaseException) -> None:
        swallowed.append(type(error).__name__)

    async def work(run: Run) -> str:
        for act in (lambda: run.ask("Which one?"), lambda: run.working("late"), lambda: run.artifact("late")):
            try:
                answer = await act()
            except BaseException as error:  # noqa: BLE001  # as careless handlers do
                swallow(error)
            else:
                return getattr(answer, "text", "")
        return "late"

    async def work_and_yield(run: Run) -> AsyncIterator[str]:
        try:
            answer = (await run.ask("Which one?")).text
        except BaseException as error:  # noqa: BLE001  # as careless handlers do
            swallow(error)
            answer = "late"
        yield answer

    def work_in_thread(run: BlockingRun) -> str:
        for act in (
            lambda: run.ask("Which one?"),
            lambda: run.step("late", lambda: swallowed.append("late")),
        ):
            try:
                return act().text
            except BaseException as error:  # noqa: BLE001  # as careless handlers do
                swallow(error)
        return "late"

    def yield_in_thread(run: BlockingRun) -> Iterator[str]:
        try:
            answer = run.ask("Which one?").text
        except BaseException as error:  # noqa: BLE001  # as careless handlers do
            swallow(error)
            answer = "late"
        yield answer

    kinds = {"async": work, "async generator": work_and_yield, "thread": work_in_thread}
    agent = agent_of(kinds.get(kind, yield_in_thread))
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(lambda: room.held() == NOTHING, what="the handler ended")
    assert set(swallowed) == {"Parked"}
    assert states(await room.events(task.id)) == [S.INPUT_REQUIRED]
    task = await room.answer(agent, task.id, "this")
    assert (state(task), texts(task)) == (S.COMPLETED, ["this"])


async def test_an_error_on_the_way_out_leaves_the_question_standing(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        try:
            return (await run.ask("Which one?")).text
        finally:
            if len(run.history) == 1:
                raise ConnectionResetError("could not say good-bye")

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(lambda: room.held() == NOTHING, what="the handler ended")
    assert state(await room.read(agent, task.id)) is S.INPUT_REQUIRED
    assert texts(await room.answer(agent, task.id, "this")) == ["this"]


async def ask_in_group(run: Run) -> str:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(run.ask("Which one?"))
        group.create_task(asyncio.sleep(3600 if len(run.history) == 1 else 0))
    return (await asking).text


async def ask_with_timeout(run: Run) -> str:
    async with asyncio.timeout(30):
        return (await run.ask("Which one?")).text


async def ask_and_wait(run: Run) -> str:
    return (await asyncio.wait_for(run.ask("Which one?"), 30)).text


async def ask_in_task(run: Run) -> str:
    return (await asyncio.ensure_future(run.ask("Which one?"))).text


async def ask_beside(run: Run) -> str:
    answer, _ = await asyncio.gather(run.ask("Which one?"), asyncio.sleep(0.01))
    return answer.text


@pytest.mark.parametrize(
    "work",
    [ask_in_group, ask_with_timeout, ask_and_wait, ask_in_task, ask_beside],
    ids=lambda work: work.__name__,
)
async def test_a_question_may_be_asked_inside_of_whatever_asyncio_has(
    room: EngineRoom, work: Callable[..., Any]
) -> None:
    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(lambda: room.held() == NOTHING, what="the handler ended")
    task = await room.answer(agent, task.id, "this")
    assert (state(task), texts(task)) == (S.COMPLETED, ["this"])


@pytest.mark.parametrize("kind", ["gather", "group", "a timeout that has passed"])
async def test_questions_at_once_are_asked_one_after_the_other(room: EngineRoom, kind: str) -> None:
    async def work(run: Run) -> str:
        if kind == "gather":
            first, second = await asyncio.gather(run.ask("First?"), run.ask("Second?"))
        elif kind == "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run.ask(text)) for text in ("First?", "Second?")]
            first, second = (task.result() for task in tasks)
        else:
            try:
                async with asyncio.timeout(0):
                    first = await run.ask("First?")
            except TimeoutError:
                # Too late: it is being asked. Nothing else can be done before it is answered.
                first = await run.ask("Never?")
            second = await run.ask("Second?")
        return f"{first.text}, {second.text}"

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    for question, answer in (("First?", "1"), ("Second?", "2")):
        assert task.status.message is not None
        assert task.status.message.text == question
        task = await room.answer(agent, task.id, answer)
    assert (state(task), texts(task)) == (S.COMPLETED, ["1, 2"])


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_an_answer_waits_until_the_handler_that_asked_has_ended(room: EngineRoom, kind: str) -> None:
    """Cleaning up may take a while. The run is entered once at a time all the same."""
    inside: list[str] = []
    twice: list[str] = []
    cleaning, door = threading.Event(), threading.Event()

    def enter(run: Run | BlockingRun) -> None:
        if run.id in inside:
            twice.append(run.id)
        inside.append(run.id)

    def clean_up(run: Run | BlockingRun) -> None:
        if run.text == "Hello" and len(run.history) == 1:
            cleaning.set()
            door.wait(20)
        inside.remove(run.id)

    async def work(run: Run) -> str:
        enter(run)
        try:
            return (await run.ask("Which one?")).text
        finally:
            await asyncio.to_thread(clean_up, run)

    def work_in_thread(run: BlockingRun) -> str:
        enter(run)
        try:
            return run.ask("Which one?").text
        finally:
            clean_up(run)

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    try:
        task = await asked(room, agent)
        await eventually(cleaning.is_set, what="the handler cleans up")
        answering = asyncio.ensure_future(room.answer(agent, task.id, "this"))
        while state(await room.read(agent, task.id)) is not S.WORKING:
            await asyncio.sleep(0.005)
        # Another run gets through, so the answered one has had its chance as well.
        other = await asked(room, agent, "another")
        assert texts(await room.answer(agent, other.id, "that")) == ["that"]
        assert inside == [task.id]
        assert state(await room.read(agent, task.id)) is S.WORKING
    finally:
        door.set()
    task = await answering
    assert (state(task), texts(task)) == (S.COMPLETED, ["this"])
    assert twice == []
    await eventually(lambda: room.held() == NOTHING, what="nothing is held")


@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.parametrize("answered", ["before", "after"])
async def test_a_parked_handler_that_does_not_end_is_abandoned_and_gives_its_place_up(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch, kind: str, answered: str
) -> None:
    monkeypatch.setattr(agent_loop, "GRACE", 0.3)
    door = threading.Event()

    async def deaf(run: Run) -> str:
        try:
            return (await run.ask("Which one?")).text
        except BaseException:
            while not door.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
            raise

    def deaf_in_thread(run: BlockingRun) -> str:
        try:
            return run.ask("Which one?").text
        except BaseException:
            door.wait(20)
            raise

    agent = agent_of(deaf if kind == "async" else deaf_in_thread, max_runs=1)
    await room.start(agent)
    try:
        task = await asked(room, agent)
        if answered == "after":
            await eventually(lambda: room.held().places == 0, what="the place is given up", seconds=3.0)
        task = await room.answer(agent, task.id, "this")
        assert (state(task), texts(task)) == (S.COMPLETED, ["this"])
        assert not door.is_set()
    finally:
        door.set()
    await eventually(lambda: room.held() == NOTHING, what="the abandoned handler ended")


async def test_parked_runs_take_no_place_from_others(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        return (await run.ask("Which one?")).text if run.text == "ask" else "done"

    agent = agent_of(work, max_runs=1)
    await room.start(agent)
    parked = [await asked(room, agent, "ask") for _ in range(30)]
    assert texts(await room.send(agent, "do")) == ["done"]
    await eventually(lambda: room.held() == NOTHING, what="nothing is held")
    answers = [room.answer(agent, task.id, f"{number}") for number, task in enumerate(parked)]
    for number, task in enumerate(await asyncio.gather(*answers)):
        assert texts(task) == [f"{number}"]


async def test_a_parked_run_is_canceled_at_once_and_takes_no_answer(room: EngineRoom) -> None:
    entered: list[int] = []

    async def work(run: Run) -> str:
        entered.append(len(run.history))
        return (await run.ask("Which one?")).text

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.cancel(agent, task.id)
    assert state(task) is S.CANCELED
    assert [turn.text for turn in task.history] == ["Hello", "Which one?"]
    with pytest.raises(UnsupportedOperation):
        await room.answer(agent, task.id, "too late")
    with pytest.raises(TaskNotCancelable):
        await room.cancel(agent, task.id)
    assert entered == [1]


@pytest.mark.parametrize("when", ["it cleans up", "it is answered as well", "it was entered again"])
async def test_a_cancel_reaches_a_handler_on_its_way_out_and_the_one_that_comes_after(
    room: EngineRoom, when: str
) -> None:
    entered, stopped, cleaning = [], [], threading.Event()

    async def work(run: Run) -> str:
        entered.append(len(run.history))
        try:
            answer = await run.ask("Which one?")
            await asyncio.sleep(3600)
            return answer.text
        except asyncio.CancelledError:
            stopped.append("at work")
            raise
        finally:
            if len(run.history) == 1 and when != "it was entered again":
                cleaning.set()
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    stopped.append("cleaning up")

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    if when != "it was entered again":
        await eventually(cleaning.is_set, what="the handler cleans up")
    answering = None
    if when != "it cleans up":
        answering = asyncio.ensure_future(room.answer(agent, task.id, "this"))
        while state(await room.read(agent, task.id)) is not S.WORKING:
            await asyncio.sleep(0.005)
    if when == "it was entered again":
        await eventually(lambda: entered == [1, 2], what="the handler is entered again")
    assert state(await room.cancel(agent, task.id)) is S.CANCELED
    if answering is not None:
        assert state(await answering) is S.CANCELED
    await eventually(lambda: room.held() == NOTHING, what="nothing is held", seconds=3.0)
    assert stopped == ["at work" if when == "it was entered again" else "cleaning up"]
    assert entered == ([1, 2] if when == "it was entered again" else [1])


async def test_a_look_for_stopped_runs_stops_no_run_that_was_answered_meanwhile(room: EngineRoom) -> None:
    """The lease of the handler that asked is good no more; that of the next one is."""
    cleaning, door = threading.Event(), asyncio.Event()

    async def work(run: Run) -> str:
        try:
            answer = await run.ask("Which one?")
        finally:
            if len(run.history) == 1:
                cleaning.set()
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    door.set()
        return answer.text

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    await eventually(cleaning.is_set, what="the handler cleans up")
    answering = asyncio.ensure_future(room.answer(agent, task.id, "this"))
    while state(await room.read(agent, task.id)) is not S.WORKING:
        await asyncio.sleep(0.005)
    room.look_again()
    task = await answering
    assert (state(task), texts(task)) == (S.COMPLETED, ["this"])
    assert door.is_set()


async def test_an_answer_after_three_days_and_two_restarts_is_an_answer(room: EngineRoom) -> None:
    deadlines: list[float] = []

    async def work(run: Run) -> str:
        deadlines.append(run.deadline)
        await run.working("asking")
        return (await run.ask("Which one?")).text

    agent = agent_of(work, deadline=60.0)
    await room.start(agent)
    task = await asked(room, agent)
    for days in (1, 2):
        room.shift_clock(days * DAY)
        await room.crash()
        await room.start(agent)
        assert room.held() == NOTHING
    task = await room.answer(agent, task.id, "this")
    assert (state(task), texts(task)) == (S.COMPLETED, ["this"])
    assert 3 * 86400 <= deadlines[1] - deadlines[0] < 3 * 86400 + 60


async def test_the_time_at_work_counts_for_the_deadline_also_after_an_answer(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        await run.ask("Which one?")
        await asyncio.sleep(3600)
        return "never"

    agent = agent_of(work, deadline=60.0)
    await room.start(agent)
    task = await asked(room, agent)
    room.shift_clock(DAY)
    answering = asyncio.ensure_future(room.answer(agent, task.id, "this"))
    while state(await room.read(agent, task.id)) is not S.WORKING:
        await asyncio.sleep(0.005)
    room.shift_clock(61_000)
    task = await answering
    assert state(task) is S.FAILED
    assert task.status.message is not None
    assert "deadline" in task.status.message.text


async def test_a_run_that_nobody_answers_in_time_fails_with_the_reason(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        return (await run.require_auth("Sign in.")).text

    agent = agent_of(work, parked_deadline=3600.0)
    await room.start(agent)
    task = await asked(room, agent)
    room.shift_clock(HOUR - 60_000)
    in_time = await asked(room, agent)
    room.shift_clock(120_000)
    task = await room.ended(agent, task.id)
    assert state(task) is S.FAILED
    assert task.status.message is not None
    assert "Nobody answered" in task.status.message.text
    assert [turn.text for turn in task.history] == ["Hello", "Sign in."]
    with pytest.raises(UnsupportedOperation):
        await room.answer(agent, task.id, "too late")
    assert texts(await room.answer(agent, in_time.id, "in time")) == ["in time"]


async def test_a_message_to_a_run_at_work_joins_the_history_and_answers_nothing(room: EngineRoom) -> None:
    door = asyncio.Event()
    working = threading.Event()

    async def work(run: Run) -> str:
        working.set()
        while not door.is_set():
            await asyncio.sleep(0.005)
        answer = await run.ask("Which one?")
        return f"{answer.text}, {[turn.text for turn in run.history]}"

    agent = agent_of(work)
    await room.start(agent)
    task_id = await room.begin(agent)
    await eventually(working.is_set, what="the handler is at work")
    early = asyncio.ensure_future(room.answer(agent, task_id, "too early"))
    while len((await room.read(agent, task_id)).history) < 2:
        await asyncio.sleep(0.005)
    door.set()
    task = await early
    assert state(task) is S.INPUT_REQUIRED
    task = await room.answer(agent, task_id, "this")
    assert texts(task) == ["this, ['Hello', 'too early', 'this']"]
    assert [turn.text for turn in task.history] == ["Hello", "too early", "Which one?", "this"]


async def test_of_two_answers_at_once_one_is_taken_and_the_other_is_kept(room: EngineRoom) -> None:
    entered: list[int] = []

    async def work(run: Run) -> str:
        entered.append(len(run.history))
        first = await run.ask("First?")
        second = await run.ask("Second?")
        return f"{first.text}, {second.text}"

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    tasks = await asyncio.gather(*(room.answer(agent, task.id, text) for text in ("this", "that")))
    task = tasks[0]
    if state(task) is S.INPUT_REQUIRED:
        task = await room.answer(agent, task.id, "third")
    assert state(task) is S.COMPLETED
    heard = [turn.text for turn in task.history if turn.text not in ("First?", "Second?")]
    assert sorted(heard) in (sorted(["Hello", "this", "that", "third"]), sorted(["Hello", "this", "that"]))
    answers = texts(task)[0].split(", ")
    assert answers[0] in ("this", "that")
    assert answers[1] in ("this", "that", "third")
    assert answers[0] != answers[1]
    assert len(entered) == 3
