"""Read from the process itself: `process_*` under Go's names, `python_*`, the build and the feature gates."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from skedge.names import KUBERNETES_VERSION
from skedge.telemetry.exposition import from_prometheus_client
from skedge.telemetry.families import FamilySample, MetricSpec, Sample
from skedge.telemetry.metrics import Metrics

START_TIME: Final = "process_start_time_seconds"
_NETWORK: Final = (
    MetricSpec("process_network_receive_bytes_total", "counter", "Bytes received from the network.", stability=""),
    MetricSpec("process_network_transmit_bytes_total", "counter", "Bytes sent to the network.", stability=""),
)
_ADDRESS_LIMIT: Final = MetricSpec(
    "process_virtual_memory_max_bytes", "gauge", "Bound on the virtual memory, in bytes.", stability=""
)
_UNLIMITED: Final = float(2**64)


class ProcessCollector:
    """`process_*` and `python_*`; on a system without /proc those that need it are missing."""

    def __init__(self, proc: str = "/proc") -> None:
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        self._proc = proc
        self._registry = CollectorRegistry()
        ProcessCollector(proc=proc, registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def collect(self) -> Iterable[FamilySample]:
        for metric in self._registry.collect():
            sample = from_prometheus_client(metric)
            if sample.spec.name == START_TIME:
                spec = MetricSpec(START_TIME, "gauge", sample.spec.help, stability="", endpoints=_BOTH)
                sample = FamilySample(spec, sample.samples)
            yield sample
        if (limit := self._address_limit()) is not None:
            yield FamilySample(_ADDRESS_LIMIT, [Sample((), limit)])
        for spec, octets in zip(_NETWORK, self._network(), strict=False):
            yield FamilySample(spec, [Sample((), octets)])

    def _address_limit(self) -> float | None:
        for line in self._lines("self/limits"):
            if line.startswith("Max address space"):
                soft = line.split()[3]
                return _UNLIMITED if soft == "unlimited" else float(soft)
        return None

    def _network(self) -> tuple[float, ...]:
        """Bytes received and sent, of the whole network namespace, as upstream's collector has them."""
        names: list[str] = []
        for line in self._lines("self/net/netstat"):
            if line.startswith("IpExt:"):
                if not names:
                    names = line.split()
                    continue
                row = dict(zip(names, line.split(), strict=False))
                return tuple(float(row[name]) for name in ("InOctets", "OutOctets") if name in row)
        return ()

    def _lines(self, path: str) -> list[str]:
        try:
            with open(f"{self._proc}/{path}", encoding="ascii", errors="replace") as file:
                return file.read().splitlines()
        except OSError:
            return []


_BOTH: Final = frozenset({"metrics", "slis"})


def describe_build(
    metrics: Metrics,
    *,
    features: Mapping[tuple[str, str], bool],
    commit: str = "",
    tree_state: str = "",
    build_date: str = "",
    emulation: str | None = None,
    min_compat: str | None = None,
    version: str = KUBERNETES_VERSION,
) -> None:
    """Set `kubernetes_build_info`, `version_info` and `kubernetes_feature_enabled`.

    `features`: (gate, stage) → on, stage being "", ALPHA, BETA or DEPRECATED. `emulation` and `min_compat` are minors
    (1.36, 1.35) and follow from `version` when not given.
    """
    major, minor, *_ = version.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    metrics.gauge("kubernetes_build_info").labels(
        major, minor, f"v{version}", commit, tree_state, build_date, runtime_version(),
        sys.implementation.name, f"{sys.platform}/{machine}",
    ).set(1)  # fmt: skip
    metrics.gauge("version_info").labels(
        "kube", version, emulation or f"{major}.{minor}", min_compat or f"{major}.{int(minor) - 1}"
    ).set(1)
    for (name, stage), on in features.items():
        metrics.gauge("kubernetes_feature_enabled").labels(name, stage).set(1 if on else 0)


def runtime_version() -> str:
    """What stands where upstream names its Go version."""
    return f"python{platform.python_version()}"
