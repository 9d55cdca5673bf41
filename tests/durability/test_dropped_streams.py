"""Callers that go away in the middle, and come back."""

import asyncio
import contextlib
from collections.abc import Sequence

import httpx2
import pytest

from tests.durability.callers import Frame, Sent, body, client, frames, send, subscription, texts
from tests.durability.ledger import LedgerServer


async def dropped(http: httpx2.AsyncClient, sent: Sent, *, after: int) -> list[Frame]:
    """Begin a stream, take `after` events of it and drop the connection."""
    path = f"/agents/{sent.agent}/message:stream"
    async with contextlib.aclosing(frames(http, "POST", path, document=body(sent))) as stream:
        async for frame in stream:
            sent.frames.append(frame)
            sent.task_id = sent.task_id or frame.data.get("task", {}).get("id", "")
            if len(sent.frames) == after:
                break
    return sent.frames


def ids(taken: Sequence[Frame]) -> list[int]:
    """The numbers of events."""
    return [frame.id or 0 for frame in taken]


async def test_a_caller_that_drops_its_stream_disturbs_nobody(standing: LedgerServer) -> None:
    leavers = [Sent("worker", "stream 12") for _ in range(10)]
    stayers = [Sent("worker", "stream 12", "stream" if number % 2 else "send") for number in range(20)]
    async with client(standing.url) as http:
        await asyncio.gather(
            *(dropped(http, leaver, after=3) for leaver in leavers), *(send(http, one) for one in stayers)
        )
        text = "".join(f"{number} " for number in range(1, 13))
        for stayer in stayers:
            assert (stayer.error, stayer.state) == ("", "COMPLETED")
            if stayer.how == "stream":
                assert ids(stayer.frames) == list(range(1, len(stayer.frames) + 1))
        for leaver in leavers:
            task = await asyncio.to_thread(standing.ended, "worker", leaver.task_id)
            assert texts(task) == [text, "stream done"]
            assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    for one in (*leavers, *stayers):
        assert [line["what"] for line in standing.noted(task=one.task_id)] == ["entered", "left"]
    standing.store.check()


async def test_a_caller_that_gives_up_waiting_leaves_its_run_alone(standing: LedgerServer) -> None:
    impatient = Sent("worker", "slow 1")
    async with client(standing.url, timeout=0.3) as http:
        assert (await send(http, impatient)).error == "ReadTimeout"
    task_id = standing.store.messages()[impatient.message_id]
    task = standing.ended("worker", task_id)
    assert texts(task) == ["slow done"]
    assert [line["what"] for line in standing.noted(task=task_id)] == ["entered", "left"]


async def test_a_dropped_stream_is_taken_up_by_a_subscription_without_losing_anything(
    standing: LedgerServer,
) -> None:
    async with client(standing.url) as http:
        sent = Sent("worker", "stream 15")
        before = await dropped(http, sent, after=4)
        after = await subscription(http, "worker", sent.task_id)
        assert after[0].kind == "task"
        snapshot = after[0].data["task"]
        assert (after[0].id or 0) >= (before[-1].id or 0)
        assert ids(after) == list(range(ids(after)[0], ids(after)[0] + len(after)))
        assert after[-1].data["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        streamed = "".join(texts(snapshot)[:1]) + "".join(
            frame.data["artifactUpdate"]["artifact"]["parts"][0]["text"]
            for frame in after[1:-2]
            if frame.kind == "artifactUpdate"
        )
        assert streamed == "".join(f"{number} " for number in range(1, 16))


@pytest.mark.parametrize("restart", [False, True], ids=["running", "finished before a restart"])
async def test_last_event_id_goes_on_without_a_gap_and_without_a_leading_task(
    server: LedgerServer, restart: bool
) -> None:
    server.start()
    async with client(server.url) as http:
        sent = Sent("worker", "stream 12")
        before = await dropped(http, sent, after=5)
    last = before[-1].id or 0
    if restart:
        server.ended("worker", sent.task_id)
        server.kill()
        server.start()
    async with client(server.url) as http:
        after = await subscription(http, "worker", sent.task_id, last_event=last)
        whole = await subscription(http, "worker", sent.task_id, last_event=1)
    assert "task" not in [frame.kind for frame in (*after, *whole)]
    assert ids(after) == list(range(last + 1, ids(after)[-1] + 1))
    assert after[-1].data["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert before[1:] + after == whole
    stored = server.store.rows("SELECT max(seq) FROM event WHERE task_id = ?", sent.task_id)
    assert stored == [(ids(whole)[-1],)]


async def test_last_event_id_goes_on_through_a_crash_of_the_server(server: LedgerServer) -> None:
    """What the lost attempt had said no longer counts: where it broke off, the stream shows the task as it stands."""
    server.start()
    async with client(server.url) as http:
        sent = Sent("worker", "stream 24")
        before = await dropped(http, sent, after=5)
    server.kill()
    server.start()
    async with client(server.url) as http:
        after = await subscription(http, "worker", sent.task_id, last_event=before[-1].id)
    assert after[0].id == (before[-1].id or 0) + 1
    assert ids(after) == list(range(ids(after)[0], ids(after)[0] + len(after)))
    snapshots = [frame for frame in after if frame.kind == "task"]
    assert len(snapshots) == 1
    assert texts(snapshots[0].data["task"]) == []
    rest = after[after.index(snapshots[0]) + 1 :]
    chunks = [frame.data["artifactUpdate"]["artifact"]["parts"][0]["text"] for frame in rest[:-1]]
    assert "".join(chunks) == "".join(f"{number} " for number in range(1, 25)) + "stream done"


async def test_the_end_of_a_finished_stream_is_the_end(standing: LedgerServer) -> None:
    async with client(standing.url) as http:
        sent = await send(http, Sent("worker", "quick", "stream"))
        assert await subscription(http, "worker", sent.task_id, last_event=sent.frames[-1].id) == []
        with pytest.raises(AssertionError, match="UNSUPPORTED_OPERATION"):
            await subscription(http, "worker", sent.task_id)
