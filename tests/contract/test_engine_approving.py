"""A handler that has something approved: it waits like one that asks, and only a decision enters it again."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import LONGEST_ACTION, LONGEST_SOURCE, MAX_DETAILS, BlockingRun
from dragoman.model import Message, Task, TaskState, Used
from dragoman.model.errors import IllegalChange, UnsupportedOperation
from tests.contract.rooms import NOTHING, EngineRoom, eventually, state, texts

S = TaskState


def agent_of(work: Callable[..., Any], **settings: Any) -> Agent:
    agent = Agent(id="worker", **settings)
    agent.handler(work)
    return agent


async def waiting(room: EngineRoom, agent: Agent, text: str = "Hello") -> Task:
    """Send a message whose run comes to wait for an approval; nothing is held meanwhile."""
    task = await room.send(agent, text)
    assert isinstance(task, Task)
    assert state(task) is S.INPUT_REQUIRED
    await eventually(lambda: room.held() == NOTHING, what="nothing is held")
    return task


def spoken(task: Task | Message) -> str:
    assert isinstance(task, Task)
    assert task.status.message is not None
    return task.status.message.text


async def approve(run: Run) -> str:
    decision = await run.approve("Delete it", {"it": run.text})
    return f"{decision.approved} {decision.by} {decision.note}, attempt {run.attempt}"


async def approve_and_yield(run: Run) -> AsyncIterator[str]:
    decision = await run.approve("Delete it", {"it": run.text})
    yield f"{decision.approved} {decision.by} "
    yield f"{decision.note}, attempt {run.attempt}"


def approve_in_thread(run: BlockingRun) -> str:
    decision = run.approve("Delete it", {"it": run.text})
    return f"{decision.approved} {decision.by} {decision.note}, attempt {run.attempt}"


def approve_and_yield_in_thread(run: BlockingRun) -> Iterator[str]:
    decision = run.approve("Delete it", {"it": run.text})
    yield f"{decision.approved} {decision.by} "
    yield f"{decision.note}, attempt {run.attempt}"


EVERY_KIND = pytest.mark.parametrize(
    "work",
    [approve, approve_and_yield, approve_in_thread, approve_and_yield_in_thread],
    ids=lambda work: work.__name__,
)


@EVERY_KIND
@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("restarts", [0, 2])
async def test_a_decision_is_what_the_handler_gets(
    room: EngineRoom, work: Callable[..., Any], approved: bool, restarts: int
) -> None:
    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    assert spoken(task) == "Waits for an approval: Delete it"
    for _ in range(restarts):
        await room.crash()
        await room.start(agent)
    done = await room.decide(agent, task.id, approved=approved, note="noted")
    assert (state(done), texts(done)) == (S.COMPLETED, [f"{approved} carol noted, attempt 1"])


async def test_no_message_enters_it_again(room: EngineRoom) -> None:
    agent = agent_of(approve)
    await room.start(agent)
    task = await waiting(room, agent)
    with pytest.raises(UnsupportedOperation):
        await room.answer(agent, task.id, "approved")
    assert (await room.read(agent, task.id)) == task
    done = await room.decide(agent, task.id, approved=False)
    assert texts(done) == ["False carol , attempt 1"]


async def test_approvals_questions_and_steps_follow_each_other(room: EngineRoom) -> None:
    done: list[str] = []

    async def work(run: Run) -> str:
        await run.step("look", lambda: done.append("looked"))
        first = await run.approve("Take the first")
        answer = await run.ask("And then?")
        second = await run.approve("Take the second", [answer.text])
        await run.step("take", lambda: done.append("taken"))
        return f"{first.approved} {answer.text} {second.approved}"

    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    asked = await room.decide(agent, task.id, approved=True)
    assert (state(asked), spoken(asked)) == (S.INPUT_REQUIRED, "And then?")
    waits = await room.answer(agent, task.id, "the other one")
    assert spoken(waits) == "Waits for an approval: Take the second"
    ended = await room.decide(agent, task.id, approved=False)
    assert texts(ended) == ["True the other one False"]
    assert done == ["looked", "taken"]


@pytest.mark.parametrize(
    ("named", "state_then"), [("", S.FAILED), ("delete", S.COMPLETED)], ids=["without a name", "with one"]
)
async def test_what_is_approved_must_be_the_same_on_the_way_back(
    room: EngineRoom, named: str, state_then: TaskState
) -> None:
    entered: list[int] = []

    async def work(run: Run) -> str:
        entered.append(1)
        await run.approve("Delete it", {"copies": len(entered)}, name=named)
        return "done"

    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    assert state(await room.decide(agent, task.id, approved=True)) is state_then


@pytest.mark.parametrize(
    ("action", "details"),
    [
        ("x" * (LONGEST_ACTION + 1), None),
        ("x", "y" * MAX_DETAILS),
        ("x", {1, 2}),
        ("x", float("nan")),
        ("x", "\ud800"),
    ],
    ids=["a long action", "much to show", "no JSON", "no number", "no Unicode"],
)
async def test_what_nobody_could_be_shown_is_refused_in_the_handler(
    room: EngineRoom, action: str, details: object
) -> None:
    seen: list[str] = []

    async def work(run: Run) -> str:
        try:
            await run.approve(action, details)
        except (ValueError, TypeError) as error:
            seen.append(type(error).__name__)
        return "went on"

    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "Hello")
    assert (state(task), texts(task)) == (S.COMPLETED, ["went on"])
    assert seen in (["ValueError"], ["TypeError"])


async def test_as_much_as_can_be_shown_is_shown(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        await run.approve("x" * LONGEST_ACTION, "y" * (MAX_DETAILS - 2))
        return "done"

    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    assert state(await room.decide(agent, task.id, approved=True)) is S.COMPLETED


async def test_a_message_agent_has_nothing_approved_because_nobody_would_see_it(room: EngineRoom) -> None:
    seen: list[Exception] = []

    async def work(run: Run) -> str:
        try:
            await run.approve("Delete it")
        except IllegalChange as error:
            seen.append(error)
        return "went on"

    agent = agent_of(work, replies="message")
    await room.start(agent)
    await room.send(agent, "Hello")
    assert len(seen) == 1


# ------------------------------------------------------------------------------------------------------------- evidence


async def used(room: EngineRoom, task_id: str) -> list[str]:
    """The sources of a run, in order."""
    return [event.change.source for event in await room.events(task_id) if isinstance(event.change, Used)]


async def test_a_source_is_recorded_once_however_often_the_handler_is_entered(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        await run.use_source("wiki")
        await run.step("look", lambda: run.use_source("crm"))
        await run.use_source("wiki")
        answer = await run.ask("Which one?")
        await run.use_source(answer.text)
        return "done"

    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    assert await used(room, task.id) == ["wiki", "crm"]
    await room.crash()
    await room.start(agent)
    done = await room.answer(agent, task.id, "payroll")
    assert (state(done), texts(done)) == (S.COMPLETED, ["done"])
    assert await used(room, task.id) == ["wiki", "crm", "payroll"]


async def test_a_source_is_no_act_that_the_journal_counts(room: EngineRoom) -> None:
    """On the way back the handler says its sources in another order and number; it is still the same one."""
    entered: list[int] = []

    async def work(run: Run) -> str:
        entered.append(1)
        for source in ("a", "b", "c")[: len(entered)]:
            await run.use_source(source)
        await run.working("reading")
        await run.ask("Go on?")
        return "done"

    agent = agent_of(work)
    await room.start(agent)
    task = await waiting(room, agent)
    assert texts(await room.answer(agent, task.id, "yes")) == ["done"]
    assert await used(room, task.id) == ["a", "b"]


async def test_a_plain_handler_says_its_sources_too(room: EngineRoom) -> None:
    def work(run: BlockingRun) -> str:
        run.use_source("wiki")
        return "done"

    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "Hello")
    assert isinstance(task, Task)
    assert await used(room, task.id) == ["wiki"]


@pytest.mark.parametrize("source", ["", "x" * (LONGEST_SOURCE + 1)])
async def test_what_is_no_name_of_a_source_is_refused(room: EngineRoom, source: str) -> None:
    async def work(run: Run) -> str:
        with pytest.raises(ValueError, match="1 to 128"):
            await run.use_source(source)
        return "went on"

    agent = agent_of(work)
    await room.start(agent)
    assert texts(await room.send(agent, "Hello")) == ["went on"]


async def test_a_run_that_has_ended_uses_nothing_more(room: EngineRoom) -> None:
    refused: list[str] = []

    async def work(run: Run) -> None:
        await run.complete("done")
        try:
            await run.use_source("wiki")
        except IllegalChange as error:
            refused.append(str(error))

    agent = agent_of(work)
    await room.start(agent)
    task = await room.send(agent, "Hello")
    assert isinstance(task, Task)
    await eventually(lambda: refused, what="it was refused")
    assert await used(room, task.id) == []
