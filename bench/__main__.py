"""`python -m bench SCENARIO`: measure, show, and exit with 1 when something was wrong."""

import dataclasses
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from bench import tables
from bench.arguments import Options, parse
from bench.bounds import check
from bench.environments import Unavailable
from bench.results import Report, Sample, compare, machine, now, summarise
from bench.scenarios.closed_loop import PEERS_OF, closed_loop
from bench.scenarios.exact import exact
from bench.scenarios.first_event import first_event
from bench.scenarios.generations import generations
from bench.scenarios.hosted import hosted
from bench.scenarios.idle_streams import idle_streams
from bench.scenarios.listing import listing
from bench.scenarios.open_loop import open_loop
from bench.scenarios.postgres import postgres
from bench.scenarios.starting import restarting, starting
from bench.session import Session
from bench.wrk import find_wrk

_RUN: dict[str, Callable[[Session], list[Sample]]] = {
    **{str(operation): partial(closed_loop, operation=operation) for operation in PEERS_OF},
    "generations": generations,
    "hosted": hosted,
    "postgres": postgres,
    "exact": exact,
    "first-event": first_event,
    "list": listing,
    "idle-streams": idle_streams,
    "start": starting,
    "restart": restarting,
    "open-loop": open_loop,
}


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code."""
    options = parse(arguments)
    _allow_many_files()
    # A plain SIGTERM would leave servers behind: this way every `finally` runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    session = Session(options, say=lambda text: print(text, file=sys.stderr, flush=True))
    try:
        find_wrk()
    except Unavailable as error:
        if any(name in PEERS_OF for name in options.scenarios):
            print(f"bench: {error}", file=sys.stderr)
            return 1
    started = now()
    samples = [sample for name in options.scenarios for sample in _RUN[name](session)]
    report = _report(session, started, samples)
    tables.show(report)
    if options.json is not None:
        _write(report, options.json)
    return _exit_code(options, report, session.refused)


def _report(session: Session, started: str, samples: list[Sample]) -> Report:
    options = session.options
    summaries, ratios = summarise(samples), compare(samples)
    return Report(
        schema="dragoman-bench/1",
        started=started,
        machine=machine(),
        options={**dataclasses.asdict(options), "json": None},
        samples=samples,
        summaries=summaries,
        ratios=ratios,
        checks=check(options, summaries, ratios) if options.ours else [],
        notes=session.notes,
    )


def _exit_code(options: Options, report: Report, refused: bool) -> int:
    if not report.samples or refused or any(sample.errors for sample in report.samples):
        return 1
    if options.gate and any(one.verdict != "met" for one in report.checks):
        return 1
    return 0


def _write(report: Report, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _allow_many_files() -> None:
    """Let this process and its children open as many connections as the system lets them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
