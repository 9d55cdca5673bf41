"""One attempt of a run: legal acts, once each, under a lease."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway.execute import Execution, execute
from dragoman.gateway.ports import JournalEntry, Lease
from dragoman.model import Message, Reply, Role, StatusChange, TaskState, TextPart
from dragoman.model.errors import Fenced, IllegalChange, Unavailable
from dragoman.model.payload import pack, unpack
from tests.unit.gateway.attempt import begun
from tests.unit.gateway.scripted import chunk, play, spoken, status

WORKING, COMPLETED, FAILED = TaskState.WORKING, TaskState.COMPLETED, TaskState.FAILED
SAID = Message(message_id="", role=Role.USER, parts=(TextPart(text="Hello"),))


async def step(execution: Execution, name: str, perform: Callable[[], Awaitable[Any]]) -> Any:
    """A journaled point, as `Run.step` makes one."""
    point = execution.recall("step", name)
    known = point.known
    if known is None:
        known = await execution.remember(point, await perform())
    return unpack(known.result)


def test_a_handler_that_returns_has_completed() -> None:
    async def scenario() -> None:
        attempt = await begun()
        await execute(attempt.execution, lambda execution: execution.act(status(WORKING)))
        assert attempt.done == [status(WORKING), StatusChange(COMPLETED)]
        assert attempt.execution.ended

    play(scenario())


def test_an_artifact_of_a_run_that_has_not_begun_begins_it() -> None:
    async def scenario() -> None:
        attempt = await begun()
        await attempt.execution.act(chunk("x"))
        assert attempt.done == [StatusChange(WORKING), chunk("x")]
        assert attempt.execution.state is WORKING

    play(scenario())


def test_an_illegal_act_is_refused_at_the_call_and_stores_nothing() -> None:
    async def scenario() -> None:
        attempt = await begun()
        await attempt.execution.act(status(TaskState.INPUT_REQUIRED))
        before = attempt.done
        for changes in ([chunk("x")], [status(WORKING), status(TaskState.SUBMITTED)]):
            with pytest.raises(IllegalChange):
                await attempt.execution.act(*changes)
        assert attempt.done == before
        assert attempt.execution.state is TaskState.INPUT_REQUIRED

    play(scenario())


def test_a_run_that_has_ended_takes_no_further_act() -> None:
    async def scenario() -> None:
        attempt = await begun()
        await attempt.execution.act(status(COMPLETED))
        with pytest.raises(IllegalChange, match="has ended"):
            await attempt.execution.act(status(WORKING))
        assert attempt.done == [status(COMPLETED)]

    play(scenario())


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_whatever_a_handler_raises_ends_its_run_without_telling_its_text(kind: type[BaseException]) -> None:
    async def crash(execution: Execution) -> None:
        raise kind("the secret password is 1234")

    async def scenario() -> None:
        attempt = await begun()
        await execute(attempt.execution, crash)
        (end,) = attempt.done
        assert end.state is FAILED
        assert end.message.role is Role.AGENT
        assert "secret" not in end.message.text and "1234" not in end.message.text

    play(scenario())


@pytest.mark.parametrize("stopped", [True, False], ids=["by the engine", "by somebody else"])
def test_a_handler_that_is_cancelled_writes_nothing_if_it_was_stopped_and_fails_if_not(stopped: bool) -> None:
    async def wait(execution: Execution) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        attempt = await begun()
        running = asyncio.ensure_future(execute(attempt.execution, wait))
        await asyncio.sleep(0)
        if stopped:
            attempt.execution.stop()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled() == stopped
        assert [change.state for change in attempt.done] == ([] if stopped else [FAILED])

    play(scenario())


def test_a_run_that_was_fenced_out_ends_silently() -> None:
    async def stubborn(execution: Execution) -> None:
        for _ in range(3):
            with pytest.raises(Fenced):
                await execution.act(status(WORKING))
        raise Fenced("as before")

    async def scenario() -> None:
        attempt = await begun()
        attempt.store.fence(attempt.ref.lease.task_id)
        await execute(attempt.execution, stubborn)
        assert attempt.done == []
        assert attempt.execution.cancelled

    play(scenario())


def test_a_run_that_is_told_to_stop_writes_nothing_more() -> None:
    async def scenario() -> None:
        attempt = await begun()
        attempt.execution.stop()
        with pytest.raises(Fenced):
            await attempt.execution.act(status(WORKING))
        assert attempt.done == []

    play(scenario())


def test_an_act_is_written_again_while_the_store_is_unavailable() -> None:
    async def scenario() -> None:
        attempt = await begun()
        attempt.store.failures = [Unavailable("disk full"), Unavailable("disk full")]
        await attempt.execution.act(status(WORKING))
        assert attempt.done == [status(WORKING)]

    play(scenario())


def test_a_run_that_is_stopped_while_the_store_is_unavailable_gives_up() -> None:
    async def scenario() -> None:
        attempt = await begun()
        attempt.store.failures = [Unavailable("disk full")] * 1000
        acting = asyncio.ensure_future(attempt.execution.act(status(WORKING)))
        await asyncio.sleep(0)
        attempt.execution.stop()
        with pytest.raises(Fenced):
            await acting
        assert attempt.done == []

    play(scenario())


@pytest.mark.parametrize(
    ("replies", "revealed", "expected"),
    [
        ("task", False, StatusChange(COMPLETED, spoken("hi"))),
        ("message", False, Reply(structs.replace(spoken("hi"), task_id=""))),
        ("either", False, Reply(spoken("hi"))),
        ("either", True, StatusChange(COMPLETED, spoken("hi"))),
    ],
)
def test_a_bare_reply_completes_the_task_where_one_is_shown(
    replies: str, revealed: bool, expected: Any
) -> None:
    async def scenario() -> None:
        attempt = await begun(replies)
        if revealed:
            await attempt.execution.act(status(WORKING))
        await attempt.execution.reply(spoken("hi"))
        assert attempt.done[-1] == expected
        assert attempt.execution.ended

    play(scenario())


def test_a_bare_reply_points_to_no_task_that_nobody_can_see() -> None:
    async def scenario() -> None:
        attempt = await begun("message")
        said = Message(
            message_id="r", role=Role.AGENT, parts=(TextPart(text="hi"),), task_id="hidden", context_id="c"
        )
        await attempt.execution.reply(said)
        (reply,) = attempt.done
        assert (reply.message.task_id, reply.message.context_id) == ("", "c")

    play(scenario())


def test_a_step_is_performed_once_whatever_becomes_of_the_attempt() -> None:
    performed: list[str] = []

    async def pay() -> dict[str, Any]:
        performed.append("paid")
        return {"receipt": 2**70, "z": 1, "a": None}

    async def scenario() -> None:
        attempt = await begun()
        first = await step(attempt.execution, "pay", pay)
        for _ in range(2):
            attempt = attempt.again()
            await attempt.execution.prepare()
            again = await step(attempt.execution, "pay", pay)
            assert list(again.items()) == list(first.items()) == [("receipt", 2**70), ("z", 1), ("a", None)]
        assert performed == ["paid"]

    play(scenario())


def test_acts_before_the_last_journaled_point_are_not_committed_again() -> None:
    async def handler(execution: Execution) -> None:
        await execution.act(status(WORKING, "one"))
        await step(execution, "s", lambda: asyncio.sleep(0, "result"))
        await execution.act(status(WORKING, "two"))

    async def scenario() -> None:
        attempt = await begun()
        await handler(attempt.execution)
        assert attempt.done == [status(WORKING, "one"), status(WORKING, "two")]
        attempt = attempt.again()
        await execute(attempt.execution, handler)
        assert attempt.done[2:] == [status(WORKING, "two"), StatusChange(COMPLETED)]

    play(scenario())


@pytest.mark.parametrize(
    "entry",
    [
        JournalEntry(ordinal=1, kind="step", name="other", acts=1, result=pack(1)),
        JournalEntry(ordinal=1, kind="step", name="s", acts=0, result=pack(1)),
        JournalEntry(ordinal=1, kind="ask", name="s", acts=1, result=pack(1)),
    ],
)
def test_a_handler_that_no_longer_matches_its_journal_fails(entry: JournalEntry) -> None:
    async def handler(execution: Execution) -> None:
        await execution.act(status(WORKING, "one"))
        await step(execution, "s", lambda: asyncio.sleep(0, "result"))

    async def scenario() -> None:
        attempt = (await begun()).again()
        await attempt.store.record(Lease(attempt.ref.lease.task_id, 1), entry)
        await execute(attempt.execution, handler)
        end = attempt.done[-1]
        assert end.state is FAILED
        assert "could not go on" in end.message.text

    play(scenario())


def test_every_attempt_that_does_the_same_has_the_same_ids_for_its_artifacts() -> None:
    async def scenario() -> None:
        first, other = await begun(), await begun()
        ids = [first.execution.next_artifact_id() for _ in range(3)]
        assert [first.again().execution.next_artifact_id() for _ in range(3)] == [ids[0]] * 3
        again = first.again().execution
        assert [again.next_artifact_id() for _ in range(3)] == ids
        assert len({*ids, other.execution.next_artifact_id()}) == 4

    play(scenario())


def test_no_remote_agent_is_called_from_inside_of_a_step_or_where_none_can_be() -> None:
    async def scenario() -> None:
        execution = (await begun()).execution
        with pytest.raises(IllegalChange, match="no remote agent can be called"):
            await execution.call("c", "helper", SAID)
        with execution.performing(), pytest.raises(IllegalChange, match="inside of a step"):
            await execution.call("c", "helper", SAID)

    asyncio.run(scenario())
