"""A handler that asks: its run is parked and holds nothing, and the answer enters it again, however late it comes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model import ArtifactChunk, Message, Received, Resumed, StatusChange, Task, TaskState
from dragoman.model.errors import IllegalChange
from tests.contract.rooms import NOTHING, EngineRoom, eventually, said, state, texts

S = TaskState


def agent_of(work: Callable[..., Any], **settings: Any) -> Agent:
    agent = Agent(id="worker", **settings)
    agent.handler(work)
    return agent


def spoken(task: Task | Message) -> str:
    """What the agent says in a task's status."""
    assert isinstance(task, Task)
    assert task.status.message is not None
    return task.status.message.text


def history(task: Task) -> list[str]:
    return [turn.text for turn in task.history]


async def asked(room: EngineRoom, agent: Agent, text: str = "Hello") -> Task:
    """Send a message that is answered with a question, and see that nothing is held while the question stands."""
    task = await room.send(agent, text)
    assert isinstance(task, Task)
    assert state(task).is_interrupted
    await eventually(lambda: room.held() == NOTHING, what="nothing is held")
    return task


async def ask(run: Run) -> str:
    answer = await run.ask("Which language?")
    return f"{run.text} in {answer.text}, attempt {run.attempt}"


async def ask_and_yield(run: Run) -> AsyncIterator[str]:
    answer = await run.ask("Which language?")
    yield f"{run.text} in "
    yield f"{answer.text}, attempt {run.attempt}"


def ask_in_thread(run: BlockingRun) -> str:
    answer = run.ask("Which language?")
    return f"{run.text} in {answer.text}, attempt {run.attempt}"


def ask_and_yield_in_thread(run: BlockingRun) -> Iterator[str]:
    answer = run.ask("Which language?")
    yield f"{run.text} in "
    yield f"{answer.text}, attempt {run.attempt}"


EVERY_KIND = pytest.mark.parametrize(
    "work", [ask, ask_and_yield, ask_in_thread, ask_and_yield_in_thread], ids=lambda work: work.__name__
)


@EVERY_KIND
@pytest.mark.parametrize("restarts", [0, 2])
async def test_a_question_is_answered_by_the_callers_next_message(
    room: EngineRoom, work: Callable[..., Any], restarts: int
) -> None:
    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    assert (state(task), spoken(task), history(task)) == (S.INPUT_REQUIRED, "Which language?", ["Hello"])
    for _ in range(restarts):
        await room.crash()
        await room.start(agent)
        assert room.held() == NOTHING
        assert await room.read(agent, task.id) == task

    task = await room.answer(agent, task.id, "French")
    assert (state(task), texts(task)) == (S.COMPLETED, ["Hello in French, attempt 1"])
    assert history(task) == ["Hello", "Which language?", "French"]
    changes = said(await room.events(task.id))
    moves = [(type(change), change.state) for change in changes if not isinstance(change, ArtifactChunk)]
    assert moves == [
        (StatusChange, S.INPUT_REQUIRED),
        (Received, S.WORKING),
        (StatusChange, S.COMPLETED),
    ]
    await eventually(lambda: room.held() == NOTHING, what="nothing is held")


