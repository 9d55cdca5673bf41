"""Metrics in Prometheus form. Every label has a small, fixed set of values; nothing a caller sends is one."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

REJECTED = "rejected"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0)

Gauges = Callable[[], Iterable[tuple[str, str, dict[str, str], float]]]


class Metrics:
    """The server's metrics, in a registry of their own."""

    def __init__(self, versions: Iterable[str], gauges: Gauges) -> None:
        """Prepare the metrics.

        Args:
            versions: the protocol versions that this build serves.
            gauges: gives the values that are read when somebody asks: name, help, labels, value.
        """
        self._registry = CollectorRegistry()
        versions_total = Counter(
            "a2a_requests",
            "A2A requests by negotiated protocol version",
            ["version"],
            registry=self._registry,
        )
        self._versions = {version: versions_total.labels(version) for version in (*versions, REJECTED)}
        self._outcomes = Counter(
            "dragoman_requests",
            "Requests by operation and outcome (ok, or the reason of the error)",
            ["operation", "outcome"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "dragoman_request_seconds",
            "Seconds until the reply, or the first byte of a stream, was ready",
            ["operation"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._outcome_children: dict[tuple[str, str], Counter] = {}
        self._second_children: dict[str, Histogram] = {}
        self._registry.register(_Readings(gauges))

    def count(self, version: str, operation: str, outcome: str, seconds: float) -> None:
        """Count a request. `version` is empty for requests that negotiate none."""
        if version:
            self._versions[version].inc()
        key = operation, outcome
        counter = self._outcome_children.get(key)
        if counter is None:
            counter = self._outcome_children[key] = self._outcomes.labels(operation, outcome)
        counter.inc()
        histogram = self._second_children.get(operation)
        if histogram is None:
            histogram = self._second_children[operation] = self._seconds.labels(operation)
        histogram.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)


class _Readings(Collector):
    """Values that are read at the moment of asking."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """See `Collector`."""
        families: dict[str, GaugeMetricFamily] = {}
        for name, text, labels, value in self._gauges():
            family = families.setdefault(name, GaugeMetricFamily(name, text, labels=list(labels)))
            family.add_metric(list(labels.values()), value)
        return families.values()
