"""`generations`: what a blocking send costs in A2A 0.3, beside the same send in 1.0 to the same server.

For each round one server of ours is started, and each form of the send gets a turn of the same length, so that
the two figures of a ratio come from the same process within seconds of each other.
"""

from functools import partial

from bench.processes import running
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import OURS, Server
from bench.session import Session
from bench.usage import cpu_seconds
from bench.wire import Binding, Dialect, Operation
from bench.wrk import load

_WARM_UP = 1  # seconds
_OLDER = {
    "JSON-RPC": (Binding.JSONRPC, Dialect.KINDS),
    "alias": (Binding.HTTP, Dialect.KINDS),
    "official HTTP+JSON": (Binding.HTTP, Dialect.PROTO),
}
"""The forms of a send in 0.3, each with the binding of 1.0 that it is compared with."""


def generations(session: Session) -> list[Sample]:
    """Load our server with sends of both generations, round by round."""
    servers = [server for server in session.servers(Operation.SEND, ()) if server.name == OURS]
    return [
        sample
        for case in _OLDER
        for sample in session.measure("generations", servers, partial(_compare, session, case))
    ]


def _compare(session: Session, case: str, server: Server, number: int) -> Sample:
    binding, dialect = _OLDER[case]
    options = session.options
    with running(server) as served:
        wire = served.wire(binding)
        sends = {"1.0": (Operation.SEND, wire.send()), "0.3": wire.older_send(dialect)}
        for operation, request in sends.values():
            load(served, operation, [request], options.connections, _WARM_UP)
        costs, errors, first_error = {}, 0, ""
        order = sorted(sends, reverse=number % 2 == 0)
        for version in order:
            operation, request = sends[version]
            before = cpu_seconds(served.pid)
            counted = load(served, operation, [request], options.connections, options.seconds)
            if counted.requests == 0:
                raise WrongReply(f"no reply at all to a send of {version}: {counted.first_error}")
            costs[version] = (cpu_seconds(served.pid) - before) / counted.requests * 1e6
            errors += counted.errors
            first_error = first_error or counted.first_error
    metrics = {"cpu_us": costs["0.3"], "cpu_us_1_0": costs["1.0"], "cpu_ratio": costs["0.3"] / costs["1.0"]}
    return Sample("generations", server.name, number, metrics, case, errors, first_error)
