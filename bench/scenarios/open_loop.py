"""`open-loop`: blocking sends at a fixed rate of arrival, beside idle streams.

The generator is a process of its own (`bench.arrivals`); the idle streams are
held by this one. A peer takes part only if it is named: most cannot keep up.
CPU is counted over the whole run of the generator, its warm-up included.
"""

import asyncio
import sys
from functools import partial

import msgspec

from bench.arrivals import Order, Outcome
from bench.environments import Unavailable
from bench.processes import Running, running
from bench.replies import WrongReply
from bench.results import Sample
from bench.scenarios.idle_streams import open_streams, subscription
from bench.servers import REPOSITORY, Server
from bench.session import Session
from bench.usage import cpu_seconds, memory
from bench.wire import Operation

SCENARIO = "open-loop"
_WARM_UP = 2  # seconds
_GRACE = 45.0  # seconds that the generator may take beyond its sending


def open_loop(session: Session) -> list[Sample]:
    """Measure every server, round by round."""
    servers = session.servers(Operation.SEND, ())
    return session.measure(SCENARIO, servers, partial(_measure, session))


def _measure(session: Session, server: Server, number: int) -> Sample:
    with running(server) as served:
        return asyncio.run(_measure_running(session, served, number))


async def _measure_running(session: Session, served: Running, number: int) -> Sample:
    options = session.options
    order = Order(
        host=served.host,
        port=served.port,
        request=served.wire(options.binding).send(Operation.SEND).decode(),
        rate=options.rate,
        warm_up=_WARM_UP,
        seconds=options.seconds,
    )
    idle = subscription(served, options.binding) if options.idle else b""
    async with open_streams(served, idle, options.idle) as streams:
        before = cpu_seconds(served.pid)
        outcome = await _carry_out(order)
        used = cpu_seconds(served.pid) - before
        held = memory(served.pid)
        ended = sum(not stream.is_open for stream in streams)
    if outcome.answered == 0:
        raise WrongReply(f"no send was answered: {outcome.first_error}")
    return Sample(
        SCENARIO,
        served.server.name,
        number,
        {
            "rate": outcome.counted / outcome.elapsed,
            "p50_ms": outcome.p50_ms,
            "p99_ms": outcome.p99_ms,
            "longest_ms": outcome.longest_ms,
            "late_p99_ms": outcome.late_p99_ms,
            "cpu_us": used / outcome.answered * 1e6,
            "rss_mib": held.rss / 1024,
            "anon_mib": held.anonymous / 1024,
        },
        f"{options.rate}/s, {options.idle} idle streams",
        errors=outcome.errors + ended,
        first_error=outcome.first_error or (f"{ended} idle streams ended" if ended else ""),
    )


async def _carry_out(order: Order) -> Outcome:
    generator = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.arrivals",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    try:
        async with asyncio.timeout(order.warm_up + order.seconds + _GRACE):
            written, _ = await generator.communicate(msgspec.json.encode(order))
    finally:
        if generator.returncode is None:
            generator.kill()
            await generator.wait()
    if generator.returncode != 0:
        raise Unavailable(f"the load generator ended with exit code {generator.returncode}")
    return msgspec.json.decode(written, type=Outcome)
