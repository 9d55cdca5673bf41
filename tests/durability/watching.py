"""`python -m tests.durability.watching AGENT OBSERVERS SECONDS URL [URL …]`: many subscriptions, in their own process.

Ids of tasks come on standard input, one a line, and are subscribed to in turn, at each server in turn. A line on
standard output says when all are attached; one says how many changes of state they were told of in the SECONDS after
that, and how old the oldest hundredth of them was; the last one what they have seen when the last one has ended: a JSON
object.
"""

import asyncio
import itertools
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial

ATTACHING = 200
"""Connections that are opened at a time."""


STAMP = b'"timestamp":"'


class Watcher(asyncio.Protocol):
    """One subscription: follows the numbers of its events, and notes its last state, and the ages of all in `ages`."""

    def __init__(self, request: bytes, ages: list[float]) -> None:
        self._ages = ages
        self.attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._request = request
        self._rest = b""
        self._last = 0
        self._state = "nothing"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Subscribe."""
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Follow the events."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"id: "):
                number = int(line[4:])
                if self._last and number != self._last + 1:
                    self._state = "a gap"
                self._last = number
                if not self.attached.done():
                    self.attached.set_result(None)
            elif line.startswith(b"data: ") and self._state != "a gap":
                at = line.rfind(b'"state":"TASK_STATE_')
                self._state = line[at + 20 :].split(b'"')[0].decode() if at >= 0 else self._state
                at = line.rfind(STAMP)
                if at >= 0:
                    stamp = line[at + len(STAMP) :].split(b'"')[0].decode()
                    self._ages.append(time.time() - datetime.fromisoformat(stamp).timestamp())

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell how it ended."""
        self.ended.set_result(self._state)
        if not self.attached.done():
            self.attached.set_result(None)


async def watch(agent: str, observers: int, seconds: float, urls: Sequence[str]) -> None:
    """Subscribe, and see every subscription to its end."""
    places = itertools.cycle([url.removeprefix("http://").split(":") for url in urls])
    tasks = [line.strip() for line in sys.stdin]
    watchers: list[Watcher] = []
    ages: list[float] = []
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    for first in range(0, observers, ATTACHING):
        made = []
        for number in range(first, min(first + ATTACHING, observers)):
            host, port = next(places)
            path = f"/agents/{agent}/tasks/{tasks[number % len(tasks)]}:subscribe"
            head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n"
            made.append(loop.create_connection(partial(Watcher, head.encode(), ages), host, int(port)))
        attached = [watcher for _, watcher in await asyncio.gather(*made)]
        await asyncio.gather(*(watcher.attached for watcher in attached))
        watchers += attached
    print(f"attached {time.monotonic() - began:.2f}", flush=True)
    ages.clear()
    await asyncio.sleep(seconds)
    told = sorted(ages)
    p99 = told[math.ceil(len(told) * 0.99) - 1] if told else math.nan
    print(f"told {len(told)} {p99:.3f}", flush=True)
    seen = Counter(await asyncio.gather(*(watcher.ended for watcher in watchers)))
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
