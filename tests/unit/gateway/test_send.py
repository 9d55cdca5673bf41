"""Accepting a message, and what its sender is told."""

import asyncio
import contextlib

import pytest

from dragoman.gateway.extensions import IDEMPOTENCY
from dragoman.gateway.ports import Lease
from dragoman.model import (
    DataPart,
    Message,
    PushConfig,
    RawPart,
    Received,
    Reply,
    Task,
    TaskState,
    TextPart,
    UrlPart,
)
from dragoman.model.errors import (
    ContentTypeNotSupported,
    InvalidAgentResponse,
    MessageIdConflict,
    PushNotificationNotSupported,
    QuotaExceeded,
    Unavailable,
)
from dragoman.model.operation import Operation
from tests.unit.gateway.scripted import World, chunk, message, play, spoken, status, told

WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED
STREAM = Operation.SEND_STREAMING_MESSAGE


async def answer_in_full(world: World, lease: Lease) -> None:
    await world.act(lease, status(WORKING, "on it"))
    await world.act(lease, chunk("one"), chunk("two", append=True))
    await world.act(lease, status(COMPLETED))


async def reply_at_once(world: World, lease: Lease) -> None:
    await world.act(lease, Reply(spoken("hello, you")), reveal=False)


async def never_end(world: World, lease: Lease) -> None:
    await world.act(lease, status(WORKING))


async def end_without_reply(world: World, lease: Lease) -> None:
    await world.act(lease, status(COMPLETED), reveal=False)


def test_a_blocking_send_is_answered_with_the_finished_task() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        answer = await world.send(message())
        assert isinstance(answer.result, Task) and not answer.replayed
        assert answer.result.status.state is COMPLETED
        (artifact,) = answer.result.artifacts or ()
        assert [part.text for part in artifact.parts if isinstance(part, TextPart)] == ["one", "two"]
        assert [said.text for said in answer.result.history] == ["hello", "on it"]
        assert world.hub.count() == 0

    play(scenario())


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_a_blocking_send_is_answered_when_it_is_the_callers_turn(state: TaskState) -> None:
    async def ask(world: World, lease: Lease) -> None:
        await world.act(lease, status(WORKING), status(state, "which one?"))

    async def scenario() -> None:
        answer = await World(ask).send(message())
        assert isinstance(answer.result, Task)
        assert answer.result.status.state is state
        assert answer.result.status.message == spoken("which one?")

    play(scenario())


def test_a_send_that_does_not_wait_is_answered_as_soon_as_the_message_is_accepted() -> None:
    async def scenario() -> None:
        world = World(never_end)
        answer = await world.send(message(return_immediately=True))
        assert isinstance(answer.result, Task)
        assert answer.result.status.state is TaskState.SUBMITTED
        assert world.hub.count() == 0

    play(scenario())


def test_a_send_whose_window_passes_is_answered_with_the_task_as_it_stands() -> None:
    async def scenario() -> None:
        world = World(never_end, window=0.05)
        answer = await world.send(message())
        assert isinstance(answer.result, Task)
        assert answer.result.status.state is WORKING
        assert world.hub.count() == 0

    play(scenario())


@pytest.mark.parametrize(
    ("length", "texts"), [(None, ["hello", "on it"]), (0, []), (1, ["on it"]), (9, ["hello", "on it"])]
)
def test_the_history_of_an_answer_is_as_long_as_was_asked(length: int | None, texts: list[str]) -> None:
    async def scenario() -> None:
        answer = await World(answer_in_full).send(message(history_length=length))
        assert isinstance(answer.result, Task)
        assert [said.text for said in answer.result.history] == texts

    play(scenario())


def test_the_same_message_again_is_the_same_task() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        first, second = await world.send(message()), await world.send(message())
        assert (first.replayed, second.replayed) == (False, True)
        assert first.result == second.result
        assert len(world.store.logs) == 1
        assert world.hub.count() == 0

    play(scenario())