@EVERY_KIND
async def test_an_agent_that_may_reply_in_either_way_shows_a_task_when_it_asks(
    room: EngineRoom, work: Callable[..., Any]
) -> None:
    agent = agent_of(work, replies="either")
    await room.start(agent)
    task = await asked(room, agent)
    assert texts(await room.answer(agent, task.id, "French")) == ["Hello in French, attempt 1"]


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_an_authorization_is_asked_for_in_the_same_way(room: EngineRoom, kind: str) -> None:
    async def work(run: Run) -> str:
        answer = await run.require_auth({"sign in at": "https://example.org/"})
        return f"authorized: {answer.text}"

    def work_in_thread(run: BlockingRun) -> str:
        return f"authorized: {run.require_auth({'sign in at': 'https://example.org/'}).text}"

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await asked(room, agent)
    assert state(task) is S.AUTH_REQUIRED
    assert task.status.message is not None
    assert task.status.message.parts[0].value == {"sign in at": "https://example.org/"}
    task = await room.answer(agent, task.id, "done")
    assert (state(task), texts(task)) == (S.COMPLETED, ["authorized: done"])


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_questions_in_a_loop_are_answered_each_by_its_own_message(room: EngineRoom, kind: str) -> None:
    entered: list[int] = []

    async def work(run: Run) -> list[str]:
        entered.append(len(run.history))
        answers: list[str] = []
        while "enough" not in answers:
            answers.append((await run.ask(f"Question {len(answers)}?")).text)
        return answers

    def work_in_thread(run: BlockingRun) -> list[str]:
        entered.append(len(run.history))
        answers: list[str] = []
        while "enough" not in answers:
            answers.append(run.ask(f"Question {len(answers)}?").text)
        return answers

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await asked(room, agent)
    answers = ["a", "b", "a", "enough"]
    for number, text in enumerate(answers):
        assert (state(task), spoken(task)) == (S.INPUT_REQUIRED, f"Question {number}?")
        if number == 2:
            await room.crash()
            await room.start(agent)
        task = await room.answer(agent, task.id, text)
    assert state(task) is S.COMPLETED
    assert task.artifacts is not None
    assert task.artifacts[0].parts[0].value == answers
    assert history(task) == [
        "Hello",
        *(text for number, answer in enumerate(answers) for text in (f"Question {number}?", answer)),
    ]
    assert entered == [1, 2, 3, 4, 5]


async def test_the_same_question_may_be_asked_again_and_again(room: EngineRoom) -> None:
    async def work(run: Run) -> str:
        while (answer := await run.ask("More?")).text != "no":
            pass
        return f"no more after {len(run.history)} messages, {answer.message_id == run.history[-1].message_id}"

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    for text in ("yes", "yes", "no"):
        assert spoken(task) == "More?"
        task = await room.answer(agent, task.id, text)
    assert texts(task) == ["no more after 4 messages, True"]


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_steps_and_acts_before_a_question_are_not_done_again(room: EngineRoom, kind: str) -> None:
    performed: list[str] = []

    async def work(run: Run) -> str:
        await run.working("looking")
        found = await run.step("look", lambda: performed.append("look") or 3)
        await run.artifact(f"{found} offers")
        await run.working("asking")
        answer = await run.ask(f"Which of {found}?")
        await run.step("book", lambda: performed.append(f"book {answer.text}"))
        return f"booked {answer.text}"

    def work_in_thread(run: BlockingRun) -> str:
        run.working("looking")
        found = run.step("look", lambda: performed.append("look") or 3)
        run.artifact(f"{found} offers")
        run.working("asking")
        answer = run.ask(f"Which of {found}?")
        run.step("book", lambda: performed.append(f"book {answer.text}"))
        return f"booked {answer.text}"

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await asked(room, agent)
    before = await room.events(task.id)
    task = await room.answer(agent, task.id, "2")
    assert (state(task), texts(task)) == (S.COMPLETED, ["3 offers", "booked 2"])
    assert history(task) == ["Hello", "looking", "asking", "Which of 3?", "2"]
    assert performed == ["look", "book 2"]
    after = (await room.events(task.id))[len(before) :]
    assert [type(event.change) for event in after] == [Received, ArtifactChunk, StatusChange]
    assert [event.seq for event in after] == list(range(len(before) + 1, len(before) + 4))


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_what_a_generator_yields_around_its_questions_is_one_artifact(
    room: EngineRoom, kind: str
) -> None:
    async def work(run: Run) -> AsyncIterator[str]:
        yield "one "
        yield "two "
        yield f"{(await run.ask('Three?')).text} "
        yield "four "
        yield (await run.ask("Five?")).text

    def work_in_thread(run: BlockingRun) -> Iterator[str]:
        yield "one "
        yield "two "
        yield f"{run.ask('Three?').text} "
        yield "four "
        yield run.ask("Five?").text

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await asked(room, agent)
    assert (spoken(task), texts(task)) == ("Three?", ["one two "])
    task = await room.answer(agent, task.id, "III")
    assert (spoken(task), texts(task)) == ("Five?", ["one two III four "])
    task = await room.answer(agent, task.id, "V")
    assert (state(task), texts(task)) == (S.COMPLETED, ["one two III four V"])
    chunks = [change for change in said(await room.events(task.id)) if isinstance(change, ArtifactChunk)]
    assert [chunk.append for chunk in chunks] == [False, True, True, True, True]
    assert [chunk.last_chunk for chunk in chunks[:4]] == [False] * 4


