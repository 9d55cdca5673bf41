"""Every bound that the benchmark holds Dragoman to, in one table, and how it is checked.

Ratios are promised, and a few absolute figures. A ratio is Dragoman's figure over
the peer's of the same round, median over the rounds; a value is the median of the
rounds. Rates alone are never bounded: machines differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.arguments import Options
from bench.results import Check, Ratio, Summary
from bench.scenarios.listing import FILTERS, case
from bench.servers import OURS

_NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Bound:
    """One bound on a metric of a scenario."""

    scenario: str
    metric: str
    at_least: float | None = None
    at_most: float | None = None
    peer: str = ""
    """The peer that the metric is divided by; empty: the metric itself is bounded."""
    unit: str = ""
    case: str = ""
    """What the case must contain."""
    needs: tuple[str, int] | None = None
    """An option that must have this value for the bound to mean anything."""

    @property
    def text(self) -> str:
        """The bound in words."""
        against = f" / {self.peer}" if self.peer else ""
        kind = f" ({self.case})" if self.case else ""
        with_option = f" with --{self.needs[0]} {self.needs[1]}" if self.needs else ""
        return f"{self.scenario}{kind}: {self.metric}{against} {self.limit}{self.unit}{with_option}"

    @property
    def limit(self) -> str:
        """The bound's number, with its direction."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}"

    def check(self, value: float | None) -> Check:
        """This bound held against `value`."""
        if value is None:
            return Check(self.text, None, _NOT_MEASURED)
        met = (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )
        return Check(self.text, value, "met" if met else "broken")


BOUNDS = (
    Bound("send", "rate", at_least=6, peer="a2a-sdk"),
    Bound("send", "cpu_us", at_most=0.125, peer="a2a-sdk"),
    Bound("send", "rate", at_least=1.2, peer="js"),
    Bound("send", "p99_ms", at_most=50, unit=" ms", needs=("connections", 32)),
    Bound("generations", "cpu_ratio", at_most=1.2, case="JSON-RPC"),
    Bound("generations", "cpu_ratio", at_most=1.2, case="alias"),
    Bound("generations", "cpu_ratio", at_most=1.2, case="official"),
    Bound("hosted", "cpu_ratio", at_most=1.2),
    Bound("hosted", "cpu_us", at_most=0.125, peer="a2a-sdk"),
    Bound("postgres", "rate_ratio", at_least=1),
    Bound("immediate", "rate", at_least=1.1, peer="fasta2a"),
    Bound("get", "rate", at_least=4, peer="a2a-sdk"),
    Bound("card", "rate", at_least=6, peer="a2a-sdk"),
    Bound("stream", "rate", at_least=8, peer="a2a-sdk"),
    Bound("exact", "runs_of_two", at_most=1),
    Bound("exact", "held_after_kill", at_least=1),
    Bound("first-event", "p50_ms", at_most=3, unit=" ms"),
    Bound("idle-streams", "kib_per_stream", at_most=20, unit=" KiB"),
    Bound("start", "start_s", at_most=0.6, unit=" s"),
    Bound("start", "rss_mib", at_most=70, unit=" MiB"),
    Bound("restart", "start_s", at_most=1, unit=" s", case="after SIGTERM"),
    Bound("open-loop", "p99_ms", at_most=25, unit=" ms", needs=("rate", 1000)),
)

GROWTH = {"unfiltered": 1.5, "by state": 2.0, "by context": 2.0}
"""How many times as long the largest list may take as the smallest, p50, by filter."""


def check(options: Options, summaries: Sequence[Summary], ratios: Sequence[Ratio]) -> list[Check]:
    """The bounds of the scenarios that ran, and of the peers that were to take part."""
    checks = []
    for bound in BOUNDS:
        left_out = bound.peer and options.peers is not None and bound.peer not in options.peers
        if bound.scenario not in options.scenarios or left_out:
            continue
        comparable = bound.needs is None or getattr(options, bound.needs[0]) == bound.needs[1]
        checks.append(bound.check(_value(bound, summaries, ratios) if comparable else None))
    if "list" in options.scenarios and len(options.sizes) > 1:
        checks += [_growth(options, summaries, filters) for filters in GROWTH]
    return checks


def _value(bound: Bound, summaries: Sequence[Summary], ratios: Sequence[Ratio]) -> float | None:
    if bound.peer:
        for ratio in ratios:
            if (ratio.scenario, ratio.peer, ratio.metric) == (
                bound.scenario,
                bound.peer,
                bound.metric,
            ):
                return ratio.median
        return None
    for summary in summaries:
        is_meant = (summary.scenario, summary.server) == (bound.scenario, OURS)
        if is_meant and bound.case in summary.case and bound.metric in summary.metrics:
            return summary.metrics[bound.metric].median
    return None


def _growth(options: Options, summaries: Sequence[Summary], filters: str) -> Check:
    small, large = options.sizes[0], options.sizes[-1]
    medians = {
        summary.case: summary.metrics["p50_ms"].median
        for summary in summaries
        if summary.scenario == "list" and summary.server == OURS and "p50_ms" in summary.metrics
    }
    bound = Bound(
        "list",
        f"p50_ms at {large} / at {small}",
        at_most=GROWTH[filters],
        case=filters,
    )
    first, last = medians.get(case(small, filters)), medians.get(case(large, filters))
    return bound.check(last / first if first and last else None)


assert set(GROWTH) == set(FILTERS)
