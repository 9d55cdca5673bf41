"""What a handler is given, and what its acts do."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dragoman.agents import Agent, BlockingRun, Run
from dragoman.model import (
    RawPart,
    TaskFold,
    TaskState,
    TextPart,
)
from dragoman.model.message import text_of
from dragoman.model.payload import pack, unpack
from tests.unit.agents.acted import brief, done, run
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import message, play

WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED


async def acting(run: Run) -> None:
    await run.working("half")
    identifier = await run.artifact("one", name="n", metadata={"urn:x": 1}, last=False)
    await run.append(identifier, "two")
    await run.append(identifier, "three", last=True)
    await run.complete("done")


def acting_plainly(run: BlockingRun) -> None:
    run.working("half")
    identifier = run.artifact("one", name="n", metadata={"urn:x": 1}, last=False)
    run.append(identifier, "two")
    run.append(identifier, "three", last=True)
    run.complete("done")


@pytest.mark.parametrize("handler", [acting, acting_plainly])
def test_acts_are_committed_in_order(handler: Any) -> None:
    assert done(handler) == [
        "WORKING half",
        "artifact one",
        "more two",
        "more three last",
        "COMPLETED done",
    ]


@pytest.mark.parametrize("handler", [acting, acting_plainly])
def test_an_artifact_has_the_metadata_that_it_is_given(handler: Any) -> None:
    async def scenario() -> None:
        agent = Agent(id="a")
        agent.handler(handler)
        attempt = await begun()
        await run(agent, attempt)
        fold = TaskFold(attempt.ref.lease.task_id, "c")
        fold.apply_all(attempt.store.logs[attempt.ref.lease.task_id])
        (artifact,) = fold.task().artifacts or ()
        assert unpack(artifact.metadata) == {"urn:x": 1}

    play(scenario())


@pytest.mark.parametrize(
    ("handler", "end"),
    [
        (lambda run: run.fail("broken"), "FAILED broken"),
        (lambda run: run.reject("never"), "REJECTED never"),
        (lambda run: run.complete(), "COMPLETED"),
        (lambda run: run.reply("so be it"), "COMPLETED so be it"),
    ],
)
def test_a_run_ends_once_whatever_the_handler_returns(handler: Any, end: str) -> None:
    async def ending(run: Run) -> str:
        await handler(run)
        return "too late"

    def ending_plainly(run: BlockingRun) -> str:
        handler(run)
        return "too late"

    assert done(ending) == done(ending_plainly) == [end]


def test_a_handler_knows_the_request() -> None:
    request = message(
        "",
        TextPart(text="one"),
        RawPart(raw=b"x"),
        TextPart(text="two"),
        accepted_output_modes=("text/html",),
        metadata=pack({"n": 2**70}),
    )
    seen: dict[str, Any] = {}

    async def look(run: Run) -> None:
        seen.update(
            text=run.text,
            parts=run.parts,
            history=run.history,
            modes=run.accepted_output_modes,
            extensions=run.extensions,
            metadata=run.metadata,
            principal=(run.tenant, run.principal),
            ids=(run.id, run.task_id, run.context_id, run.attempt),
            deadline=run.deadline,
            cancelled=run.cancelled,
            references=run.reference_task_ids,
        )

    async def scenario() -> None:
        agent = Agent(id="a")
        agent.handler(look)
        attempt = await begun("task", request, extensions=("urn:e",))
        await run(agent, attempt)
        task_id = attempt.ref.lease.task_id
        assert seen == {
            "text": "one\ntwo",
            "parts": request.message.parts,
            "history": (request.message,),
            "modes": ("text/html",),
            "extensions": ("urn:e",),
            "metadata": {"n": 2**70},
            "principal": ("tenant", "principal"),
            "ids": (task_id, task_id, "c", 1),
            "deadline": 60.0,
            "cancelled": False,
            "references": (),
        }

    play(scenario())


def dies_once(run: Run | BlockingRun) -> None:
    """Stand for a server that is killed in the first attempt."""
    if run.attempt == 1:
        raise asyncio.CancelledError


async def attempted_twice(handler: Callable[..., Any]) -> Attempt:
    """Run a handler that dies in its first attempt, and run it again."""
    agent = Agent(id="a")
    agent.handler(handler)
    attempt = await begun()
    with pytest.raises(asyncio.CancelledError):
        await agent.run(attempt.execution)
    await run(agent, attempt.again())
    return attempt


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_step_is_done_once_for_all_attempts_and_may_be_async_or_plain(kind: str) -> None:
    paid: list[str] = []

    def pay() -> dict[str, int]:
        paid.append("paid")
        return {"n": 2**70}

    async def answer(run: Run) -> str:
        first = await run.step("pay", pay)
        second = await run.step("look", lambda: asyncio.sleep(0, "seen"))
        dies_once(run)
        return f"{first['n']} {second}"

    def answer_plainly(run: BlockingRun) -> str:
        first = run.step("pay", pay)
        second = run.step("look", lambda: "seen")
        dies_once(run)
        return f"{first['n']} {second}"

    async def scenario() -> None:
        attempt = await attempted_twice(answer if kind == "async" else answer_plainly)
        assert [brief(change) for change in attempt.done] == [f"artifact {2**70} seen last", "COMPLETED"]
        assert paid == ["paid"]

    play(scenario())


def test_an_artifact_that_was_begun_before_a_step_goes_on_in_the_next_attempt() -> None:
    async def answer(run: Run) -> None:
        identifier = await run.artifact("one", last=False)
        await run.step("think", lambda: "thought")
        dies_once(run)
        await run.append(identifier, "two", last=True)

    async def generate(run: Run) -> AsyncIterator[str]:
        yield "one"
        yield "two"
        await run.step("think", lambda: "thought")
        dies_once(run)
        yield "three"

    async def scenario() -> None:
        for handler, text in ((answer, "one\ntwo"), (generate, "one\ntwo\nthree")):
            attempt = await attempted_twice(handler)
            fold = TaskFold(attempt.ref.lease.task_id, "c")
            fold.apply_all(attempt.store.logs[attempt.ref.lease.task_id])
            assert [text_of(artifact.parts) for artifact in fold.task().artifacts or ()] == [text]

    play(scenario())


def test_hooks_are_called_in_order_async_or_plain() -> None:
    called: list[str] = []
    agent = Agent(id="a")

    @agent.on_startup
    async def first() -> None:
        called.append("first")

    @agent.on_startup
    def second() -> None:
        called.append("second")

    @agent.on_shutdown
    def last() -> None:
        called.append("last")

    async def scenario() -> None:
        await agent.startup()
        await agent.shutdown()

    play(scenario())
    assert called == ["first", "second", "last"]
