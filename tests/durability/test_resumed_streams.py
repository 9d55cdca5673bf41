"""Streams dropped in each of their phases and taken up again: the same events in the same order, to the last one."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from tests.durability.callers import (
    Frame,
    Refused,
    Sent,
    client,
    connected,
    request,
    send,
    state_of,
    streamed,
    subscription,
    texts,
)
from tests.durability.dialects import DIALECTS, Dialect
from tests.durability.ledger import LedgerServer

CHUNKS = 10
NUMBERS = "".join(f"{number} " for number in range(1, CHUNKS + 1))
LONG = "x" * 300_000
"""What makes a snapshot too long to arrive at once."""

EARLY = ("before the first event", "in the snapshot")
"""Phases in which a caller does not know its task yet: it can only send the same message again."""
LATE = ("between chunks", "before the last event")
WAYS = ("last event id", "subscription", "same message")


@dataclass
class Dropped:
    """A stream that was dropped, and what was read of it."""

    sent: Sent
    frames: list[Frame] = field(default_factory=list)

    @property
    def last_event(self) -> int:
        """The number of the last event that came whole."""
        return self.frames[-1].id or 0 if self.frames else 0


async def dropped(http: httpx2.AsyncClient, dialect: Dialect, phase: str) -> Dropped:
    """Begin a stream and drop its connection in a phase."""
    text = f"stream {CHUNKS}" + (f" {LONG}" if phase == "in the snapshot" else "")
    made = Dropped(Sent("worker", text, "stream", dialect=dialect))
    if phase in EARLY:
        reader, writer = await connected(str(http.base_url).rstrip("/"), made.sent.request())
        if phase == "in the snapshot":
            await reader.readuntil(b"data: ")
            await reader.readexactly(100)
        writer.transport.abort()
        return made
    async with contextlib.aclosing(streamed(http, made.sent)) as stream:
        async for frame in stream:
            made.frames.append(frame)
            if phase == "between chunks" and len(made.frames) == 5:
                break
            if phase == "before the last event" and "stream done" in str(frame.data):
                break
    return made


async def resumed(http: httpx2.AsyncClient, stream: Dropped, way: str) -> list[Frame]:
    """Go on with a dropped stream to its end."""
    sent = stream.sent
    if way == "same message":
        again = await send(http, sent.again())
        assert not again.error
        sent.task_id = again.task_id
        return again.frames
    last_event = stream.last_event if way == "last event id" else None
    return await subscription(http, sent.agent, sent.task_id, last_event=last_event, dialect=sent.dialect)


def see_the_same(before: Sequence[Frame], after: Sequence[Frame], whole: Sequence[Frame]) -> None:
    """See that two parts of a stream, the second perhaps with a snapshot first, are what a third one shows whole."""
    known = {frame.id: frame for frame in whole}
    seen = [frame for frame in before if frame.id != 1]
    assert seen == list(whole[: len(seen)])
    if after and after[0] != known.get(after[0].id):
        assert after[0].kind == "task"
        snapshot = after[0].data["task"]
        folded = [frame for frame in whole if (frame.id or 0) <= (after[0].id or 0)]
        assert "".join(texts(snapshot)) == "".join(chunks(folded))
        after = after[1:]
        rest = whole[len(folded) :]
    else:
        rest = whole[len(seen) :]
    assert list(after) == list(rest)


def chunks(frames: Sequence[Frame]) -> list[str]:
    """The texts of the artifact events since the last snapshot, with that snapshot's."""
    found: list[str] = []
    for frame in frames:
        if frame.kind == "task":
            found = texts(frame.data["task"])
        if frame.kind == "artifactUpdate":
            found += [part["text"] for part in frame.data["artifactUpdate"]["artifact"]["parts"]]
    return found


async def test_a_stream_dropped_in_any_phase_goes_on_with_the_same_events(standing: LedgerServer) -> None:
    """In every form of A2A, taken up in every way; a stream that nobody dropped says what there was to see."""
    cases = [*itertools.product(DIALECTS, EARLY, WAYS[-1:]), *itertools.product(DIALECTS, LATE, WAYS)]
    async with client(standing.url) as http:
        await asyncio.gather(*(see_resumed(http, *case) for case in cases))
    standing.store.check()