async def test_an_artifact_that_is_begun_before_a_question_goes_on_after_it(room: EngineRoom) -> None:
    async def work(run: Run) -> None:
        report = await run.artifact("begun, ", name="report", last=False)
        answer = await run.ask("Go on?")
        await run.append(report, answer.text, last=True)

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    assert texts(task) == ["begun, "]
    assert texts(await room.answer(agent, task.id, "ended")) == ["begun, ended"]


async def test_after_a_crash_what_was_written_since_the_answer_starts_over(room: EngineRoom) -> None:
    crashed, standing = asyncio.Event(), []

    async def work(run: Run) -> None:
        await run.artifact("kept")
        answer = await run.ask("Go on?")
        half = await run.artifact("half ", last=False)
        await run.working("half way")
        if not crashed.is_set():
            standing.append(run.attempt)
            await asyncio.sleep(3600)
        await run.append(half, f"whole, {answer.text}, attempt {run.attempt}", last=True)

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    answering = asyncio.ensure_future(room.answer(agent, task.id, "yes"))
    await eventually(lambda: standing, what="the handler is half way")
    assert texts(await room.read(agent, task.id)) == ["kept", "half "]
    crashed.set()
    await room.crash()
    answering.cancel()
    await room.start(agent)
    task = await room.ended(agent, task.id)
    assert (state(task), texts(task)) == (S.COMPLETED, ["kept", "half whole, yes, attempt 2"])
    assert history(task) == ["Hello", "Go on?", "yes", "half way"]
    (resumed,) = [event for event in await room.events(task.id) if isinstance(event.change, Resumed)]
    assert resumed.attempt == 2


async def test_answers_do_not_count_as_attempts(room: EngineRoom) -> None:
    attempts: list[int] = []

    async def work(run: Run) -> str:
        attempts.append(run.attempt)
        for number in range(5):
            await run.ask(f"{number}?")
        return "done"

    agent = agent_of(work, max_attempts=1, on_lost_worker="fail")
    await room.start(agent)
    task = await asked(room, agent)
    for number in range(5):
        task = await room.answer(agent, task.id, f"{number}")
        if number % 2:
            await room.crash()
            await room.start(agent)
    assert (state(task), texts(task)) == (S.COMPLETED, ["done"])
    assert attempts == [1] * 6


@pytest.mark.parametrize(
    "change", ["question", "kind", "before", "step instead", "end", "fails", "swallows", "in a group"]
)
async def test_a_handler_that_no_longer_asks_the_same_fails_with_that_reason(
    room: EngineRoom, change: str
) -> None:
    entered: list[str] = []

    async def work(run: Run) -> str:
        again = change if entered else ""
        entered.append(change)
        if again == "before":
            await run.working("an act that was not there")
        if again == "step instead":
            await run.step("look", lambda: 3)
        if again == "end":
            return "guessed"
        if again == "fails":
            await run.fail("a reason of its own")
        if again == "in a group":
            async with asyncio.TaskGroup() as group:
                group.create_task(run.ask("Something else?"))
        question = "Which one?" if again not in ("question", "swallows") else "Something else?"
        try:
            await (run.require_auth(question) if again == "kind" else run.ask(question))
        except Exception:
            if again != "swallows":
                raise
        return "guessed"

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.answer(agent, task.id, "the second")
    assert (state(task), texts(task)) == (S.FAILED, [])
    assert spoken(task) == "The agent changed while it was interrupted, so this run could not go on."


