"""Whoever lost what let them in sees nothing more: waits and streams end with what they would be refused with."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
from msgspec import structs

from dragoman.gateway import Call, EventStream
from dragoman.gateway.ports import Lease
from dragoman.model import Task, TaskState
from dragoman.model.errors import Unauthenticated
from dragoman.model.operation import Operation, SubscribeToTask
from tests.unit.gateway.scripted import World, chunk, message, play, shown, status

WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED


class Permit:
    """What lets a caller go on, until it is taken."""

    def __init__(self) -> None:
        self.taken = False
        self.asked = 0

    def __call__(self) -> None:
        self.asked += 1
        if self.taken:
            raise Unauthenticated("Not any more", invalid=True)


class Script:
    """A run that acts when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.lease: Lease | None = None

    async def __call__(self, world: World, lease: Lease) -> None:
        self.lease = lease
        await world.act(lease, status(WORKING))
        await self.go_on.wait()
        await world.act(lease, chunk("secret"), status(COMPLETED))


async def nothing_but(stream: EventStream, expected: list[str], error: type[Exception]) -> None:
    seen: list[str] = []

    async def read() -> None:
        async for item in stream.items:
            seen.append(shown(item))

    with pytest.raises(error):
        await read()
    stream.release()
    assert seen == expected


def opened(world: World, permit: Permit) -> Call:
    return structs.replace(world.call(), still=permit)


async def sent(world: World, call: Call) -> EventStream:
    stream = await world.gateway.perform(call, Operation.SEND_STREAMING_MESSAGE, message())
    assert isinstance(stream, EventStream)
    return stream


async def subscribed(world: World, call: Call) -> EventStream:
    answer = await world.send(message(return_immediately=True))
    assert isinstance(answer.result, Task)
    asked = SubscribeToTask(task_id=answer.result.id)
    stream = await world.gateway.perform(call, Operation.SUBSCRIBE_TO_TASK, asked)
    assert isinstance(stream, EventStream)
    return stream


async def until_working(items: AsyncGenerator[object]) -> None:
    async for item in items:
        if "WORKING" in shown(item):
            return


@pytest.mark.parametrize("begin", [sent, subscribed])
def test_a_stream_that_waits_ends_at_once(begin: Callable[[World, Call], Awaitable[EventStream]]) -> None:
    async def scenario() -> None:
        world, permit = World(Script()), Permit()
        stream = await begin(world, opened(world, permit))
        await until_working(stream.items)
        waiting = asyncio.ensure_future(nothing_but(stream, [], Unauthenticated))
        await asyncio.sleep(0.01)
        world.hub.recheck()
        await asyncio.sleep(0.01)
        assert not waiting.done()
        permit.taken = True
        await asyncio.sleep(0.01)
        assert not waiting.done()
        world.hub.recheck()
        await waiting
        assert permit.asked == 2
        assert world.hub.count() == 0

    play(scenario())


@pytest.mark.parametrize("begin", [sent, subscribed])
def test_a_stream_shows_nothing_of_what_came_before_it_was_read_on(
    begin: Callable[[World, Call], Awaitable[EventStream]],
) -> None:
    async def scenario() -> None:
        script = Script()
        world, permit = World(script), Permit()
        stream = await begin(world, opened(world, permit))
        await until_working(stream.items)
        permit.taken = True
        world.hub.recheck()
        script.go_on.set()
        await world.settle()
        await nothing_but(stream, [], Unauthenticated)

    play(scenario())


def test_a_blocking_send_ends_with_what_its_caller_would_be_refused_with() -> None:
    async def scenario() -> None:
        script = Script()
        permit = Permit()
        world = World(script)
        waiting = asyncio.ensure_future(
            world.gateway.perform(opened(world, permit), Operation.SEND_MESSAGE, message())
        )
        await asyncio.sleep(0.01)
        permit.taken = True
        world.hub.recheck()
        with pytest.raises(Unauthenticated):
            await waiting
        assert world.hub.count() == 0
        # The run goes on: it was accepted.
        script.go_on.set()
        await world.settle()
        assert script.lease is not None
        fold = await world.store.read(world.call().scope, script.lease.task_id)
        assert fold.task().status.state is COMPLETED

    play(scenario())


class Expiring(Permit):
    """What lets a caller go on until its time."""

    def __init__(self, until: float) -> None:
        super().__init__()
        self.until = until

    def __call__(self) -> None:
        self.taken = time.time() >= self.until
        super().__call__()

    def opened(self, world: World) -> Call:
        principal = structs.replace(world.call().principal, expires_at=self.until)
        return structs.replace(world.call(), still=self, principal=principal)


def test_streams_end_each_at_the_moment_at_which_its_credential_expires() -> None:
    async def scenario() -> None:
        world, now = World(Script()), time.time()
        first = await sent(world, Expiring(now + 3600).opened(world))
        asked = SubscribeToTask(task_id=first.task_id)
        others = {}
        # The one that expires first comes last, and one expires between two that are there.
        for seconds in (0.3, 0.1, 0.2):
            stream = await world.gateway.perform(
                Expiring(now + seconds).opened(world), Operation.SUBSCRIBE_TO_TASK, asked
            )
            assert isinstance(stream, EventStream)
            others[seconds] = asyncio.ensure_future(_ended(stream))
        for seconds in sorted(others):
            ended_at = await others[seconds]
            assert now + seconds <= ended_at < now + seconds + 3
        assert world.hub.count() == 1
        first.release()

    play(scenario())


async def _ended(stream: EventStream) -> float:
    """Read a stream until it is refused, and return when that was."""

    async def read() -> None:
        async for _ in stream.items:
            continue

    with pytest.raises(Unauthenticated):
        await read()
    ended_at = time.time()
    stream.release()
    return ended_at


def test_others_are_not_disturbed() -> None:
    async def scenario() -> None:
        script = Script()
        world, permit, good = World(script), Permit(), Permit()
        bad_one = await sent(world, opened(world, permit))
        good_one = await world.gateway.perform(
            opened(world, good), Operation.SUBSCRIBE_TO_TASK, SubscribeToTask(task_id=bad_one.task_id)
        )
        assert isinstance(good_one, EventStream)
        permit.taken = True
        world.hub.recheck()
        await nothing_but(bad_one, ["1 task SUBMITTED"], Unauthenticated)
        script.go_on.set()
        seen = [shown(item) async for item in good_one.items]
        assert seen[-2:] == ["3 artifact secret", "4 COMPLETED"]

    play(scenario())
