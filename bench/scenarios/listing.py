"""`list`: a page of 50 of ListTasks, by number of stored tasks, one caller.

Unlike the other scenarios all servers stay up, each filled once with its number of
tasks, and are asked in turn, so that a ratio between two sizes is taken within the
same seconds. Every task is completed and a tenth of them is in the context asked
for: the filters match many tasks, and a server that counts or sorts them shows it.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench.databases import new_database
from bench.filling import CONTEXTS, context_id, start_filled
from bench.latency import percentile_ms
from bench.processes import Running, scratch_folder
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import Server
from bench.session import FAULTS, Session
from bench.usage import cpu_seconds, memory
from bench.wire import Operation

SCENARIO = "list"
FILTERS: dict[str, dict[str, str]] = {
    "unfiltered": {},
    "by state": {"status": "TASK_STATE_COMPLETED"},
    "by context": {"contextId": context_id(0)},
}
_WARM_UP = 20  # pages
_LIMIT = 60.0  # seconds for one case of one round


@dataclass(frozen=True)
class Filled:
    """A server that holds `size` tasks."""

    served: Running
    size: int


def case(size: int, filters: str) -> str:
    """The case of a sample, by size and name of the filter."""
    return f"{size} {filters}"


def listing(session: Session) -> list[Sample]:
    """Fill every server at every size, then time them in turn."""
    samples = []
    with ExitStack() as stack:
        filled = []
        for server in session.servers(Operation.LIST, ("a2a-sdk", "js")):
            for size in session.options.sizes:
                if not server.is_ours and size > session.options.peers_up_to:
                    session.note(f"list: {server.name} is not filled to {size} (--peers-up-to)")
                    continue
                try:
                    filled.append(_filled(session, stack, server, size))
                except FAULTS as error:
                    samples.append(session.failed(SCENARIO, server.name, 0, error))
        for number in range(session.options.rounds):
            for one in filled:
                for name in FILTERS:
                    measure = partial(_measure, session, one, name, number)
                    samples.append(session.take(SCENARIO, one.served.server.name, number, measure))
    return samples


def _filled(session: Session, stack: ExitStack, server: Server, size: int) -> Filled:
    session.say(f"list: filling {server.name} with {size} tasks")
    begun = time.monotonic()
    if server.is_ours and session.options.store == "postgres":
        server = stack.enter_context(new_database()).behind(server)
    served = start_filled(server, stack.enter_context(scratch_folder()), size)
    stack.callback(served.stop)
    session.say(f"list: filled in {time.monotonic() - begun:.1f} s")
    return Filled(served, size)


def _measure(session: Session, filled: Filled, name: str, number: int) -> Sample:
    served = filled.served
    caller = served.caller()
    request = served.wire(session.options.binding).page(FILTERS[name])
    expected = filled.size if name != "by context" else len(range(0, filled.size, CONTEXTS))
    page = caller.call(request, Operation.LIST)
    total, tasks = page.at("totalSize"), page.at("tasks")
    if total != expected or len(tasks) != min(50, expected):
        got = f"{len(tasks)} of {total}"
        raise WrongReply(f"{case(filled.size, name)}: {got} tasks, {expected} are there")
    deadline = time.monotonic() + _LIMIT
    for _ in range(_WARM_UP):
        caller.call(request, Operation.LIST)
    times: list[float] = []
    before = cpu_seconds(served.pid)
    while len(times) < session.options.samples and time.monotonic() < deadline:
        begun = time.perf_counter()
        caller.call(request, Operation.LIST)
        times.append(time.perf_counter() - begun)
    used = cpu_seconds(served.pid) - before
    caller.close()
    held = memory(served.pid)
    return Sample(
        SCENARIO,
        served.server.name,
        number,
        {
            "p50_ms": percentile_ms(times, 50),
            "p99_ms": percentile_ms(times, 99),
            "cpu_us": used / len(times) * 1e6,
            "rss_mib": held.rss / 1024,
            "anon_mib": held.anonymous / 1024,
        },
        case(filled.size, name),
    )
