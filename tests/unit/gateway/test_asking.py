"""Where a handler asks: its run is parked once, whatever the store and the handler's surroundings do meanwhile."""

import asyncio

import pytest

from dragoman.gateway.execute import Execution, Parked, execute
from dragoman.gateway.journal import Journal, JournalMismatch
from dragoman.gateway.ports import JournalEntry
from dragoman.model import Message, StatusChange, TaskState
from dragoman.model.errors import Fenced, IllegalChange, Unavailable
from dragoman.model.payload import ABSENT, pack
from tests.unit.gateway.attempt import begun
from tests.unit.gateway.scripted import play, status

ASKING, WORKING, COMPLETED = TaskState.INPUT_REQUIRED, TaskState.WORKING, TaskState.COMPLETED
QUESTION = status(ASKING, "which?")


async def ask(execution: Execution) -> Message:
    return await execution.ask("ask", "which", QUESTION)


def entry(ordinal: int, kind: str = "step", name: str = "s", acts: int = 0) -> JournalEntry:
    return JournalEntry(ordinal=ordinal, kind=kind, name=name, acts=acts, result=pack(None))


def test_a_question_parks_the_run_and_its_answer_is_returned_when_it_is_asked_again() -> None:
    answers: list[str] = []

    async def handler(execution: Execution) -> None:
        answers.append((await ask(execution)).text)

    async def scenario() -> None:
        attempt = await begun()
        parked: list[str] = []
        attempt.execution.on_parked = parked.append
        await execute(attempt.execution, handler)
        assert attempt.done == [QUESTION]
        assert parked == [attempt.ref.lease.task_id]
        assert await attempt.store.journal(attempt.ref.lease) == (
            JournalEntry(ordinal=1, kind="ask", name="which", acts=0, result=ABSENT),
        )
        attempt = await attempt.answered("this")
        await execute(attempt.execution, handler)
        assert answers == ["this"]
        assert attempt.done[-1] == StatusChange(COMPLETED)

    play(scenario())


def test_what_the_handler_does_after_its_question_is_refused_every_time() -> None:
    async def scenario() -> None:
        execution = (await begun()).execution
        for act in (
            lambda: ask(execution),
            lambda: ask(execution),
            lambda: execution.act(status(WORKING)),
            lambda: execution.commit(status(COMPLETED)),
        ):
            with pytest.raises(Parked):
                await act()
        with pytest.raises(Parked):
            execution.recall("step", "s")
        assert execution.state is ASKING and not execution.ended

    play(scenario())


def test_parking_is_tried_again_while_the_store_is_unavailable_also_when_nobody_waits_for_it() -> None:
    async def impatient(execution: Execution) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(execution), 0.01)

    async def scenario() -> None:
        attempt = await begun()
        attempt.store.failures = [Unavailable("disk full"), Unavailable("disk full")]
        await execute(attempt.execution, impatient)
        assert attempt.done == [QUESTION]
        assert await attempt.execution.is_parked()

    play(scenario())


def test_a_run_that_is_stopped_while_it_cannot_be_parked_is_not_parked() -> None:
    async def scenario() -> None:
        attempt = await begun()
        attempt.store.failures = [Unavailable("disk full")] * 1000
        asking = asyncio.ensure_future(ask(attempt.execution))
        await asyncio.sleep(0)
        attempt.execution.stop()
        with pytest.raises(Fenced):
            await asking
        assert not await attempt.execution.is_parked()
        assert attempt.done == []

    play(scenario())


def test_a_run_that_was_fenced_out_cannot_be_parked() -> None:
    async def scenario() -> None:
        attempt = await begun()
        attempt.store.fence(attempt.ref.lease.task_id)
        await execute(attempt.execution, ask)  # type: ignore[arg-type]
        assert attempt.done == []
        assert attempt.execution.cancelled

    play(scenario())


@pytest.mark.parametrize("replies", ["task", "either"])
def test_a_question_that_cannot_be_asked_now_leaves_the_run_at_work(replies: str) -> None:
    async def scenario() -> None:
        attempt = await begun(replies)
        await attempt.execution.act(status(TaskState.AUTH_REQUIRED))
        with pytest.raises(IllegalChange):
            await ask(attempt.execution)
        await attempt.execution.act(status(WORKING))
        assert not await attempt.execution.is_parked()

    play(scenario())


def test_a_message_agent_has_nobody_to_ask() -> None:
    async def scenario() -> None:
        attempt = await begun("message")
        with pytest.raises(IllegalChange, match="nobody could answer"):
            await ask(attempt.execution)
        assert attempt.done == []

    play(scenario())


def test_points_and_acts_are_followed_in_their_order() -> None:
    journal = Journal()
    journal.load([entry(1), entry(2, "ask", "which", 2)])
    assert journal.next_point("step", "s").known == entry(1)
    assert [journal.next_act(), journal.next_act()] == [False, False]
    assert journal.next_point("ask", "which").known == entry(2, "ask", "which", 2)
    assert journal.next_act()
    point = journal.next_point("step", "new")
    assert (point.ordinal, point.acts, point.known) == (3, 3, None)
    journal.check_end()


@pytest.mark.parametrize(("kind", "name", "acts"), [("ask", "s", 0), ("step", "t", 0), ("step", "s", 1)])
def test_another_point_than_the_journals_is_a_mismatch_that_stays(kind: str, name: str, acts: int) -> None:
    journal = Journal()
    journal.load([entry(1)])
    for _ in range(acts):
        journal.next_act()
    with pytest.raises(JournalMismatch, match="point 1 of the journal is step 's' after 0 acts") as found:
        journal.next_point(kind, name)
    assert journal.mismatch is found.value


def test_an_end_before_the_last_known_point_is_a_mismatch() -> None:
    journal = Journal()
    journal.load([entry(1), entry(2)])
    journal.next_point("step", "s")
    with pytest.raises(JournalMismatch, match="ends after 1 points, but the journal has 2"):
        journal.check_end()


def test_what_a_step_does_is_always_new_and_never_counts() -> None:
    journal = Journal()
    journal.load([entry(1, acts=5)])
    with journal.performing():
        assert [journal.next_act(), journal.next_act()] == [True, True]
        with pytest.raises(IllegalChange, match="inside of a step"):
            journal.next_point("step", "inner")
    assert not journal.next_act()
