"""Many who end at once, who watch, or who stop reading: nobody else is slowed, and each gets all that is theirs."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from dragoman.model import Scope, TaskState
from dragoman.stores.postgres import PostgresStore
from dragoman.stores.sqlite import SqliteStore
from dragoman.stores.target import Target
from tests.contract.samples import begun as store_begun
from tests.contract.samples import chunk, message, status
from tests.durability.callers import Frame, Sent, client, send, state_of, subscription, texts
from tests.durability.crowd import crowd
from tests.durability.dialects import HTTP
from tests.durability.latencies import Latencies, is_as_before, measured
from tests.durability.ledger import LedgerServer
from tests.harness import stores
from tests.harness.polling import until

# All of them measure how soon sends are executed: Temporal takes its own time for that.
pytestmark = pytest.mark.embedded

TRIES = 10
"""Measurements that a busy machine may spoil, but for one."""


async def test_forty_runs_that_end_together_slow_nobody_down(standing: LedgerServer) -> None:
    """Sent without waiting, and read by nobody but a few who wait for them."""
    beside: list[Latencies] = []
    async with client(standing.url) as http:
        await measured(http)
        quiet = [await measured(http) for _ in range(2)]
        for number in range(TRIES):
            gate = f"forty-{number}-{os.getpid()}"
            runs = [await send(http, Sent("crowded", f"gate {gate}", "at once")) for _ in range(40)]
            waiting = [asyncio.ensure_future(subscription(http, "crowded", one.task_id)) for one in runs[:10]]
            until(
                lambda tasks=frozenset(one.task_id for one in runs): (
                    sum(line["task"] in tasks for line in standing.noted(what="entered", agent="crowded"))
                    == 40
                ),
                what="all forty wait at the gate",
            )
            asyncio.get_running_loop().call_later(0.1, standing.open_gate, gate)
            beside.append(await measured(http))
            for seen in await asyncio.gather(*waiting):
                assert state_of(seen[-1].data) == "COMPLETED"
            states = standing.store.states()
            assert {states[one.task_id] for one in runs} == {"COMPLETED"}
            if is_as_before(beside[-1], quiet):
                break
    assert is_as_before(beside[-1], quiet), f"alone: {quiet}, beside them: {beside}"
    standing.store.check()


STOPPED = 10
PIECES = 90
MEBIBYTE = 1024 * 1024


@contextlib.asynccontextmanager
async def stopped_reader(server: LedgerServer, task_id: str) -> AsyncIterator[socket.socket]:
    """A connection that subscribes and reads nothing, with as little room for what it is sent as it can have."""
    made = HTTP.subscribe("crowded", task_id)
    host, port = server.url.removeprefix("http://").split(":")
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(reader, (host, int(port)))
        head = f"{made.method} {made.path} HTTP/1.1\r\nHost: {host}\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n"
        await loop.sock_sendall(reader, head.encode())
        yield reader


async def test_readers_that_stop_reading_slow_nobody_down_and_miss_nothing(standing: LedgerServer) -> None:
    """Their stream is longer than what is kept for them, so they go on from a snapshot when they read on."""
    beside: list[Latencies] = []
    async with client(standing.url) as http, contextlib.AsyncExitStack() as stack:

        async def flood() -> tuple[Sent, asyncio.Task[list[Frame]]]:
            sent = await send(http, Sent("crowded", f"flood {PIECES}", "at once"))
            return sent, asyncio.ensure_future(subscription(http, "crowded", sent.task_id))

        await measured(http, sends=60)
        _, reading = await flood()
        quiet = [await measured(http, sends=60)]
        while not reading.done():
            quiet.append(await measured(http, sends=60))
        await reading
        held = standing.rss_bytes()
        sent, reading = await flood()
        readers = [
            await stack.enter_async_context(stopped_reader(standing, sent.task_id)) for _ in range(STOPPED)
        ]
        while not reading.done():
            beside.append(await measured(http, sends=60))
        assert any(is_as_before(one, quiet) for one in beside), f"alone: {quiet}, beside them: {beside}"
        assert standing.rss_bytes() - held < STOPPED * 16 * MEBIBYTE
        frames = await reading
        assert len(frames) >= PIECES and state_of(frames[-1].data) == "COMPLETED"
        await asyncio.gather(*(see_read_on(reader) for reader in readers))


async def see_read_on(reader: socket.socket) -> None:
    """See that a reader that reads on is shown the whole, and the end."""
    stream, writer = await asyncio.open_connection(sock=reader.dup(), limit=64 * MEBIBYTE)
    frames = [json.loads(line[6:]) async for line in stream if line.startswith(b"data: ")]
    writer.close()
    snapshots = [number for number, frame in enumerate(frames) if "task" in frame]
    assert len(snapshots) > 1, "it had not fallen behind"
    text = "".join(texts(frames[snapshots[-1]]["task"]))
    for frame in frames[snapshots[-1] + 1 :]:
        if "artifactUpdate" in frame:
            text += "".join(part["text"] for part in frame["artifactUpdate"]["artifact"]["parts"])
    assert text == "begins" + "".join(f"{piece:08}" * 16384 for piece in range(PIECES)) + "flood done"
    assert state_of(*frames) == "COMPLETED"


BUSY_FLOOR = 0.1
"""Seconds that a p99 may differ where the other core, if there is one, is busy for others."""
EVENTS = 20_000
SCOPE = Scope("local", "local", "worker")


async def long_task(data: Path) -> str:
    """Make a store with a finished task of many events; return its id."""
    place = stores.place_of(data)
    store = (
        PostgresStore(place, lease=15.0)
        if isinstance(place, Target)
        else SqliteStore(place, lease=15.0, on_lost=lambda: None)
    )
    lease = await store_begun(store, sent=message(), scope=SCOPE)
    for _ in range(EVENTS // 500):
        await store.append(lease, [chunk("a piece ", append=True) for _ in range(500)])
    await store.append(lease, [status(TaskState.COMPLETED)])
    store.close()
    return lease.task_id


async def test_who_takes_up_the_stream_of_a_very_long_task_slows_nobody_down(server: LedgerServer) -> None:
    """All its events are read for each of them, again and again; on the serving loop others waited seconds for it."""
    task_id = await long_task(server.data)
    server.start()
    beside: list[Latencies] = []
    taken_up = 0
    async with client(server.url) as http:
        await measured(http)
        quiet = [await measured(http)]

        async def take_up() -> None:
            nonlocal taken_up
            while len(beside) < TRIES:
                frames = await subscription(http, "worker", task_id, last_event=EVENTS - 2)
                assert [frame.id for frame in frames] == list(range(EVENTS - 1, EVENTS + 3))
                taken_up += 1

        readers = asyncio.gather(*(take_up() for _ in range(4)))
        while len(beside) < TRIES:
            beside.append(await measured(http))
            if is_as_before(beside[-1], quiet, floor=BUSY_FLOOR):
                break
        beside += beside[-1:] * TRIES
        await readers
    assert taken_up >= 4
    assert is_as_before(beside[-1], quiet, floor=BUSY_FLOOR), f"alone: {quiet}, beside them: {beside}"


def numbers_of(server: LedgerServer, messages: Iterable[Sent]) -> list[int]:
    """How many events each of the messages' tasks has."""
    numbers = dict(server.store.rows("SELECT id, seq FROM task"))
    return [numbers[sent.task_id] for sent in messages]