async def test_a_question_with_a_name_may_be_put_in_other_words(room: EngineRoom) -> None:
    words = iter(["Which one?", "Which one do you mean?"])

    async def work(run: Run) -> str:
        return (await run.ask(next(words), name="which")).text

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.answer(agent, task.id, "the second")
    assert (state(task), texts(task)) == (S.COMPLETED, ["the second"])


async def test_a_message_agent_cannot_ask_because_nobody_could_answer(room: EngineRoom) -> None:
    refused: list[BaseException] = []

    async def work(run: Run) -> str:
        for act in (run.ask, run.require_auth):
            try:
                await act("Which one?")
            except IllegalChange as error:
                refused.append(error)
        return "nothing asked"

    agent = agent_of(work, replies="message")
    await room.start(agent)
    reply = await room.send(agent, "Hello")
    assert isinstance(reply, Message)
    assert reply.text == "nothing asked"
    assert len(refused) == 2


async def test_what_a_step_tells_of_its_progress_is_part_of_the_step(room: EngineRoom) -> None:
    """It is not done again with the step, so the acts after it must not be taken for it."""

    async def work(run: Run) -> str:
        async def look() -> str:
            await run.working("looking")
            await asyncio.gather(run.working("on the left"), run.working("on the right"))
            return "found"

        found = await run.step("look", look)
        await run.working("thinking")
        answer = await run.ask("Take it?")
        await run.working("taking")
        return f"{found} and taken: {answer.text}"

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.answer(agent, task.id, "yes")
    assert (state(task), texts(task)) == (S.COMPLETED, ["found and taken: yes"])
    said_by_agent = ["looking", "on the left", "on the right", "thinking", "Take it?", "yes", "taking"]
    assert history(task) == ["Hello", *said_by_agent]


async def test_an_artifact_of_a_step_is_not_taken_for_one_that_comes_after_it(room: EngineRoom) -> None:
    async def work(run: Run) -> None:
        await run.step("draw", lambda: run.artifact("a picture"))
        report = await run.artifact("begun, ", last=False)
        answer = await run.ask("Go on?")
        await run.append(report, answer.text, last=True)
        await run.artifact("an end")

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.answer(agent, task.id, "ended")
    assert (state(task), texts(task)) == (S.COMPLETED, ["a picture", "begun, ended", "an end"])


async def test_what_a_step_in_a_thread_tells_of_its_progress_is_part_of_the_step(room: EngineRoom) -> None:
    def work(run: BlockingRun) -> str:
        run.step("look", lambda: run.working("looking"))
        run.working("thinking")
        answer = run.ask("Take it?")
        return answer.text

    agent = agent_of(work)
    await room.start(agent)
    task = await asked(room, agent)
    task = await room.answer(agent, task.id, "yes")
    assert (state(task), texts(task)) == (S.COMPLETED, ["yes"])
    assert history(task) == ["Hello", "looking", "thinking", "Take it?", "yes"]


@pytest.mark.parametrize("inner", ["ask", "step"])
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_step_holds_no_other_point_of_the_journal(room: EngineRoom, kind: str, inner: str) -> None:
    async def work(run: Run) -> Any:
        return await run.step(
            "outer", lambda: run.ask("Which?") if inner == "ask" else run.step("inner", lambda: 1)
        )

    def work_in_thread(run: BlockingRun) -> Any:
        return run.step(
            "outer", lambda: run.ask("Which?") if inner == "ask" else run.step("inner", lambda: 1)
        )

    agent = agent_of(work if kind == "async" else work_in_thread)
    await room.start(agent)
    task = await room.send(agent, "Hello")
    assert (state(task), spoken(task)) == (S.FAILED, "The agent failed while it handled the message.")


async def test_a_plain_handler_that_asks_gives_its_thread_back(room: EngineRoom) -> None:
    names: set[str] = set()

    def work(run: BlockingRun) -> str:
        names.add(threading.current_thread().name)
        return run.ask("Which one?").text

    agent = agent_of(work, max_runs=2)
    await room.start(agent)
    tasks = [await asked(room, agent, f"{number}") for number in range(20)]
    assert len(names) <= 2
    for number, task in enumerate(tasks):
        assert texts(await room.answer(agent, task.id, f"{number}")) == [f"{number}"]
