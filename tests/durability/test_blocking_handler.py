"""A handler that blocks its own loop, or burns its thread: nobody else feels it, and its run stays its own."""

import asyncio
import time

import pytest

from tests.durability.callers import Sent, client, send
from tests.durability.latencies import Latencies, is_as_before, measured
from tests.durability.ledger import LedgerServer

TRIES = 4

CONFIG = """
[engine]
lease = "1s"
sweep = "200ms"
"""


# Temporal takes its time to have a send executed: what is measured here would be that.
@pytest.mark.embedded
@pytest.mark.parametrize("how", ["block", pytest.param("burn", marks=pytest.mark.soak)])
async def test_a_handler_that_does_not_let_go_leaves_other_agents_as_they_were(
    server: LedgerServer, how: str
) -> None:
    server = server.configured(CONFIG)
    with server:
        async with client(server.url) as http:
            await measured(http)
            quiet = [await measured(http) for _ in range(2)]
            blocked = await send(http, Sent("blocker", f"{how} 30", "at once"))
            await asyncio.to_thread(server.await_note, "entered", task=blocked.task_id)
            beside: list[Latencies] = []
            for _ in range(TRIES):
                beside.append(await measured(http))
                if is_as_before(beside[-1], quiet):
                    break
            assert is_as_before(beside[-1], quiet), f"alone: {quiet}, beside it: {beside}"

            # Cancels are as they were, its own included.
            other = await send(http, Sent("worker", "slow 60", "at once"))
            for agent, task_id in (("worker", other.task_id), ("blocker", blocked.task_id)):
                began = time.perf_counter()
                reply = await http.post(f"/agents/{agent}/tasks/{task_id}:cancel", json={})
                assert reply.json()["status"]["state"] == "TASK_STATE_CANCELED"
                assert time.perf_counter() - began < 1.0
        assert server.noted(what="left", task=blocked.task_id) == []
        assert [line["attempt"] for line in server.noted(what="entered", task=blocked.task_id)] == [1]
        events = server.store.rows(
            "SELECT count(*), max(attempt) FROM event WHERE task_id = ?", blocked.task_id
        )
        # Submitted and canceled; working between them, unless all this took less than a quarter of a second.
        assert events in ([(2, 1)], [(3, 1)])


async def test_a_blocked_loop_loses_no_lease_however_short(server: LedgerServer) -> None:
    server = server.configured(CONFIG)
    with server:
        async with client(server.url) as http:
            blocked = await send(http, Sent("blocker", "block 1.5"))
        assert blocked.state == "COMPLETED"
        assert [line["attempt"] for line in server.noted(what="entered")] == [1]
    server.store.check()
