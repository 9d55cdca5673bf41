"""`idle-streams`: what an open stream costs in memory while nothing happens on it.

One task is held working and every stream subscribes to it, so that the figure is
the stream's alone. With --own-tasks each stream comes from a SendStreamingMessage
of its own that is held: the cost of the stream and of its working task together.
Anonymous memory (Pss_Anon) is read before and after, each once it has settled.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from bench.callers import IdleStream
from bench.processes import Running, running
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import PEERS, Server
from bench.session import Session
from bench.usage import Memory, memory
from bench.wire import HOLD, Binding, Operation

SCENARIO = "idle-streams"
_AT_ONCE = 64  # streams that are being opened
_OPEN_LIMIT = 60.0  # seconds for one stream's first event
_SETTLED_KIB = 64
_SETTLING_LIMIT = 10.0  # seconds
_WARM_UP = 32  # streams opened and closed before the first reading


def idle_streams(session: Session) -> list[Sample]:
    """Measure every server, round by round."""
    # fasta2a works on one task at a time, so a second held task would never begin.
    peers = ("a2a-sdk", "js") if session.options.own_tasks else PEERS
    servers = session.servers(Operation.SUBSCRIBE, peers)
    return session.measure(SCENARIO, servers, partial(_measure, session))


def _measure(session: Session, server: Server, number: int) -> Sample:
    with running(server) as served:
        return asyncio.run(_measure_running(session, served, number))


async def _measure_running(session: Session, served: Running, number: int) -> Sample:
    options = session.options
    if options.own_tasks:
        request = served.wire(options.binding).send(Operation.STREAM, HOLD)
    else:
        request = subscription(served, options.binding)
    async with open_streams(served, request, _WARM_UP):
        pass
    before = await _settled_memory(served)
    async with open_streams(served, request, options.streams) as streams:
        after = await _settled_memory(served)
        ended = sum(not stream.is_open for stream in streams)
    if ended:
        raise WrongReply(f"{ended} of {options.streams} streams ended by themselves")
    return Sample(
        SCENARIO,
        served.server.name,
        number,
        {
            "kib_per_stream": (after.anonymous - before.anonymous) / options.streams,
            "rss_mib": after.rss / 1024,
            "anon_mib": after.anonymous / 1024,
        },
        f"{options.streams} streams" + (", own tasks" if options.own_tasks else ""),
    )


def subscription(served: Running, binding: Binding) -> bytes:
    """A request that subscribes to a task which is held working."""
    wire = served.wire(binding)
    caller = served.caller()
    held = caller.call(wire.send(Operation.IMMEDIATE, HOLD), Operation.IMMEDIATE)
    caller.close()
    return wire.subscribe(str(held.at("task", "id")))


@asynccontextmanager
async def open_streams(served: Running, request: bytes, count: int) -> AsyncIterator[list[IdleStream]]:
    """`count` streams from `request`, each past its first event, closed at the end.

    Raises:
        WrongReply: if a stream does not open, or not in time.
    """
    loop = asyncio.get_running_loop()
    turns = asyncio.Semaphore(_AT_ONCE)
    streams: list[IdleStream] = []

    async def open_one() -> None:
        async with turns, asyncio.timeout(_OPEN_LIMIT):
            _, stream = await loop.create_connection(lambda: IdleStream(request), served.host, served.port)
            streams.append(stream)
            await stream.opened

    try:
        try:
            async with asyncio.TaskGroup() as opening:
                for _ in range(count):
                    opening.create_task(open_one())
        except ExceptionGroup as group:
            opened = sum(stream.is_open for stream in streams)
            raise WrongReply(
                f"a stream did not open, {opened} of {count} did: {group.exceptions[0]!r}"
            ) from group
        yield streams
    finally:
        for stream in streams:
            stream.close()


async def _settled_memory(served: Running) -> Memory:
    """Memory once two readings in a row agree, or the last one when the time is out."""
    deadline = time.monotonic() + _SETTLING_LIMIT
    last = memory(served.pid)
    while time.monotonic() < deadline:
        await asyncio.sleep(0.2)
        current = memory(served.pid)
        if abs(current.anonymous - last.anonymous) <= _SETTLED_KIB:
            return current
        last = current
    return last
