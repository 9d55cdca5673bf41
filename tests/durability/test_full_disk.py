"""A disk that is full for a while: callers are refused, nothing is lost, and all goes on when there is room again."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.durability.callers import Sent, body, client, send, texts
from tests.durability.ledger import LedgerServer
from tests.harness.polling import until

pytestmark = pytest.mark.sqlite


@contextmanager
def full_disk(server: LedgerServer) -> Iterator[None]:
    """Let every write of the server to a file fail, as on a full disk."""
    pid = server.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_refuses_what_is_new_and_loses_nothing_that_runs(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as http:
        finished = await send(http, Sent("worker", "quick"))
        running = await send(http, Sent("worker", "slow 1", "at once"))
        waiting = asyncio.ensure_future(send(http, Sent("either", "slow 0.8")))
        await asyncio.to_thread(server.await_note, "entered", task=running.task_id)
        await asyncio.to_thread(server.await_note, "entered", agent="either")
        late = Sent("worker", "quick")
        with full_disk(server):
            for _ in range(3):
                refused = await http.post("/agents/worker/message:send", json=body(late))
                assert refused.status_code == 503
                assert int(refused.headers["retry-after"]) >= 1
                assert refused.json()["error"]["details"][0]["reason"] == "UNAVAILABLE"
                assert "database" not in refused.text
            canceled = await http.post(f"/agents/worker/tasks/{running.task_id}:cancel", json={})
            assert canceled.status_code == 503
            assert (await http.get("/healthz")).status_code == 200
            assert server.get("worker", finished.task_id).json() == finished.answer["task"]
            assert server.state("worker", running.task_id) == "WORKING"
            await asyncio.sleep(1.2)  # longer than the handlers need: they must wait, and not fail
            assert server.state("worker", running.task_id) == "WORKING"
            assert not waiting.done()

        assert texts(await asyncio.to_thread(server.ended, "worker", running.task_id)) == ["slow done"]
        assert (await waiting).state == "COMPLETED"
        accepted = await send(http, late)
        assert accepted.state == "COMPLETED"
    assert [line["attempt"] for line in server.noted(what="entered")] == [1] * 4
    assert len(server.store.messages()) == 4
    server.store.check()


async def test_a_server_whose_disk_is_full_says_that_it_is_not_ready(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as http:
        assert (await http.get("/readyz")).status_code == 200
        with full_disk(server):
            unready = await http.get("/readyz")
            assert unready.status_code == 503
            assert "store" in unready.json()["reasons"][0]
        assert (await http.get("/readyz")).status_code == 200


async def test_a_server_that_is_killed_on_a_full_disk_has_kept_what_it_acknowledged(
    server: LedgerServer,
) -> None:
    server.start()
    async with client(server.url) as http:
        acknowledged = [await send(http, Sent("worker", "slow 0.5", "at once")) for _ in range(10)]
        with full_disk(server):
            refused = [Sent("worker", "quick") for _ in range(10)]
            replies = await asyncio.gather(
                *(http.post("/agents/worker/message:send", json=body(one)) for one in refused)
            )
            assert {reply.status_code for reply in replies} == {503}
            server.kill()
    server.start()
    until(lambda: set(server.store.states().values()) == {"COMPLETED"}, what="all runs ended", seconds=15)
    assert server.store.messages() == {one.message_id: one.task_id for one in acknowledged}
    server.store.check()
