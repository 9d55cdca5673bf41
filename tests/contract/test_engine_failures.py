"""Whatever a handler raises ends its own run, says nothing of its cause, and leaves the agent able to work."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model import Task, TaskState
from tests.contract.rooms import EngineRoom, state, texts

S = TaskState
SECRET = "secret-4711 in somewhere/else.py"

# A handler may raise anything; what Python itself treats in a special way is the more likely to slip through.
RAISED: list[Callable[[], BaseException]] = [
    lambda: RuntimeError(SECRET),
    lambda: KeyError(SECRET),
    lambda: TimeoutError(SECRET),
    lambda: StopIteration(SECRET),
    lambda: StopAsyncIteration(SECRET),
    lambda: asyncio.CancelledError(SECRET),
    lambda: SystemExit(SECRET),
    lambda: GeneratorExit(SECRET),
    lambda: ExceptionGroup(SECRET, [ValueError(SECRET)]),
]


def raising_coroutine(error: Callable[[], BaseException]) -> Callable[..., Any]:
    async def handle(run: Run) -> str:
        if run.text == "crash":
            raise error()
        return "fine"

    return handle


def raising_function(error: Callable[[], BaseException]) -> Callable[..., Any]:
    def handle(run: BlockingRun) -> str:
        if run.text == "crash":
            raise error()
        return "fine"

    return handle


@pytest.mark.parametrize("make", [raising_coroutine, raising_function], ids=["async", "thread"])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error()).__name__)
async def test_an_exception_of_any_kind_fails_its_run_and_no_other(
    room: EngineRoom, make: Callable[..., Any], error: Callable[[], BaseException]
) -> None:
    agent = Agent(id="worker")
    agent.handler(make(error))
    await room.start(agent)
    task_id = await room.begin(agent, "crash")
    task = await room.ended(agent, task_id, seconds=2.0)
    assert state(task) is S.FAILED
    assert SECRET not in await stored(room, task_id)
    assert texts(await room.send(agent, "still there?")) == ["fine"]


async def stored(room: EngineRoom, task_id: str) -> str:
    """All that was stored of a task, as text."""
    return msgspec.json.encode(await room.events(task_id)).decode()


def broken_kinds() -> list[Callable[..., Any]]:
    async def after_an_act(run: Run) -> None:
        await run.working("so far so good")
        await run.artifact("half", last=False)
        raise RuntimeError(SECRET)

    async def async_generator(run: Run) -> AsyncIterator[str]:
        yield "half"
        raise RuntimeError(SECRET)

    def generator(run: BlockingRun) -> Iterator[str]:
        yield "half"
        raise RuntimeError(SECRET)

    async def no_content(run: Run) -> object:
        return object()

    async def not_json(run: Run) -> object:
        return {"nan": float("nan"), SECRET: 1}

    async def lone_surrogate(run: Run) -> str:
        return "\ud800" + SECRET

    async def in_a_step(run: Run) -> None:
        def perform() -> str:
            raise RuntimeError(SECRET)

        await run.step("pay", perform)

    async def unserializable_step(run: Run) -> None:
        await run.step("pay", lambda: {SECRET: object()})

    results = [no_content, not_json, lone_surrogate]
    return [after_an_act, async_generator, generator, *results, in_a_step, unserializable_step]


@pytest.mark.parametrize("handler", broken_kinds(), ids=lambda handler: handler.__name__)
async def test_a_run_that_breaks_off_fails_without_a_word_of_the_cause(
    room: EngineRoom, handler: Callable[..., Any]
) -> None:
    agent = Agent(id="worker")
    agent.handler(handler)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert isinstance(task, Task)
    assert state(task) is S.FAILED
    assert task.status.message is not None
    assert task.status.message.text == "The agent failed while it handled the message."
    assert SECRET not in await stored(room, task.id)


async def test_a_step_that_raised_can_be_caught_and_tried_again(room: EngineRoom) -> None:
    tries: list[int] = []

    async def work(run: Run) -> str:
        def perform() -> int:
            tries.append(1)
            if len(tries) < 3:
                raise ConnectionError
            return len(tries)

        while True:
            try:
                return f"tried {await run.step('pay', perform)}"
            except ConnectionError:
                continue

    agent = Agent(id="worker")
    agent.handler(work)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert (state(task), texts(task)) == (S.COMPLETED, ["tried 3"])


async def test_a_handler_that_cancels_its_own_inner_task_is_not_stopped(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        inner.cancel()
        try:
            await inner
        except asyncio.CancelledError:
            return "went on"
        return "inner was not cancelled"

    agent = Agent(id="worker")
    agent.handler(work)
    await room.start(agent)
    assert texts(await room.send(agent, "go")) == ["went on"]


def cancelling_kinds() -> list[Callable[..., Any]]:
    async def its_own_task(run: Run) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)
        return "went on"

    async def every_task(run: Run) -> str:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(60)
        return "went on"

    async def its_group(run: Run) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(every_task(run))
        return "went on"

    return [its_own_task, every_task, its_group]


@pytest.mark.parametrize("handler", cancelling_kinds(), ids=lambda handler: handler.__name__)
async def test_a_run_that_something_of_a_handler_cancelled_fails_and_waits_for_nobody(
    room: EngineRoom, handler: Callable[..., Any]
) -> None:
    """Nobody but the server stops a run: whoever else cancels it has made it fail, and its caller is told."""
    agent = Agent(id="worker")

    async def work(run: Run) -> str:
        if run.text == "cancel":
            return str(await handler(run))
        await asyncio.sleep(60 if run.text == "bystander" else 0)
        return "fine"

    agent.handler(work)
    await room.start(agent)
    others = [await room.begin(agent, "bystander")] if handler.__name__ != "its_own_task" else []
    for task_id in (await room.begin(agent, "cancel"), *others):
        task = await room.ended(agent, task_id, seconds=2.0)
        assert state(task) is S.FAILED
        assert task.status.message is not None
        assert task.status.message.text == "The agent failed while it handled the message."
    assert texts(await room.send(agent, "still there?")) == ["fine"]


def ending_kinds() -> list[Callable[..., Any]]:
    def in_a_task_of_its_own() -> None:
        async def child() -> None:
            raise SystemExit(SECRET)

        task = asyncio.ensure_future(child())
        task.add_done_callback(lambda done: done.exception())

    def interrupt_in_a_task() -> None:
        async def child() -> None:
            raise KeyboardInterrupt(SECRET)

        task = asyncio.ensure_future(child())
        task.add_done_callback(lambda done: done.exception())

    def in_a_callback() -> None:
        asyncio.get_running_loop().call_soon(sys.exit, SECRET)

    def by_its_name() -> None:
        asyncio.get_running_loop().stop()

    return [in_a_task_of_its_own, interrupt_in_a_task, in_a_callback, by_its_name]


@pytest.mark.parametrize("end", ending_kinds(), ids=lambda end: end.__name__)
async def test_nothing_of_a_handler_ends_the_loop_of_its_agent(
    room: EngineRoom, end: Callable[[], None]
) -> None:
    async def work(run: Run) -> str:
        if run.text == "end":
            end()
        await asyncio.sleep(0.05)
        return "fine"

    agent = Agent(id="worker")
    agent.handler(work)
    await room.start(agent)
    ids = [await room.begin(agent, text) for text in ("bystander", "end", "end", "after it")]
    for task_id in ids:
        assert texts(await room.ended(agent, task_id, seconds=2.0)) == ["fine"]


async def test_a_startup_hook_runs_before_the_first_run_on_the_loop_of_the_handlers(room: EngineRoom) -> None:
    loops: list[tuple[str, asyncio.AbstractEventLoop]] = []
    agent = Agent(id="worker")

    @agent.on_startup
    async def begin() -> None:
        loops.append(("startup", asyncio.get_running_loop()))

    @agent.on_shutdown
    async def end() -> None:
        loops.append(("shutdown", asyncio.get_running_loop()))

    @agent.handler
    async def work(run: Run) -> None:
        loops.append(("handler", asyncio.get_running_loop()))

    await room.start(agent)
    await room.send(agent, "go")
    await room.crash()
    assert [name for name, _ in loops] == ["startup", "handler", "shutdown"]
    assert len({loop for _, loop in loops}) == 1
    assert loops[0][1] is not asyncio.get_running_loop()
