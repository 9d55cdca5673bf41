"""A server that has done tens of thousands of runs needs no more memory than one that has done a few."""

import asyncio
import itertools
from collections.abc import Iterator

import httpx2
import pytest

from tests.durability.callers import Sent, request, send
from tests.durability.dialects import HTTP
from tests.durability.ledger import LedgerServer

RUNS = 50_000
ROUND = 2_500
SETTLED = 15_000
"""Runs after which the caches of the store are as full as they get."""
BYTES_PER_RUN = 100
KINDS = [
    ("worker", "quick", "send"),
    ("worker", "quick", "at once"),
    ("either", "quick", "stream"),
    ("talker", "say 0", "send"),
    ("worker", "steps 1", "at once"),
    ("asker", "ask 1", "send"),
    ("thread", "wait 0", "send"),
    ("worker", "sleep 60", "at once"),
]


async def perform(http: httpx2.AsyncClient, runs: Iterator[tuple[str, str, str]]) -> None:
    """Have runs of all kinds done, one after the other: answered, cancelled, streamed, or sent twice."""
    for agent, text, how in runs:
        sent = await send(http, Sent(agent, text, how))
        assert sent.is_acknowledged and not sent.error
        if text.startswith("ask"):
            assert (await send(http, Sent(agent, "this", to_task=sent.task_id))).state == "COMPLETED"
        elif text.startswith("sleep"):
            assert HTTP.reason(await request(http, HTTP.cancel(agent, sent.task_id))) == ""
        elif agent == "thread":
            assert (await send(http, sent.again())).replayed


def slope(points: list[tuple[int, int]]) -> float:
    """How much the second number grows with the first, by least squares."""
    count = len(points)
    mean_x, mean_y = (sum(values) / count for values in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_memory_stays_flat_over_fifty_thousand_runs(server: LedgerServer) -> None:
    server.start()
    points: list[tuple[int, int]] = []
    async with httpx2.AsyncClient(
        base_url=server.url, headers={"A2A-Version": "1.0"}, timeout=60, trust_env=False
    ) as http:
        for done in range(ROUND, RUNS + 1, ROUND):
            runs = itertools.islice(itertools.cycle(KINDS), ROUND)
            await asyncio.gather(*(perform(http, runs) for _ in range(16)))
            points.append((done, server.rss_bytes()))
    settled = [point for point in points if point[0] >= SETTLED]
    grown = slope(settled)
    shown = ", ".join(f"{runs}: {rss / 1024 / 1024:.1f}" for runs, rss in points)
    print(f"{grown:.1f} bytes a run; MiB after runs: {shown}")
    assert grown < BYTES_PER_RUN, shown
    server.store.check()
