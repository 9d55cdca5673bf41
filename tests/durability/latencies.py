"""What bystanders wait for their answers, beside something that is none of their business."""

import asyncio
import math
import time
from dataclasses import dataclass

import httpx2

from tests.durability.callers import Sent, send

SENDS = 150
CALLERS = 3
FLOOR = 0.050
"""Seconds that a p99 may differ by chance on a busy machine."""


@dataclass
class Latencies:
    """What callers of another agent, and of /healthz, waited."""

    p99: float
    slowest_health: float


async def measured(http: httpx2.AsyncClient, *, sends: int = SENDS) -> Latencies:
    """Send to an agent from a few callers at once, while somebody asks for the server's health."""
    took: list[float] = []
    health: list[float] = []

    async def calls() -> None:
        for _ in range(sends // CALLERS):
            began = time.perf_counter()
            sent = await send(http, Sent("worker", "quick"))
            took.append(time.perf_counter() - began)
            assert sent.state == "COMPLETED"

    async def asks() -> None:
        while len(took) < sends:
            began = time.perf_counter()
            reply = await http.get("/healthz")
            health.append(time.perf_counter() - began)
            assert reply.status_code == 200
            await asyncio.sleep(0.02)

    await asyncio.gather(asks(), *(calls() for _ in range(CALLERS)))
    took.sort()
    return Latencies(took[math.ceil(len(took) * 0.99) - 1], max(health))


def is_as_before(now: Latencies, quiet: list[Latencies], *, floor: float = FLOOR) -> bool:
    """Whether callers waited at most twice as long as before, and /healthz was quick."""
    before = max(latencies.p99 for latencies in quiet)
    return now.p99 <= max(2 * before, before + floor) and now.slowest_health < 0.25
