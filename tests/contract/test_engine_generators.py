"""Handlers that yield: their chunks are streamed as they come, and they run as ordinary generators do."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents import run
from dragoman.agents.run import BlockingRun
from dragoman.model import Artifact, ArtifactChunk, StatusChange, TaskState, TextPart
from tests.contract.rooms import EngineRoom, eventually, said, state, texts

S = TaskState
WHO = contextvars.ContextVar("WHO", default="nobody")


def agent_of(work: Callable[..., Any], **settings: Any) -> Agent:
    agent = Agent(id="worker", **settings)
    agent.handler(work)
    return agent


async def async_greeting(run: Run) -> AsyncIterator[str]:
    yield "Hello, "
    yield run.text
    yield "!"


def greeting(run: BlockingRun) -> Iterator[str]:
    yield "Hello, "
    yield run.text
    yield "!"


@pytest.mark.parametrize("work", [async_greeting, greeting], ids=["async", "thread"])
async def test_what_a_generator_yields_is_streamed_into_one_artifact(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch, work: Callable[..., Any]
) -> None:
    monkeypatch.setattr(run, "HOLD_SECONDS", 5.0)  # so that no slow machine lets the last chunk go unmarked
    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "world")
    assert (state(task), texts(task)) == (S.COMPLETED, ["Hello, world!"])
    changes = said(await room.events(task.id))
    marks = [(one.append, one.last_chunk) for one in changes if isinstance(one, ArtifactChunk)]
    assert marks == [(False, False), (True, False), (True, True)]
    assert [one.state for one in changes if isinstance(one, StatusChange)] == [S.WORKING, S.COMPLETED]


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_chunk_is_there_while_the_generator_still_works_on_the_next(
    room: EngineRoom, kind: str
) -> None:
    door = threading.Event()

    async def slow(run: Run) -> AsyncIterator[str]:
        yield "first"
        while not door.is_set():
            await asyncio.sleep(0.005)
        yield " second"

    def slow_in_thread(run: BlockingRun) -> Iterator[str]:
        yield "first"
        door.wait(20)
        yield " second"

    agent = agent_of(slow if kind == "async" else slow_in_thread)
    await room.start(agent)
    task_id = await room.begin(agent)
    try:
        async with asyncio.timeout(3):
            while texts(await room.read(agent, task_id)) != ["first"]:
                await asyncio.sleep(0.005)
    finally:
        door.set()
    task = await room.ended(agent, task_id)
    assert (state(task), texts(task)) == (S.COMPLETED, ["first second"])


async def test_what_a_generator_yields_and_does_comes_in_its_order(room: EngineRoom) -> None:
    async def work(run: Run) -> AsyncIterator[Any]:
        yield "one "
        await run.working("in between")
        yield Artifact(artifact_id="whole", parts=(TextPart(text="by itself"),))
        yield "two"
        await run.complete("done")

    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert (state(task), texts(task)) == (S.COMPLETED, ["one two", "by itself"])
    kinds = [
        change.artifact.artifact_id == "whole" if isinstance(change, ArtifactChunk) else change.state
        for change in said(await room.events(task.id))
    ]
    assert kinds == [S.WORKING, False, S.WORKING, True, False, S.COMPLETED]


async def test_a_generator_that_yields_nothing_completes_its_task(room: EngineRoom) -> None:
    async def work(run: Run) -> AsyncIterator[str]:
        for word in ():
            yield word

    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert (state(task), texts(task)) == (S.COMPLETED, [])


async def test_a_timeout_around_yields_ends_the_generator(room: EngineRoom) -> None:
    async def work(run: Run) -> AsyncIterator[str]:
        try:
            async with asyncio.timeout(0.2):
                yield "in time"
                await asyncio.sleep(60)
        except TimeoutError:
            yield ", too late"

    agent = agent_of(work)
    await room.start(agent)
    task_id = await room.begin(agent)
    task = await room.ended(agent, task_id, seconds=2.0)
    assert (state(task), texts(task)) == (S.COMPLETED, ["in time, too late"])


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_context_variables_last_from_one_yield_to_the_next(room: EngineRoom, kind: str) -> None:
    async def work(run: Run) -> AsyncIterator[str]:
        token = WHO.set(run.text)
        yield "I am "
        yield WHO.get()
        WHO.reset(token)

    def work_in_thread(run: BlockingRun) -> Iterator[str]:
        token = WHO.set(run.text)
        yield "I am "
        yield WHO.get()
        WHO.reset(token)

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await room.send(agent, "Alice")
    assert (state(task), texts(task)) == (S.COMPLETED, ["I am Alice"])
    assert WHO.get() == "nobody"


async def test_a_plain_generator_stays_in_one_thread(room: EngineRoom) -> None:
    """As what belongs to a thread (a database connection, say) demands."""
    threads: dict[str, set[int]] = {}
    together = threading.Barrier(4, timeout=10)

    def work(run: BlockingRun) -> Iterator[str]:
        for step in range(6):
            threads.setdefault(run.text, set()).add(threading.get_ident())
            together.wait()
            yield f"{step}"

    agent = agent_of(work)
    await room.start(agent)
    ids = [await room.begin(agent, f"run {number}") for number in range(4)]
    for task_id in ids:
        assert texts(await room.ended(agent, task_id)) == ["012345"]
    assert {name: len(used) for name, used in threads.items()} == {f"run {number}": 1 for number in range(4)}


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_stopped_generator_is_closed(room: EngineRoom, kind: str) -> None:
    entered, closed = threading.Event(), threading.Event()

    async def work(run: Run) -> AsyncIterator[str]:
        try:
            yield "begun"
            entered.set()
            await asyncio.sleep(60)
        finally:
            closed.set()

    def work_in_thread(run: BlockingRun) -> Iterator[str]:
        try:
            yield "begun"
            entered.set()
            run.wait_cancelled(20)
            yield "nobody hears this"
        finally:
            closed.set()

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task_id = await room.begin(agent)
    await eventually(entered.is_set, what="the generator is at work")
    async with asyncio.timeout(3):
        while texts(await room.read(agent, task_id)) != ["begun"]:
            await asyncio.sleep(0.005)
    await room.cancel(agent, task_id)
    await eventually(closed.is_set, what="its finally block ran", seconds=2.0)
    task = await room.read(agent, task_id)
    assert (state(task), texts(task)) == (S.CANCELED, ["begun"])
