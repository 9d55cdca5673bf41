"""A run that a crash interrupted: entered again with its journal, or ended; nothing is done or shown twice."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model import StatusChange, TaskState
from tests.contract.crashes import Crash, survived
from tests.contract.rooms import EngineRoom, said, state, texts

S = TaskState


async def test_a_step_that_was_journaled_is_not_performed_again(room: EngineRoom) -> None:
    agent, crash, performed = Agent(id="worker"), Crash(), []

    @agent.handler
    async def work(run: Run) -> str:
        def pay() -> dict[str, Any]:
            performed.append(run.attempt)
            return {"receipt": 17, "pair": (1, 2), "big": 10**25}

        receipt = await run.step("pay", pay)
        await crash.here(run)
        return f"{receipt} on attempt {run.attempt}"

    task = await survived(room, agent, crash)
    assert performed == [1]
    receipt = {"receipt": 17, "pair": [1, 2], "big": 10**25}
    assert (state(task), texts(task)) == (S.COMPLETED, [f"{receipt} on attempt 2"])


async def test_a_step_in_a_thread_is_not_performed_again(room: EngineRoom) -> None:
    agent, crash, performed = Agent(id="worker"), Crash(), []

    @agent.handler
    def work(run: BlockingRun) -> str:
        receipt = run.step("pay", lambda: performed.append(run.attempt) or "receipt")
        crash.here_in_thread(run)
        return f"{receipt} on attempt {run.attempt}"

    task = await survived(room, agent, crash)
    assert performed == [1]
    assert texts(task) == ["receipt on attempt 2"]


async def test_steps_go_on_where_the_journal_ends(room: EngineRoom) -> None:
    agent, crash, performed = Agent(id="worker", max_attempts=9), Crash(attempts=3), []

    @agent.handler
    async def work(run: Run) -> list[Any]:
        results = []
        for number in range(4):
            results.append(await run.step(f"step {number}", lambda n=number: performed.append(n) or n * n))
            if number == run.attempt - 1:
                await crash.here(run)
        return results

    task = await survived(room, agent, crash)
    assert performed == [0, 1, 2, 3]
    assert task.artifacts is not None
    assert task.artifacts[0].parts[0].value == [0, 1, 4, 9]


async def test_steps_at_once_are_journaled_each(room: EngineRoom) -> None:
    agent, crash, performed = Agent(id="worker"), Crash(), []

    @agent.handler
    async def work(run: Run) -> list[Any]:
        async def perform(number: int) -> int:
            performed.append(number)
            await asyncio.sleep(0.03 * (3 - number))
            return number * 10

        steps = (run.step(f"step {number}", lambda n=number: perform(n)) for number in range(3))
        results = await asyncio.gather(*steps)
        await crash.here(run)
        return list(results)

    task = await survived(room, agent, crash)
    assert performed == [0, 1, 2]
    assert state(task) is S.COMPLETED
    assert task.artifacts is not None
    assert task.artifacts[0].parts[0].value == [0, 10, 20]


async def test_acts_before_the_last_journaled_point_are_not_done_again(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> str:
        await run.working("starting")
        await run.artifact("first part")
        paid = await run.step("pay", lambda: 7)
        await run.artifact(f"paid {paid}")
        await crash.here(run)
        return "the end"

    task = await survived(room, agent, crash)
    assert (state(task), texts(task)) == (S.COMPLETED, ["first part", "paid 7", "the end"])
    assert [turn.text for turn in task.history] == ["Hello", "starting"]
    events = await room.events(task.id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.attempt for event in events] == sorted(event.attempt for event in events)


async def test_without_a_journal_everything_is_done_again_and_shown_once(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> None:
        await run.artifact("first")
        half = await run.artifact("half ", last=False)
        await crash.here(run)
        await run.append(half, "whole", last=True)

    task = await survived(room, agent, crash)
    assert (state(task), texts(task)) == (S.COMPLETED, ["first", "half whole"])


async def test_an_artifact_begun_before_a_journaled_point_is_one_artifact_in_the_end(
    room: EngineRoom,
) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> None:
        report = await run.artifact("begun, ", name="report", last=False)
        await run.step("look something up", lambda: None)
        await crash.here(run)
        await run.append(report, "finished", last=True)

    task = await survived(room, agent, crash)
    assert (state(task), texts(task)) == (S.COMPLETED, ["begun, finished"])


async def test_what_a_generator_streamed_is_whole_and_once_after_a_crash(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> AsyncIterator[str]:
        yield "one "
        yield "two "
        yield "three "
        await crash.here(run)
        yield "four"

    task = await survived(room, agent, crash)
    assert (state(task), texts(task)) == (S.COMPLETED, ["one two three four"])


@pytest.mark.parametrize("change", ["name", "order", "acts"])
async def test_a_handler_that_no_longer_matches_its_journal_fails_with_that_reason(
    room: EngineRoom, change: str
) -> None:
    agent, crash, performed = Agent(id="worker"), Crash(), []

    @agent.handler
    async def work(run: Run) -> str:
        again = run.attempt > 1
        names = ["pay", "ship"]
        if again and change == "name":
            names = ["pay by card", "ship"]
        if again and change == "order":
            names.reverse()
        if again and change == "acts":
            await run.working("an act that was not there")
        for name in names:
            await run.step(name, lambda name=name: performed.append(name))
        await crash.here(run)
        return "guessed"

    task = await survived(room, agent, crash)
    assert (state(task), texts(task)) == (S.FAILED, [])
    assert task.status.message is not None
    assert (
        task.status.message.text == "The agent changed while it was interrupted, so this run could not go on."
    )
    assert performed == ["pay", "ship"]


async def test_the_first_act_of_a_later_attempt_shows_its_task_as_working(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> None:
        await crash.here(run)
        await run.artifact("begun", last=False)
        await run.working("and going on")

    task = await survived(room, agent, crash)
    changes = said(await room.events(task.id))
    first_act = next(one for one in changes if type(one).__name__ in ("StatusChange", "ArtifactChunk"))
    assert first_act == StatusChange(S.WORKING)


async def test_a_later_attempt_that_does_nothing_for_a_while_shows_as_a_working_task(
    room: EngineRoom,
) -> None:
    agent, crash = Agent(id="worker"), Crash()

    @agent.handler
    async def work(run: Run) -> None:
        await crash.here(run)
        await asyncio.sleep(room.shows_after + 0.35)

    task = await survived(room, agent, crash)
    states = [change.state for change in said(await room.events(task.id)) if isinstance(change, StatusChange)]
    assert states == [S.WORKING, S.COMPLETED]
