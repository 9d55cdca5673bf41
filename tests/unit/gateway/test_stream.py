"""Streams: a snapshot, then every event, to the end; and nothing left behind."""

import asyncio
from typing import Any

import pytest

from dragoman.gateway import EventStream
from dragoman.gateway.observe import MAX_EVENTS
from dragoman.gateway.ports import Lease
from dragoman.model import Received, Resumed, Role, Task, TaskFold, TaskState, TextPart
from dragoman.model.card import Capabilities
from dragoman.model.errors import TaskNotFound, UnsupportedOperation
from dragoman.model.message import Message
from dragoman.model.operation import Operation, Request, SubscribeToTask
from tests.unit.gateway.scripted import OTHERS, World, chunk, message, play, shown, status, told

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED
SEND, SUBSCRIBE = Operation.SEND_STREAMING_MESSAGE, Operation.SUBSCRIBE_TO_TASK


async def answer_in_full(world: World, lease: Lease) -> None:
    await world.act(lease, status(WORKING, "on it"))
    await world.act(lease, chunk("one"))
    await world.act(lease, chunk("two", append=True), status(COMPLETED))


async def accepted(world: World) -> Lease:
    """Have a message accepted, and return the lease of its run."""
    answer = await world.send(message(return_immediately=True))
    assert isinstance(answer.result, Task)
    return Lease(answer.result.id, 1)


async def subscribed(world: World, lease: Lease, last_event: int | None = None) -> EventStream:
    return await world.stream(SUBSCRIBE, SubscribeToTask(task_id=lease.task_id, last_event=last_event))


def test_a_sent_message_streams_its_task_from_the_first_state_to_the_last() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        stream = await world.stream(SEND, message())
        assert world.hub.count() == 1
        assert await told(stream) == [
            "1 task SUBMITTED",
            "2 WORKING",
            "3 artifact one",
            "4 more two",
            "5 COMPLETED",
        ]
        assert world.hub.count() == 0

    play(scenario())


def test_the_stream_of_an_answer_tells_all_that_came_of_it_however_quick_that_was() -> None:
    async def ask_once(world: World, lease: Lease) -> None:
        first = world.store.state(lease.task_id) is TaskState.SUBMITTED
        await world.act(lease, status(ASKING, "which?") if first else status(COMPLETED, "that one"))

    async def scenario() -> None:
        world = World(ask_once)
        lease = await accepted(world)
        await world.settle()
        read = world.store.read

        async def read_late(*args: Any, **options: Any) -> TaskFold:
            await world.settle()
            return await read(*args, **options)

        world.store.read = read_late  # type: ignore[method-assign]
        stream = await world.stream(SEND, message("this", message_id="n", task_id=lease.task_id))
        assert await told(stream) == ["3 task WORKING", "4 COMPLETED"]

    play(scenario())


def test_a_send_stream_ends_when_it_is_the_callers_turn_to_speak() -> None:
    async def ask(world: World, lease: Lease) -> None:
        await world.act(lease, status(WORKING), status(ASKING, "which?"))

    async def scenario() -> None:
        world = World(ask)
        stream = await world.stream(SEND, message())
        assert await told(stream) == ["1 task SUBMITTED", "2 WORKING", "3 INPUT_REQUIRED"]

    play(scenario())


def test_a_send_stream_ends_at_the_question_also_if_somebody_has_answered_already() -> None:
    async def ask(world: World, lease: Lease) -> None:
        await world.act(lease, status(ASKING, "which?"), status(WORKING), status(ASKING, "which then?"))

    async def scenario() -> None:
        stream = await World(ask).stream(SEND, message())
        items = [item async for item in stream.items if item is not None]
        assert [(item.seq, item.last) for item in items] == [(1, False), (2, True)]

    play(scenario())


def test_a_send_stream_goes_on_while_the_caller_authorises() -> None:
    async def ask(world: World, lease: Lease) -> None:
        await world.act(lease, status(WORKING), status(TaskState.AUTH_REQUIRED))
        await world.act(lease, status(WORKING), status(COMPLETED))

    async def scenario() -> None:
        stream = await World(ask).stream(SEND, message())
        assert (await told(stream))[-1] == "5 COMPLETED"

    play(scenario())


def test_the_same_message_streamed_again_begins_with_the_task_as_it_stands() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        await world.send(message())
        stream = await world.stream(SEND, message())
        assert stream.replayed
        assert await told(stream) == ["5 task COMPLETED"]
        assert world.hub.count() == 0

    play(scenario())


def test_an_undecided_run_is_shown_as_it_was_accepted_once_it_turns_out_to_be_a_task() -> None:
    async def scenario() -> None:
        stream = await World(answer_in_full, replies="either").stream(SEND, message())
        assert (await told(stream))[:3] == ["1 task SUBMITTED", "2 WORKING", "3 artifact one"]

    play(scenario())


def test_a_subscription_begins_with_the_task_and_ends_with_it() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(WORKING))
        stream = await subscribed(world, lease)
        await world.act(lease, status(ASKING))
        await world.store.append(lease, [status(WORKING), chunk("x"), status(COMPLETED)])
        assert await told(stream) == [
            "2 task WORKING",
            "3 INPUT_REQUIRED",
            "4 WORKING",
            "5 artifact x",
            "6 COMPLETED",
        ]
        assert world.hub.count() == 0

    play(scenario())


