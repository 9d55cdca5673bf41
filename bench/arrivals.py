"""A load generator with a fixed rate of arrival: `python -m bench.arrivals`, a process of its own.

It reads an `Order` as JSON from stdin and writes an `Outcome` to stdout. Sends
are due at even intervals whatever the server does, and latency is counted from
when a send was due, so a stall is paid by every send that it delays (a closed
loop would hide it). How late this generator was itself is reported beside.
"""

import asyncio
import gc
import sys
import time
import uuid
from collections import deque

import msgspec

from bench.callers import PipelinedConnection
from bench.latency import percentile_ms
from bench.replies import Reply
from bench.wire import MESSAGE_ID, Operation

_CONNECTIONS = 256
_DRAIN = 15.0  # seconds for the last replies
_LEAD = 0.2  # seconds before the first send is due


class Order(msgspec.Struct, frozen=True):
    """What to send, and how often."""

    host: str
    port: int
    request: str
    rate: int
    warm_up: int
    seconds: int


class Outcome(msgspec.Struct, frozen=True):
    """What came of it; latencies and lateness are those of the counted seconds."""

    answered: int
    counted: int
    elapsed: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    late_p99_ms: float
    errors: int
    first_error: str


class Arrivals:
    """One run of the generator."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._pieces = order.request.encode().split(MESSAGE_ID.encode())
        self._connections: list[PipelinedConnection] = []
        # Used in turn: a server closes a connection that is idle for some seconds.
        self._idle: deque[PipelinedConnection] = deque()
        self._waiting: deque[float] = deque()
        self._total = order.rate * (order.warm_up + order.seconds)
        self._counted_from = 0.0
        self._latencies: list[float] = []
        self._lateness: list[float] = []
        self._answered = 0
        self._errors = 0
        self._first_error = ""
        self._finished = asyncio.Event()

    async def run(self) -> Outcome:
        """Send everything, wait for the replies."""
        loop = asyncio.get_running_loop()
        for _ in range(min(_CONNECTIONS, max(8, self._order.rate // 2))):
            _, connection = await loop.create_connection(
                lambda: PipelinedConnection(self._on_reply, self._on_lost),
                self._order.host,
                self._order.port,
            )
            self._connections.append(connection)
        self._idle.extend(self._connections)
        begun = time.perf_counter() + _LEAD
        self._counted_from = begun + self._order.warm_up
        await self._send_all(begun)
        try:
            async with asyncio.timeout(_DRAIN):
                await self._finished.wait()
        except TimeoutError:
            missing = self._total - self._answered - self._errors
            self._fail(max(missing, 1), f"no reply {_DRAIN:.0f} s after the last send")
        elapsed = time.perf_counter() - self._counted_from
        for connection in self._connections:
            connection.close()
        return Outcome(
            answered=self._answered,
            counted=len(self._latencies),
            elapsed=elapsed,
            p50_ms=percentile_ms(self._latencies or [0.0], 50),
            p99_ms=percentile_ms(self._latencies or [0.0], 99),
            longest_ms=percentile_ms(self._latencies or [0.0], 100),
            late_p99_ms=percentile_ms(self._lateness or [0.0], 99),
            errors=self._errors,
            first_error=self._first_error,
        )

    async def _send_all(self, begun: float) -> None:
        number = 0
        while number < self._total:
            due = begun + number / self._order.rate
            now = time.perf_counter()
            if due > now:
                await asyncio.sleep(due - now)
                continue
            number += 1
            if due >= self._counted_from:
                self._lateness.append(now - due)
            while self._idle and not self._idle[0].is_open:
                self._idle.popleft()
            if self._idle:
                self._send(self._idle.popleft(), due)
            else:
                self._waiting.append(due)

    def _send(self, connection: PipelinedConnection, due: float) -> None:
        connection.send(str(uuid.uuid4()).encode().join(self._pieces), due)

    def _on_reply(self, connection: PipelinedConnection, due: float, reply: Reply) -> None:
        if due >= self._counted_from:
            self._latencies.append(time.perf_counter() - due)
        fault = reply.fault(Operation.SEND)
        if fault is not None:
            self._fail(1, fault)
        else:
            self._answered += 1
        if self._waiting:
            self._send(connection, self._waiting.popleft())
        else:
            self._idle.append(connection)
        self._finish_if_all()

    def _on_lost(self, unanswered: int) -> None:
        self._fail(unanswered, "the server closed a connection on a send")
        self._finish_if_all()

    def _fail(self, count: int, reason: str) -> None:
        self._errors += count
        self._first_error = self._first_error or reason

    def _finish_if_all(self) -> None:
        if self._answered + self._errors >= self._total:
            self._finished.set()


async def _generate(order: Order) -> Outcome:
    return await Arrivals(order).run()


def main() -> None:
    """Carry out one order."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    gc.disable()  # a run is bounded, and a collection would show as latency of the server
    outcome = asyncio.run(_generate(order))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
