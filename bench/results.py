"""What was measured, and the JSON document that `--json` writes.

The document is a `Report`:

    schema      "dragoman-bench/1"
    started     RFC 3339 time, UTC
    machine     {"cores", "python", "kernel"}
    options     the command line as understood, one member an option
    samples     one a scenario, case, server and round: {"scenario", "case", "server",
                "round", "metrics": {name: number}, "errors", "first_error"}
    summaries   over the rounds: {"scenario", "case", "server",
                "metrics": {name: {"median", "least", "most"}}, "errors"}
    ratios      Dragoman / peer, each round against the same round of the peer:
                {"scenario", "case", "peer", "metric", "median", "least", "most"}
    checks      the bounds of the scenarios that ran: {"bound", "value": number or null,
                "verdict": "met", "broken" or "not measured"}
    notes       what was left out, and why

Metrics:

    rate            replies a second
    p50_ms, p99_ms, longest_ms
                    latency
    late_p99_ms     how late the open-loop generator itself was
    cpu_us          server CPU a reply, user and system, its child processes included
    cpu_us_1_0      the same of the 1.0 form that was measured beside it
    cpu_ratio       the first of these divided by the second
    rate_sqlite, cpu_us_sqlite
                    the same over SQLite, measured beside it
    rate_ratio      the rate over PostgreSQL divided by that over SQLite
    cpu_us_database CPU of PostgreSQL's processes a reply, which are in no other figure
    client_busy     share of a core that the load generator took
    rss_mib, anon_mib
                    memory of the server at the end of the round: resident; its own (Pss_Anon)
    kib_per_stream  own memory a stream
    runs_of_two     tasks that one message led to when it was sent twice
    held_after_kill 1 if a completed task is there after SIGKILL and a new start, else 0
    start_s         start of the process to its first good agent card

`case` tells runs of one scenario apart, such as the number of stored tasks; it may be
empty. `round` counts from 0.
"""

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bench.servers import OURS


class Sample(msgspec.Struct, frozen=True):
    """One round of one server."""

    scenario: str
    server: str
    round: int
    metrics: dict[str, float]
    case: str = ""
    errors: int = 0
    first_error: str = ""


class Spread(msgspec.Struct, frozen=True):
    """A metric over the rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


class Summary(msgspec.Struct, frozen=True):
    """The rounds of one server."""

    scenario: str
    case: str
    server: str
    metrics: dict[str, Spread]
    errors: int


class Ratio(msgspec.Struct, frozen=True):
    """Dragoman's figure divided by a peer's of the same round, over the rounds."""

    scenario: str
    case: str
    peer: str
    metric: str
    median: float
    least: float
    most: float


class Check(msgspec.Struct, frozen=True):
    """A bound held against what was measured."""

    bound: str
    value: float | None
    verdict: str


class Report(msgspec.Struct, frozen=True):
    """A whole run of the benchmark."""

    schema: str
    started: str
    machine: dict[str, str | int]
    options: dict[str, Any]
    samples: list[Sample]
    summaries: list[Summary]
    ratios: list[Ratio]
    checks: list[Check]
    notes: list[str]


def now() -> str:
    """The time, for `Report.started`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> dict[str, str | int]:
    """Where this runs, as far as it may be told."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def summarise(samples: Iterable[Sample]) -> list[Summary]:
    """One summary for each scenario, case and server, in the order first seen."""
    groups: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.scenario, sample.case, sample.server), []).append(sample)
    return [
        Summary(
            scenario,
            case,
            server,
            {
                metric: Spread.of([one.metrics[metric] for one in group if metric in one.metrics])
                for metric in dict.fromkeys(name for one in group for name in one.metrics)
            },
            sum(one.errors for one in group),
        )
        for (scenario, case, server), group in groups.items()
    ]


def compare(samples: Iterable[Sample]) -> list[Ratio]:
    """Dragoman against each peer, round by round."""
    kept = list(samples)
    ours = {(one.scenario, one.case, one.round): one for one in kept if one.server == OURS}
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for peer in kept:
        match = ours.get((peer.scenario, peer.case, peer.round))
        if match is None or peer.server == OURS:
            continue
        for metric, value in peer.metrics.items():
            if value > 0 and metric in match.metrics and metric in COMPARED:
                key = (peer.scenario, peer.case, peer.server, metric)
                found.setdefault(key, []).append(match.metrics[metric] / value)
    return [
        Ratio(*key, spread.median, spread.least, spread.most)
        for key, spread in ((key, Spread.of(values)) for key, values in found.items())
    ]


COMPARED = ("rate", "p50_ms", "p99_ms", "cpu_us", "start_s", "kib_per_stream", "rss_mib")
"""The metrics for which a ratio to a peer means something."""
