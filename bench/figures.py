"""What is told of a measurement: percentiles, memory, several runs as one record."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from skedge.names import KUBERNETES_VERSION
from skedge.scheduler.auditor import Finding
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics

FIRST: Final = (
    "workload",
    "mode",
    "nodes",
    "pods",
    "pods_per_s",
    "cpu_ms_per_pod",
    "p50_ms",
    "p99_ms",
    "peak_rss_mib",
    "null_pods_per_s",
)
"""Every record has these, in this order; what does not apply is null."""


class Timing(SchedulerMetrics):
    """The metrics a scheduler keeps, and besides the seconds of each decision and of each attempt, binding included."""

    def __init__(self) -> None:
        super().__init__(Metrics(KUBERNETES_VERSION))
        self.decisions: list[float] = []
        self.attempts: list[float] = []

    def scheduling_algorithm(self, seconds: float) -> None:
        super().scheduling_algorithm(seconds)
        self.decisions.append(seconds)

    def schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        super().schedule_attempt(result, profile, seconds)
        self.attempts.append(seconds)


def refuse(findings: Sequence[Finding]) -> None:
    """Ends a measurement whose scheduler lost track of something: RuntimeError if the auditor found anything."""
    if findings:
        raise RuntimeError("\n".join(["the auditor found:", *map(str, findings)]))


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile of seconds, in milliseconds; 0.0 of nothing."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000, 4) if ordered else 0.0


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": percentile(seconds, 50), "p99_ms": percentile(seconds, 99)}


def peak_rss_mib(pid: int | None = None) -> float:
    """The most memory this process, or another one that still runs, ever had."""
    if pid is None:
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return round(int(peak.split()[1]) / 1024, 1)


def rate(pods: int, seconds: float, cpu: float) -> dict[str, Any]:
    """Figures of `pods` placed in this much time and processor time."""
    if not pods:
        return {"pods": 0, "pods_per_s": 0.0, "cpu_ms_per_pod": None}
    return {
        "pods": pods,
        "pods_per_s": round(pods / max(seconds, 1e-9), 1),
        "cpu_ms_per_pod": round(cpu * 1000 / pods, 4),
    }


def record(workload: str, size: str, mode: str, figures: dict[str, Any]) -> dict[str, Any]:
    """A record with its fields in the agreed order."""
    known = {"workload": workload, "mode": mode, **figures}
    return {key: known.pop(key, None) for key in FIRST} | {"size": size} | known


def combined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several runs of one thing as one record: the run of the median rate, with the best figures beside it."""
    good = [run for run in runs if run.get("pods_per_s") is not None]
    if len(good) < 2:
        return (good or list(runs))[0] | {"runs": len(runs)}
    middle = sorted(good, key=lambda run: float(run["pods_per_s"]))[len(good) // 2]
    cpu = [float(run["cpu_ms_per_pod"]) for run in good if run["cpu_ms_per_pod"] is not None]
    best: dict[str, Any] = {"runs": len(good), "best_pods_per_s": max(float(run["pods_per_s"]) for run in good)}
    if cpu:
        best |= {"best_cpu_ms_per_pod": min(cpu), "median_cpu_ms_per_pod": round(median(cpu), 4)}
    return middle | best