def test_the_same_message_sent_again_while_it_is_worked_on_waits_for_the_same_end() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        answers = await asyncio.gather(*(world.send(message()) for _ in range(5)))
        assert sorted(answer.replayed for answer in answers) == [False, True, True, True, True]
        assert all(answer.result == answers[0].result for answer in answers)
        assert len(world.store.logs) == 1

    play(scenario())


def test_another_message_under_a_used_id_is_refused() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        await world.send(message("one"))
        for other in (message("two"), message("one", metadata=DataPart.of({"a": 1}).data)):
            with pytest.raises(MessageIdConflict):
                await world.send(other)
            with pytest.raises(MessageIdConflict):
                await world.stream(STREAM, other)
        assert len(world.store.logs) == 1
        assert world.hub.count() == 0

    play(scenario())


def test_an_agent_may_leave_it_to_the_caller_to_ask_for_idempotency() -> None:
    async def scenario() -> None:
        world = World(answer_in_full, idempotency="requested")
        await world.send(message())
        again = await world.send(message())
        assert (again.replayed, len(world.store.logs)) == (False, 2)
        assert [acceptance.idempotent for acceptance in world.store.acceptances] == [False, False]
        await world.send(message(message_id="n"), IDEMPOTENCY.uri)
        assert (await world.send(message(message_id="n"), IDEMPOTENCY.uri)).replayed

    play(scenario())


@pytest.mark.parametrize("operation", [Operation.SEND_MESSAGE, STREAM])
def test_a_push_configuration_is_refused_before_anything_is_stored(operation: Operation) -> None:
    async def scenario() -> None:
        world = World()
        with pytest.raises(PushNotificationNotSupported):
            await world.gateway.perform(
                world.call(),
                operation,
                message(push=PushConfig(generation="1.0", url="https://a.example/hook")),
            )
        assert (world.store.logs, world.hub.count()) == ({}, 0)

    play(scenario())


@pytest.mark.parametrize(
    ("modes", "media_type", "taken"),
    [
        (("text/plain",), "", True),
        (("text/plain",), "text/plain", True),
        (("text/plain",), "Text/PLAIN; charset=utf-8", True),
        (("TEXT/plain",), "text/plain", True),
        (("text/*",), "text/html", True),
        (("*/*",), "image/png", True),
        (("image/png", "text/plain"), "text/plain", True),
        (("text/plain",), "text/html", False),
        (("text/*",), "textual/html", False),
        (("text/*",), "application/json", False),
        (("text/plain",), "text/plainer", False),
    ],
)
def test_a_part_has_a_media_type_that_the_agent_takes(
    modes: tuple[str, ...], media_type: str, taken: bool
) -> None:
    parts = (TextPart(text="x"), RawPart(raw=b"x", media_type=media_type), UrlPart(url="u"))

    async def scenario() -> None:
        world = World(answer_in_full, input_modes=modes)
        if taken:
            await world.send(message("", *parts))
        else:
            with pytest.raises(ContentTypeNotSupported) as refusal:
                await world.send(message("", *parts))
            assert refusal.value.metadata == {"field": "message.parts[1].mediaType"}
            assert world.store.logs == {}
        loose = World(answer_in_full, input_modes=modes, strict_input_modes=False)
        await loose.send(message("", *parts))

    play(scenario())


def test_an_agent_of_bare_messages_answers_with_one_and_shows_no_task() -> None:
    async def scenario() -> None:
        world = World(reply_at_once, replies="message")
        answer = await world.send(message())
        assert answer.result == spoken("hello, you")
        again = await world.send(message())
        assert (again.result, again.replayed) == (spoken("hello, you"), True)
        assert await told(await world.stream(STREAM, message())) == ["2 message hello, you"]
        assert world.hub.count() == 0

    play(scenario())


def test_an_agent_that_ends_without_the_message_it_owes_has_answered_wrongly() -> None:
    async def scenario() -> None:
        world = World(end_without_reply, replies="message")
        with pytest.raises(InvalidAgentResponse):
            await world.send(message())
        with pytest.raises(InvalidAgentResponse):
            await told(await world.stream(STREAM, message(message_id="n")))
        assert world.hub.count() == 0

    play(scenario())