async def see_resumed(http: httpx2.AsyncClient, dialect: Dialect, phase: str, way: str) -> None:
    stream = await dropped(http, dialect, phase)
    after = await resumed_unless_over(http, stream, way)
    whole = await subscription(http, "worker", stream.sent.task_id, last_event=1, dialect=dialect)
    ids = [frame.id for frame in whole]
    assert ids == list(range(2, len(ids) + 2))
    assert "".join(chunks(whole)) == NUMBERS + "stream done"
    assert state_of(whole[-1].data) == "COMPLETED"
    if after is not None:
        see_the_same(stream.frames, after, whole)
        assert state_of((after or stream.frames)[-1].data) == "COMPLETED"


async def resumed_unless_over(http: httpx2.AsyncClient, stream: Dropped, way: str) -> list[Frame] | None:
    """Go on, or find that the task is finished: a subscription of 1.0 is refused then, and it is to be read."""
    try:
        return await resumed(http, stream, way)
    except Refused as refused:
        if (way, refused.reason) != ("subscription", "UNSUPPORTED_OPERATION"):
            raise
        dialect = stream.sent.dialect
        reply = await request(http, dialect.get("worker", stream.sent.task_id))
        task = dialect.task(reply.json())
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "".join(texts(task)) == NUMBERS + "stream done"
        return None


async def test_streams_that_a_crash_cut_off_go_on_with_the_same_events(server: LedgerServer) -> None:
    server.start()
    cases = [*itertools.product(DIALECTS, WAYS)]
    streams = [
        Dropped(Sent("worker", f"stream {CHUNKS * 3}", "stream", dialect=dialect)) for dialect, _ in cases
    ]

    async def read(stream: Dropped) -> None:
        with contextlib.suppress(httpx2.TransportError):
            async for frame in streamed(http, stream.sent):
                stream.frames.append(frame)

    async with client(server.url) as http:
        reading = [asyncio.ensure_future(read(stream)) for stream in streams]
        async with asyncio.timeout(20):
            while min(len(stream.frames) for stream in streams) < 4:
                await asyncio.sleep(0.005)
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*reading)
    assert "COMPLETED" not in {state_of(*(frame.data for frame in stream.frames)) for stream in streams}
    await asyncio.to_thread(server.start)
    async with client(server.url) as http:
        rest = await asyncio.gather(
            *(resumed(http, stream, way) for stream, (_, way) in zip(streams, cases, strict=True))
        )
        for stream, after in zip(streams, rest, strict=True):
            whole = await subscription(
                http, "worker", stream.sent.task_id, last_event=1, dialect=stream.sent.dialect
            )
            see_the_same(stream.frames, after, whole)
            assert [frame.id for frame in whole] == list(range(2, len(whole) + 2))
            assert sum(frame.kind == "task" for frame in whole) == 1, "where the lost attempt broke off"
            assert state_of(after[-1].data) == "COMPLETED"
            everything = "".join(f"{number} " for number in range(1, CHUNKS * 3 + 1)) + "stream done"
            assert "".join(chunks(whole)) == everything
    server.store.check()


async def test_who_subscribes_while_a_task_ends_sees_its_end_or_is_told_of_it(standing: LedgerServer) -> None:
    """At random moments around the end, before and after it: nobody waits for ever, and nobody misses it."""
    told: list[str] = []

    async def watch(http: httpx2.AsyncClient, task_id: str, delay: float, dialect: Dialect) -> None:
        await asyncio.sleep(delay)
        try:
            seen = await subscription(http, "worker", task_id, dialect=dialect)
        except Refused as refused:
            told.append(refused.reason)
            return
        assert state_of(seen[-1].data) == "COMPLETED"
        assert [frame.id for frame in seen] == list(range(seen[0].id or 0, (seen[0].id or 0) + len(seen)))
        told.append("followed")

    async with client(standing.url) as http:
        tasks = [await send(http, Sent("worker", "slow 0.4", "at once")) for _ in range(40)]
        async with asyncio.timeout(20):
            await asyncio.gather(
                *(
                    watch(http, one.task_id, random.uniform(0, 0.5), DIALECTS[number % len(DIALECTS)])
                    for one in tasks
                    for number in range(5)
                )
            )
    assert len(told) == 200
    assert set(told) <= {"followed", "UNSUPPORTED_OPERATION"}
    assert "followed" in told