@pytest.mark.parametrize(
    ("observers", "tasks", "every"),
    [
        (400, 40, 0.5),
        pytest.param(10_000, 1_000, 10.0, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_a_crowd_of_observers_slows_nobody_down_and_sees_every_event(
    server: LedgerServer, observers: int, tasks: int, every: float
) -> None:
    """The tasks tell their progress all the time, with and without observers. All end at once in the end."""
    beside: list[Latencies] = []
    # Room for those who are measured beside the tasks.
    server = server.configured("engine.max_runs = 2000")
    with server:
        async with client(server.url) as http:
            running: list[Sent] = []

            async def begin() -> None:
                while len(running) < tasks:
                    running.append(sent := Sent("crowded", f"beat end {every}", "at once"))
                    await send(http, sent)

            await asyncio.gather(*(begin() for _ in range(10)))
            await measured(http)
            quiet = [await measured(http) for _ in range(2)]
            before = server.rss_bytes()
            async with crowd([server.url], observers, [sent.task_id for sent in running]) as watching:
                held = server.rss_bytes() - before
                for _ in range(TRIES):
                    beside.append(await measured(http))
                    if is_as_before(beside[-1], quiet):
                        break
                # However soon all was measured: each task tells of its work a second time before it ends.
                await asyncio.to_thread(
                    until,
                    lambda: min(numbers_of(server, running)) > 2,
                    what="each task to have told of its work again",
                    seconds=60,
                )
                server.open_gate("end")
                at_the_end = await measured(http)
                seen = await watching.seen()
        print(f"attached in {watching.attached} s, {held / observers / 1024:.1f} KiB each")
        print(f"alone: {quiet}; beside them: {beside}; at the end: {at_the_end}")
        assert seen == {"COMPLETED": observers}
        assert is_as_before(beside[-1], quiet), f"alone: {quiet}, beside them: {beside}"
        assert min(numbers_of(server, running)) > 4, "accepted, at work, more of it, and the end"
        # As many streams end as the machine can write: it is busy, but not with them alone. It is measured only once,
        # so a disk that stalls has to fit in.
        assert at_the_end.p99 < max(one.p99 for one in quiet) + 2.0
        server.store.check()
