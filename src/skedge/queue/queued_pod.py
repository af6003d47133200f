"""The record the queue keeps of a pending pod. Upstream: `pkg/scheduler/framework/types.go` (QueuedPodInfo)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from skedge.framework.events import ClusterEvent
from skedge.snapshot.pods import PodInfo

NOBODY: frozenset[str] = frozenset()


class QueuedPodInfo:
    """A pod and its history in the queue. Times are seconds since 1970 as `SchedulingQueue.now()` gives them.

    pod                        replaced at every update while the pod waits; in flight it stays what was popped
    timestamp                  when the record was made, or the last failed attempt was put back
    attempts                   how often it was popped
    initial_attempt_timestamp  when it first entered the active queue ungated; None before
    unschedulable_count        failed attempts with a rejector, never reset
    consecutive_errors_count   failed attempts without a rejector since the last one with
    backoff_expiration         0.0 until it is first asked for after an attempt
    unschedulable_plugins, pending_plugins, rejectors (the union)
                               who turned the last attempt down; kept while the pod waits and while it is popped
    gating_plugin, gating_events
                               the PreEnqueue plugin that keeps the pod out, and what it registered for
    was_flushed_from_unschedulable
                               the sweep of old unschedulable pods moved it; until it is put back
    promised                   the node it was nominated to when it was popped, until the attempt has come to an end
    bucket                     the unschedulable set's own
    """

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "bucket",
        "consecutive_errors_count",
        "gating_events",
        "gating_plugin",
        "initial_attempt_timestamp",
        "key",
        "pending_plugins",
        "pod",
        "promised",
        "rejectors",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed_from_unschedulable",
    )

    def __init__(self, pod: PodInfo, timestamp: float) -> None:
        self.pod = pod
        self.key = pod.key
        self.timestamp = timestamp
        self.attempts = 0
        self.initial_attempt_timestamp: float | None = None
        self.unschedulable_count = 0
        self.consecutive_errors_count = 0
        self.backoff_expiration = 0.0
        self.unschedulable_plugins = self.pending_plugins = self.rejectors = NOBODY
        self.gating_plugin = ""
        self.gating_events: tuple[ClusterEvent, ...] = ()
        self.was_flushed_from_unschedulable = False
        self.promised = ""
        self.bucket: Hashable = None

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    def set_rejectors(self, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """What the failure handler learnt from an attempt; also forgets what gated the pod before it."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.rejectors = self.unschedulable_plugins | self.pending_plugins
        self.gating_plugin = ""
        self.gating_events = ()

    def gate(self, plugin: str, events: tuple[ClusterEvent, ...]) -> None:
        """PreEnqueue of `plugin` keeps the pod out; the plugin counts among its rejectors from now on."""
        if plugin not in self.unschedulable_plugins:
            self.unschedulable_plugins |= {plugin}
            self.rejectors |= {plugin}
        self.gating_plugin = plugin
        self.gating_events = events

    def __repr__(self) -> str:
        return f"<QueuedPodInfo {self.key} attempts={self.attempts}>"
