"""`start` and `restart`: from the start of the process to the first good agent card.

`start` has an empty folder each time, so Dragoman makes its database and its
signing key in it; the memory is read right after, on the idle server. `restart`
starts on stored tasks, after a graceful end (SIGTERM) and after a sudden one
(SIGKILL), and asks for a stored task, so that an empty server cannot pass.
"""

import signal
from functools import partial
from pathlib import Path

from bench.filling import start_filled
from bench.processes import Running, running, scratch_folder, start
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import Server
from bench.session import FAULTS, Session
from bench.usage import memory
from bench.wire import Binding, Operation


def starting(session: Session) -> list[Sample]:
    """Start every server, round by round; once before, uncounted, for the disk's cache."""
    servers = session.servers(Operation.CARD)
    for server in servers:
        try:
            with running(server):
                pass
        except FAULTS:
            continue  # the first round will tell
    return session.measure("start", servers, _start)


def restarting(session: Session) -> list[Sample]:
    """Fill Dragoman, then restart it, round by round."""
    samples = []
    for server in session.servers(Operation.LIST, ()):
        if not server.is_ours:
            session.note(f"restart: {server.name} keeps its tasks in memory, left out")
            continue
        with scratch_folder() as folder:
            stored = session.options.stored
            try:
                session.say(f"restart: filling {server.name} with {stored} tasks")
                start_filled(server, folder, stored).stop()
            except FAULTS as error:
                samples.append(session.failed("restart", server.name, 0, error))
                continue
            for number in range(session.options.rounds):
                for how in (signal.SIGTERM, signal.SIGKILL):
                    measure = partial(_restart, server, folder, number, stored, how)
                    samples.append(session.take("restart", server.name, number, measure))
    return samples


def _start(server: Server, number: int) -> Sample:
    with running(server) as served:
        held = memory(served.pid)
        metrics = {
            "start_s": served.ready,
            "rss_mib": held.rss / 1024,
            "anon_mib": held.anonymous / 1024,
        }
    return Sample("start", server.name, number, metrics)


def _restart(server: Server, folder: Path, number: int, stored: int, how: signal.Signals) -> Sample:
    """End a server in the way `how`, and time the one that comes after it."""
    start(server, folder).stop(how)
    served = start(server, folder)
    try:
        _must_hold(served, stored)
        held = memory(served.pid)
    finally:
        served.stop()
    metrics = {
        "start_s": served.ready,
        "rss_mib": held.rss / 1024,
        "anon_mib": held.anonymous / 1024,
    }
    return Sample("restart", server.name, number, metrics, f"{stored} tasks, after {how.name}")


def _must_hold(served: Running, stored: int) -> None:
    caller = served.caller()
    wire = served.wire(Binding.JSONRPC)
    page = caller.call(wire.page({}, page_size=1), Operation.LIST)
    total = page.at("totalSize")
    if total != stored:
        raise WrongReply(f"{total} tasks after the restart, {stored} before")
    caller.call(wire.get(str(page.at("tasks", 0, "id"))), Operation.GET)
    caller.close()
