"""`postgres`: blocking sends to Dragoman over PostgreSQL, beside the same over SQLite.

In each round both get a turn, alone and with an empty store, and the order changes. What the database's own processes
use is told apart: in production they are on another machine; here they share the cores with what is measured.
"""

from collections.abc import Callable
from functools import partial

from bench.databases import new_database
from bench.processes import running
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import OURS, Server
from bench.session import Session
from bench.usage import cpu_seconds
from bench.wire import Operation
from bench.wrk import Load, load

SCENARIO = "postgres"
_WARM_UP = 1  # seconds


def postgres(session: Session) -> list[Sample]:
    """Load our server over both stores, round by round."""
    servers = [server for server in session.servers(Operation.SEND, ()) if server.name == OURS]
    return session.measure(SCENARIO, servers, partial(_compare, session))


def _compare(session: Session, server: Server, number: int) -> Sample:
    turns = {
        "sqlite": partial(_over_sqlite, session, server),
        "postgres": partial(_over_postgres, session, server),
    }
    taken = {store: turns[store]() for store in sorted(turns, reverse=number % 2 == 0)}
    (sqlite, sqlite_cpu, _), (counted, cpu, database_cpu) = taken["sqlite"], taken["postgres"]
    rate, sqlite_rate = counted.requests / counted.seconds, sqlite.requests / sqlite.seconds
    metrics = {
        "rate": rate,
        "rate_sqlite": sqlite_rate,
        "rate_ratio": rate / sqlite_rate,
        "p50_ms": counted.p50_ms,
        "p99_ms": counted.p99_ms,
        "cpu_us": cpu,
        "cpu_us_sqlite": sqlite_cpu,
        "cpu_us_database": database_cpu,
    }
    errors, first_error = counted.errors + sqlite.errors, counted.first_error or sqlite.first_error
    return Sample(SCENARIO, server.name, number, metrics, errors=errors, first_error=first_error)


def _over_sqlite(session: Session, server: Server) -> tuple[Load, float, float]:
    return _loaded(session, server, lambda: 0.0)


def _over_postgres(session: Session, server: Server) -> tuple[Load, float, float]:
    with new_database() as database:
        return _loaded(session, database.behind(server), database.cpu_seconds)


def _loaded(
    session: Session, server: Server, database_seconds: Callable[[], float]
) -> tuple[Load, float, float]:
    """One turn: what was counted, the CPU µs a reply of the server, and those of its database."""
    options = session.options
    with running(server) as served:
        requests = [served.wire(options.binding).send()]
        warm_up = load(served, Operation.SEND, requests, options.connections, _WARM_UP)
        if warm_up.errors:
            raise WrongReply(warm_up.first_error)
        before, database_before = cpu_seconds(served.pid), database_seconds()
        counted = load(served, Operation.SEND, requests, options.connections, options.seconds)
        used, database_used = cpu_seconds(served.pid) - before, database_seconds() - database_before
    if counted.requests == 0:
        raise WrongReply(f"no reply at all: {counted.first_error}")
    return counted, used / counted.requests * 1e6, database_used / counted.requests * 1e6
