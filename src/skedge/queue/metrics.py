"""What the queue tells the metrics. Upstream: `pkg/scheduler/metrics/metrics.go`.

Counts are kept here in plain dicts and read when somebody asks; durations are handed over as they are measured.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from skedge.queue.queued_pod import QueuedPodInfo


class QueueMetrics(Protocol):
    """Takes durations in seconds."""

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """`queueing_hint_execution_duration_seconds`; hint is Queue, QueueSkip or Error."""

    def pre_enqueue_executed(self, plugin: str, status: str, seconds: float) -> None:
        """`plugin_execution_duration_seconds` of extension point PreEnqueue, for one run in ten."""


class _NoMetrics:
    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None: ...

    def pre_enqueue_executed(self, plugin: str, status: str, seconds: float) -> None: ...


NO_METRICS: Final[QueueMetrics] = _NoMetrics()


class PendingCounts(NamedTuple):
    """`pending_pods{queue}`."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class QueueCounts:
    """`queue_incoming_pods_total{queue,event}` and `unschedulable_pods{plugin,profile}`."""

    __slots__ = ("active", "backoff", "rejected", "unschedulable")

    def __init__(self) -> None:
        self.active: dict[str, int] = {}
        self.backoff: dict[str, int] = {}
        self.unschedulable: dict[str, int] = {}
        self.rejected: dict[tuple[str, str], int] = {}

    @property
    def incoming(self) -> dict[tuple[str, str], int]:
        """(queue, event) → pods that came in."""
        queues = {"active": self.active, "backoff": self.backoff, "unschedulable": self.unschedulable}
        return {(queue, event): n for queue, events in queues.items() for event, n in events.items()}

    def rejectors(self, record: QueuedPodInfo, by: int) -> None:
        """Move the gauges of all rejectors of the pod."""
        for plugin in record.rejectors:
            self.rejector(plugin, record.pod.scheduler_name, by)

    def rejector(self, plugin: str, profile: str, by: int) -> None:
        key = (plugin, profile)
        self.rejected[key] = self.rejected.get(key, 0) + by
