"""`first-event`: from writing a SendStreamingMessage to its first event, one caller, idle server.

The connection is made before the clock starts. The caller reads each stream to
its last event before it sends the next message.
"""

import time
from functools import partial

from bench.latency import percentile_ms
from bench.processes import running
from bench.results import Sample
from bench.servers import Server
from bench.session import Session
from bench.wire import Operation

SCENARIO = "first-event"
_WARM_UP = 50  # streams
_LIMIT = 120.0  # seconds a round


def first_event(session: Session) -> list[Sample]:
    """Time every server, round by round."""
    servers = session.servers(Operation.STREAM)
    return session.measure(SCENARIO, servers, partial(_measure, session))


def _measure(session: Session, server: Server, number: int) -> Sample:
    with running(server) as served:
        caller = served.caller()
        request = served.wire(session.options.binding).send(Operation.STREAM)
        deadline = time.monotonic() + _LIMIT
        for _ in range(_WARM_UP):
            caller.first_event(request)
        times: list[float] = []
        while len(times) < session.options.samples and time.monotonic() < deadline:
            times.append(caller.first_event(request))
        caller.close()
    return Sample(
        SCENARIO,
        server.name,
        number,
        {"p50_ms": percentile_ms(times, 50), "p99_ms": percentile_ms(times, 99)},
    )
