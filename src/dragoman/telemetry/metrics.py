"""Metrics in Prometheus form. Every label has a small, fixed set of values; nothing a caller sends is one.

Requests are counted on the serving loop alone, so plain numbers do: they cost a tenth of locked counters, and
become Prometheus families only when somebody asks.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

REJECTED = "rejected"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0)

Values = Callable[[], Iterable[tuple[str, str, dict[str, str], float]]]


class _Seconds:
    """How long the requests of one operation took."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0


class Metrics(Collector):
    """The server's metrics. To be used on the serving loop."""

    def __init__(self, versions: Iterable[str], gauges: Values, counters: Values = lambda: ()) -> None:
        """Prepare the metrics.

        Args:
            versions: the protocol versions that this build serves.
            gauges: gives the values that are read when somebody asks: name, help, labels, value.
            counters: the same, of values that only grow.
        """
        self._versions = dict.fromkeys((*versions, REJECTED), 0)
        self._outcomes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._seconds: defaultdict[str, _Seconds] = defaultdict(_Seconds)
        self._gauges = gauges
        self._counters = counters
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def count(self, version: str, operation: str, outcome: str, seconds: float) -> None:
        """Count a request. `version` is empty for requests that negotiate none."""
        if version:
            self._versions[version] += 1
        self._outcomes[operation, outcome] += 1
        timing = self._seconds[operation]
        timing.buckets[bisect_left(_BOUNDS, seconds)] += 1
        timing.total += seconds

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        versions = CounterMetricFamily(
            "a2a_requests", "A2A requests by negotiated version", labels=["version"]
        )
        for version, number in self._versions.items():
            versions.add_metric([version], number)
        yield versions
        outcomes = CounterMetricFamily(
            "dragoman_requests",
            "Requests by operation and outcome: ok, or the reason of the error",
            labels=["operation", "outcome"],
        )
        for labels, number in self._outcomes.items():
            outcomes.add_metric(labels, number)
        yield outcomes
        yield self._histogram()
        yield from _families(GaugeMetricFamily, self._gauges)
        yield from _families(CounterMetricFamily, self._counters)

    def _histogram(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "dragoman_request_seconds",
            "Seconds until the reply, or the first byte of a stream, was ready",
            labels=["operation"],
        )
        for operation, timing in self._seconds.items():
            buckets, below = [], 0
            for bound, number in zip([*map(str, _BOUNDS), "+Inf"], timing.buckets, strict=True):
                below += number
                buckets.append((bound, float(below)))
            family.add_metric([operation], buckets, timing.total)
        return family


def _families(kind: type[GaugeMetricFamily] | type[CounterMetricFamily], values: Values) -> Iterable[Metric]:
    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for name, text, named, value in values():
        family = families.setdefault(name, kind(name, text, labels=list(named)))
        family.add_metric(list(named.values()), value)
    return families.values()
