"""One process's metrics: the table made countable, as flags and gates say. Upstream: `component-base/metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skedge.telemetry.families import BETA, STABLE, Counter, Family, Gauge, Histogram, MetricSpec, Registry
from skedge.telemetry.metric_table import LIBRARIES, OURS, SCHEDULER

_VALUE_AT_START: Final = {"rest_client_exec_plugin_ttl_seconds": float("inf")}


def is_hidden(deprecated: str, stability: str, version: str, show_hidden_for: str = "") -> bool:
    """Whether a family deprecated since `deprecated` (1.35.0) is hidden in `version` (1.36.2).

    Hidden at once (ALPHA), one minor later (BETA) or three (STABLE); `show_hidden_for` (the previous minor, 1.35)
    shows those that are hidden only since this minor. Upstream: `component-base/metrics/version.go`.
    """
    if not deprecated:
        return False
    minor, since = (int(each.split(".")[1]) for each in (version, deprecated))
    hidden_from = since + {BETA: 1, STABLE: 3}.get(stability, 0)
    if show_hidden_for and int(show_hidden_for.split(".")[1]) == minor - 1:
        minor -= 1
    return minor >= hidden_from


class Metrics:
    """One process's metrics: the table made countable.

    `gates`: the feature gates that are on; families of others do not exist (they can be counted, nobody sees it).
    `disabled`: names switched off. `allowed`: (metric, label) → the only values to show.
    """

    def __init__(
        self,
        version: str,
        gates: Iterable[str] = (),
        disabled: Iterable[str] = (),
        show_hidden_for: str = "",
        allowed: Mapping[tuple[str, str], frozenset[str]] | None = None,
        table: Iterable[MetricSpec] = (*SCHEDULER, *LIBRARIES, *OURS),
    ) -> None:
        self.registry = Registry()
        self._counters: dict[str, Family[Counter]] = {}
        self._gauges: dict[str, Family[Gauge]] = {}
        self._histograms: dict[str, Family[Histogram]] = {}
        self._unexpected = Counter()
        on, off = frozenset(gates), frozenset(disabled)
        limits: dict[str, dict[str, frozenset[str]]] = {}
        for (metric, label), values in (allowed or {}).items():
            limits.setdefault(metric, {})[label] = values
        registered: dict[tuple[str, ...], int] = {}
        dropped = {"disabled_metrics_total": 0, "hidden_metrics_total": 0}
        for spec in table:
            family = self._build(spec, limits.get(spec.name))
            if spec.gate and spec.gate not in on:
                continue
            if spec.name in off:
                dropped["disabled_metrics_total"] += 1
            elif is_hidden(spec.deprecated, spec.stability, version, show_hidden_for):
                dropped["hidden_metrics_total"] += 1
            else:
                self.registry.add(family)
                if spec.stability:
                    key = (spec.stability, spec.deprecated)
                    registered[key] = registered.get(key, 0) + 1
        if "registered_metrics_total" in self._counters:
            self.counter("registered_metrics_total").read_from(lambda: registered)
            for name, count in dropped.items():
                self.counter(name).only.inc(count)
            name = "cardinality_enforcement_unexpected_categorizations_total"
            self.counter(name).read_from(lambda: self._unexpected.value)
        for name, value in _VALUE_AT_START.items():
            if name in self._gauges:
                self.gauge(name).only.set(value)

    def counter(self, name: str) -> Family[Counter]:
        """The counter of this full name; KeyError when the table has none."""
        return self._counters[name]

    def gauge(self, name: str) -> Family[Gauge]:
        """The gauge of this full name; KeyError when the table has none."""
        return self._gauges[name]

    def histogram(self, name: str) -> Family[Histogram]:
        """The histogram of this full name; KeyError when the table has none."""
        return self._histograms[name]

    def _build(
        self, spec: MetricSpec, limits: Mapping[str, frozenset[str]] | None
    ) -> Family[Counter] | Family[Gauge] | Family[Histogram]:
        if spec.kind == "counter":
            return self._counters.setdefault(spec.name, Family(spec, Counter, limits, self._unexpected))
        if spec.kind == "gauge":
            return self._gauges.setdefault(spec.name, Family(spec, Gauge, limits, self._unexpected))
        buckets = spec.buckets
        make = lambda: Histogram(buckets)  # noqa: E731
        return self._histograms.setdefault(spec.name, Family(spec, make, limits, self._unexpected))