def test_every_observer_of_a_task_sees_the_same_events_in_the_same_order() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        streams = [await subscribed(world, lease) for _ in range(3)]
        reading = [asyncio.ensure_future(told(stream)) for stream in streams]
        await asyncio.sleep(0)
        await answer_in_full(world, lease)
        seen = await asyncio.gather(*reading)
        assert seen[0] == seen[1] == seen[2]
        assert len(seen[0]) == 5

    play(scenario())


@pytest.mark.parametrize("state", [COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED])
def test_a_finished_task_cannot_be_subscribed_to(state: TaskState) -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(state))
        with pytest.raises(UnsupportedOperation, match=f"finished \\({state.name}\\)"):
            await subscribed(world, lease)
        assert world.hub.count() == 0

    play(scenario())


def test_a_task_that_is_missing_or_somebody_elses_cannot_be_subscribed_to() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        with pytest.raises(TaskNotFound):
            await subscribed(world, Lease("unknown", 1))
        for scope in OTHERS:
            with pytest.raises(TaskNotFound):
                await world.gateway.perform(
                    world.call(scope=scope), SUBSCRIBE, SubscribeToTask(task_id=lease.task_id)
                )
        assert world.hub.count() == 0

    play(scenario())


@pytest.mark.parametrize(
    ("operation", "request_"), [(SEND, message()), (SUBSCRIBE, SubscribeToTask(task_id="t"))]
)
def test_an_agent_that_does_not_stream_says_so(operation: Operation, request_: Request) -> None:
    async def scenario() -> None:
        world = World(capabilities=Capabilities(streaming=False))
        with pytest.raises(UnsupportedOperation, match="does not stream"):
            await world.stream(operation, request_)
        assert (world.store.logs, world.hub.count()) == ({}, 0)

    play(scenario())


@pytest.mark.parametrize(
    ("last_event", "expected"),
    [
        (1, ["2 WORKING", "3 artifact one", "4 more two", "5 COMPLETED"]),
        (3, ["4 more two", "5 COMPLETED"]),
        (5, []),
    ],
)
def test_a_lost_stream_goes_on_after_the_last_event_even_of_a_finished_task(
    last_event: int, expected: list[str]
) -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await answer_in_full(world, lease)
        stream = await subscribed(world, lease, last_event)
        assert await told(stream) == expected
        assert world.hub.count() == 0

    play(scenario())


def test_a_lost_stream_goes_on_with_what_is_still_to_come() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(WORKING))
        stream = await subscribed(world, lease, 1)
        await world.act(lease, status(COMPLETED))
        assert await told(stream) == ["2 WORKING", "3 COMPLETED"]

    play(scenario())


@pytest.mark.parametrize("last_event", [0, 3, 1000])
def test_an_event_that_never_was_begins_with_a_snapshot(last_event: int) -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        await world.act(lease, status(WORKING))
        stream = await subscribed(world, lease, last_event)
        await world.act(lease, status(COMPLETED))
        assert await told(stream) == ["2 task WORKING", "3 COMPLETED"]

    play(scenario())


def test_an_observer_that_falls_behind_goes_on_from_a_new_snapshot() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        stream = await subscribed(world, lease)
        for number in range(MAX_EVENTS + 10):
            await world.act(lease, status(WORKING, str(number)))
        seen = [shown(await anext(stream.items)) for _ in range(2)]
        assert seen == ["1 task SUBMITTED", f"{MAX_EVENTS + 11} task WORKING"]
        await world.act(lease, status(COMPLETED))
        assert await told(stream) == [f"{MAX_EVENTS + 12} COMPLETED"]

    play(scenario())


def test_a_run_that_was_taken_over_is_shown_anew() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        stream = await subscribed(world, lease)
        await world.act(lease, status(WORKING), chunk("lost"), Resumed(1), chunk("anew"), status(COMPLETED))
        assert await told(stream) == [
            "1 task SUBMITTED",
            "2 WORKING",
            "3 artifact lost",
            "4 task WORKING",
            "5 artifact anew",
            "6 COMPLETED",
        ]

    play(scenario())


def test_a_message_of_the_caller_that_moves_nothing_is_not_shown() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        stream = await subscribed(world, lease)
        more = Message(message_id="n", role=Role.USER, parts=(TextPart(text="and this"),))
        await world.act(lease, status(WORKING), Received(more), status(COMPLETED))
        assert await told(stream) == ["1 task SUBMITTED", "2 WORKING", "4 COMPLETED"]

    play(scenario())


def test_a_stream_that_is_left_early_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        stream = await subscribed(world, lease)
        assert shown(await anext(stream.items)) == "1 task SUBMITTED"
        await stream.items.aclose()
        stream.release()
        assert world.hub.count() == 0

    play(scenario())


def test_a_stream_that_is_never_read_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        world = World()
        lease = await accepted(world)
        for stream in (await subscribed(world, lease), await world.stream(SEND, message(message_id="n"))):
            stream.release()
            stream.release()
        assert world.hub.count() == 0

    play(scenario())
