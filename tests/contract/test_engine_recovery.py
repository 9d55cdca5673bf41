"""Which runs a new server enters again, which it ends, and which it leaves alone."""

import asyncio

from dragoman import Agent, Run
from dragoman.model import Task, TaskState
from tests.contract.crashes import Crash, survived
from tests.contract.rooms import EngineRoom, eventually, state, texts

S = TaskState


async def test_a_run_is_entered_again_no_more_often_than_allowed(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker", max_attempts=2), Crash(attempts=2)

    @agent.handler
    async def work(run: Run) -> None:
        await crash.here(run)

    task = await survived(room, agent, crash)
    assert state(task) is S.FAILED
    assert crash.reached == [1, 2]
    assert task.status.message is not None
    assert {"interrupted", "2"} <= set(task.status.message.text.split())


async def test_a_run_that_must_not_be_repeated_fails_with_an_unknown_outcome(room: EngineRoom) -> None:
    agent, crash = Agent(id="worker", on_lost_worker="fail"), Crash()

    @agent.handler
    async def work(run: Run) -> None:
        await crash.here(run)

    task = await survived(room, agent, crash)
    assert state(task) is S.FAILED
    assert crash.reached == [1]
    assert task.status.message is not None
    assert "outcome is unknown" in task.status.message.text


async def test_a_run_that_was_never_entered_loses_no_attempt_to_a_restart(room: EngineRoom) -> None:
    """It waits behind another one while the server is restarted three times, as deployments do."""
    agent, crash = Agent(id="worker", max_runs=1, max_attempts=3), Crash(attempts=3)

    @agent.handler
    async def work(run: Run) -> str:
        if run.text == "in the way":
            await crash.here(run)
        return "done"

    await room.start(agent)
    await room.begin(agent, "in the way")
    await eventually(lambda: crash.reached == [1], what="the first run is entered")
    waiting_id = await room.begin(agent, "waiting")
    for attempt in (2, 3, None):
        await room.crash()
        await room.start(agent)
        if attempt is not None:
            await eventually(lambda attempt=attempt: attempt in crash.reached, what=f"attempt {attempt}")
    task = await room.ended(agent, waiting_id)
    assert (state(task), texts(task)) == (S.COMPLETED, ["done"])


async def test_a_finished_run_is_not_entered_again(room: EngineRoom) -> None:
    agent, entered = Agent(id="worker"), []

    @agent.handler
    async def work(run: Run) -> str:
        entered.append(run.text)
        return "done"

    await room.start(agent)
    task = await room.send(agent, "once")
    assert isinstance(task, Task)
    await room.crash()
    await room.start(agent)
    await room.send(agent, "another")
    assert entered == ["once", "another"]
    assert await room.read(agent, task.id) == task


async def test_many_interrupted_runs_all_end_and_each_attempt_is_entered_once(room: EngineRoom) -> None:
    agent, restarted = Agent(id="worker", max_runs=7), asyncio.Event()
    entered: list[tuple[str, int]] = []
    standing: list[str] = []

    @agent.handler
    async def work(run: Run) -> str:
        entered.append((run.text, run.attempt))
        if int(run.text) % 2 and not restarted.is_set():
            standing.append(run.text)
            await asyncio.sleep(3600)
        return run.text

    await room.start(agent)
    ids = [await room.begin(agent, f"{number}") for number in range(30)]
    await eventually(lambda: len(standing) == 7, what="seven runs stand still")
    await room.crash()
    restarted.set()
    await room.start(agent)
    for number, task_id in enumerate(ids):
        task = await room.ended(agent, task_id)
        assert (state(task), texts(task)) == (S.COMPLETED, [f"{number}"])
        events = await room.events(task_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert sum(event.ends_run for event in events) == 1
    assert sorted(entered) == sorted(
        [(f"{number}", 1) for number in range(30)] + [(text, 2) for text in standing]
    )