def test_a_bare_message_that_is_not_there_in_time_is_to_be_asked_for_again() -> None:
    async def scenario() -> None:
        world = World(None, replies="message", window=0.05)
        with pytest.raises(Unavailable, match="send the same message again"):
            await world.send(message())
        assert world.hub.count() == 0

    play(scenario())


def test_an_agent_of_either_kind_answers_as_it_acted() -> None:
    async def act_by_text(world: World, lease: Lease) -> None:
        (received,) = world.store.changes(lease.task_id)
        assert isinstance(received, Received)
        await (answer_in_full if "task" in received.message.text else reply_at_once)(world, lease)

    async def scenario() -> None:
        world = World(act_by_text, replies="either")
        task = (await world.send(message("a task, please", message_id="m-1"))).result
        assert isinstance(task, Task) and task.status.state is COMPLETED
        bare = (await world.send(message("just a word", message_id="m-2"))).result
        assert isinstance(bare, Message) and bare.text == "hello, you"

    play(scenario())


@pytest.mark.parametrize("operation", [Operation.SEND_MESSAGE, STREAM])
def test_a_message_that_finds_the_queue_full_is_refused_before_anything_is_stored(
    operation: Operation,
) -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        world.engine.room = 0
        with pytest.raises(QuotaExceeded) as refusal:
            await world.gateway.perform(world.call(), operation, message())
        assert (refusal.value.metadata, refusal.value.retry_after) == ({"limit": "max_waiting"}, 5)
        assert (world.store.acceptances, world.hub.count()) == ([], 0)
        world.engine.room = 1
        assert not (await world.send(message())).replayed

    play(scenario())


def test_what_was_accepted_is_answered_at_a_full_queue() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        first = await world.send(message())
        world.engine.room = 0
        again = await world.send(message())
        assert (again.replayed, again.result) == (True, first.result)
        assert await told(await world.stream(STREAM, message())) == ["5 task COMPLETED"]
        with pytest.raises(MessageIdConflict):
            await world.send(message("another"))
        assert len(world.store.acceptances) == 1

    play(scenario())


def test_without_idempotency_no_message_is_known_at_a_full_queue() -> None:
    async def scenario() -> None:
        world = World(answer_in_full, idempotency="requested")
        await world.send(message())
        world.engine.room = 0
        with pytest.raises(QuotaExceeded):
            await world.send(message())

    play(scenario())


@pytest.mark.parametrize("state", [WORKING, TaskState.INPUT_REQUIRED])
def test_a_message_to_a_task_finds_its_way_past_a_full_queue(state: TaskState) -> None:
    async def stop_there(world: World, lease: Lease) -> None:
        if world.store.state(lease.task_id) is TaskState.SUBMITTED:
            await world.act(lease, status(state))

    async def scenario() -> None:
        world = World(stop_there)
        task = (await world.send(message(return_immediately=True))).result
        await world.settle()
        world.engine.room = 0
        assert isinstance(task, Task)
        more = message("more", message_id="n", task_id=task.id, return_immediately=True)
        answer = await world.send(more)
        assert isinstance(answer.result, Task)
        assert [said.text for said in answer.result.history] == ["hello", "more"]
        assert len(world.store.runs) == (2 if state.is_interrupted else 1)

    play(scenario())


@pytest.mark.parametrize("operation", [Operation.SEND_MESSAGE, STREAM])
def test_room_is_kept_while_a_message_is_accepted_and_not_longer(operation: Operation) -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        kept: list[list[str]] = []
        world.store.on_commit(
            lambda commit: kept.append(list(world.engine.reserved)) if commit.runs else None
        )
        await world.gateway.perform(world.call(), operation, message())
        assert kept == [[world.store.runs[0].lease.task_id]]
        assert world.engine.reserved == []
        for refused in (message(), message("other")):
            with contextlib.suppress(MessageIdConflict):
                await world.gateway.perform(world.call(), operation, refused)
            assert world.engine.reserved == []

    play(scenario())
