"""`send`, `immediate`, `get`, `card` and `stream`: so many callers, each waiting for its reply.

Counted per round: replies a second, latency from wrk's histogram, and the CPU that
the server's processes used between the first and the last moment of the counted
run, divided by the replies. A second of the same load goes before, uncounted (but
its errors are). A request under way when the run ends is not counted, its CPU is:
at most one a connection.
"""

import time
from functools import partial

from bench.callers import Caller
from bench.processes import Running, running
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import Server
from bench.session import Session
from bench.usage import cpu_seconds, memory
from bench.wire import Operation
from bench.wrk import Load, load

PEERS_OF = {
    Operation.SEND: ("a2a-sdk", "js"),
    Operation.IMMEDIATE: ("a2a-sdk", "js", "fasta2a"),
    Operation.GET: ("a2a-sdk", "js", "fasta2a"),
    Operation.CARD: ("a2a-sdk", "js", "fasta2a"),
    Operation.STREAM: ("a2a-sdk", "js", "fasta2a"),
}
_WARM_UP = 1  # seconds
_SATURATED = 0.9  # of a core
_STORED = 256  # tasks that `get` asks for in turn
_SETTLED = 10.0  # seconds for the last of them to be completed


def closed_loop(session: Session, operation: Operation) -> list[Sample]:
    """Load every server with `operation`, round by round."""
    servers = session.servers(operation, PEERS_OF[operation])
    return session.measure(operation, servers, partial(_measure, session, operation))


def _measure(session: Session, operation: Operation, server: Server, number: int) -> Sample:
    options = session.options
    with running(server) as served:
        requests = _requests(session, operation, served)
        warm_up = load(served, operation, requests, options.connections, _WARM_UP)
        before = cpu_seconds(served.pid)
        counted = load(served, operation, requests, options.connections, options.seconds)
        used = cpu_seconds(served.pid) - before
        held = memory(served.pid)
    metrics = _metrics(counted, used)
    if metrics["client_busy"] > _SATURATED:
        session.note(f"{operation} {server.name}: wrk took a whole core, so the rate is its own")
    metrics |= {"rss_mib": held.rss / 1024, "anon_mib": held.anonymous / 1024}
    return Sample(
        operation,
        server.name,
        number,
        metrics,
        errors=warm_up.errors + counted.errors,
        first_error=warm_up.first_error or counted.first_error,
    )


def _metrics(counted: Load, used: float) -> dict[str, float]:
    if counted.requests == 0:
        raise WrongReply(f"no reply at all in {counted.seconds:.1f} s: {counted.first_error}")
    return {
        "rate": counted.requests / counted.seconds,
        "p50_ms": counted.p50_ms,
        "p99_ms": counted.p99_ms,
        "cpu_us": used / counted.requests * 1e6,
        "client_busy": counted.client_cpu / counted.seconds,
    }


def _requests(session: Session, operation: Operation, served: Running) -> list[bytes]:
    wire = served.wire(session.options.binding)
    if operation is Operation.CARD:
        return [wire.card()]
    if operation is not Operation.GET:
        return [wire.send(operation)]
    caller = served.caller()
    send = wire.send(Operation.IMMEDIATE)
    replies = [caller.call(send, Operation.IMMEDIATE) for _ in range(_STORED)]
    requests = [wire.get(str(reply.at("task", "id"))) for reply in replies]
    deadline = time.monotonic() + _SETTLED
    for request in requests:
        _until_completed(caller, request, deadline)
    caller.close()
    return requests


def _until_completed(caller: Caller, request: bytes, deadline: float) -> None:
    """Ask for a task until it is completed."""
    while True:
        try:
            caller.call(request, Operation.GET)
        except WrongReply:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
