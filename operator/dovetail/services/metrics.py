"""What the process counts about itself, for Prometheus."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override


class WaitingPods(Collector):
    """How many pods wait, by reason, counted when somebody asks."""

    def __init__(self, reasons: Callable[[], Iterable[str]]) -> None:
        self._reasons = reasons

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("dovetail_waiting_pods", "Pods that wait, by reason.", labels=["reason"])
        for reason, count in sorted(Tally(self._reasons()).items()):
            family.add_metric([reason], count)
        yield family


class Metrics:
    """All metrics of one operator, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "dovetail_decisions", "Decisions about pods.", ["decision"], registry=self.registry
        )
        self.decision_seconds = Histogram(
            "dovetail_decision_seconds",
            "How long a decision takes, without waiting for its turn.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
            registry=self.registry,
        )
        self.writes = Counter(
            "dovetail_writes",
            "Writes sent to the API server.",
            ["verb", "resource", "subresource"],
            registry=self.registry,
        )
        self.failures = Counter(
            "dovetail_failures",
            "Work that failed and is tried again.",
            ["desk", "error"],
            registry=self.registry,
        )
        self.leading = Gauge(
            "dovetail_leading", "Whether this replica is the active one.", registry=self.registry
        )
        self.vanished = Counter(
            "dovetail_vanished_objects",
            "Objects whose deletion no watch reported.",
            ["kind"],
            registry=self.registry,
        )
        self.held_pods = Gauge(
            "dovetail_held_pods", "Pods for which devices are held at present.", registry=self.registry
        )
        self.taken_back = Counter(
            "dovetail_taken_back", "Allocations taken back from pods.", ["cause"], registry=self.registry
        )
        self.clashes = Counter("dovetail_clashes", "Devices found in two claims.", registry=self.registry)
