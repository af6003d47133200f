"""The places where pods wait for their next attempt, and the ways between them.

Upstream: `pkg/scheduler/backend/queue/scheduling_queue.go` (moveToActiveQ, moveToBackoffQ, requeue...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from skedge.framework.events import (
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_Q,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    ClusterEvent,
)
from skedge.framework.plugin import PreEnqueuePlugin
from skedge.queue.backoff import BackoffQueue
from skedge.queue.gating import Gate
from skedge.queue.heap import PodHeap
from skedge.queue.hints import Strategy
from skedge.queue.nominator import Lister, PodNominator
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.queue.story import Story
from skedge.queue.unschedulable import UnschedulablePods
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

ADD: Final = UNSCHEDULABLE_POD_ADD.label
UPDATE: Final = UNSCHEDULABLE_POD_UPDATE.label
_ACTIVATE: Final = FORCE_ACTIVATE.label


class Place(Enum):
    """Where a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


class PendingCounts(NamedTuple):
    """`pending_pods{queue}`; gated pods do not count as unschedulable here."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class PendingPods:
    """Active, backoff and unschedulable pods; a pod key is in one of them at most.

    Every way that ends in `active` passes PreEnqueue; with `pop_from_backoff_q`, as pods are popped from `backoff`
    too, the way into `backoff` does instead of the way out of it. `SchedulingQueue` explains the arguments.
    """

    def __init__(
        self,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        sort_key: Callable[[int, float, PodInfo], Any],
        pre_enqueue: Mapping[str, tuple[PreEnqueuePlugin, ...]],
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        *,
        lister: Lister,
        on_ready: Callable[[], None],
        initial_backoff: float,
        max_backoff: float,
        pop_from_backoff_q: bool,
        generic_workload: bool = False,
        hooks: SchedulerHooks,
    ) -> None:
        self._now = now
        self._sort_key = sort_key
        self._on_ready = on_ready
        self._pop_from_backoff_q = pop_from_backoff_q
        self._hooks = hooks
        self.story = Story()
        self.gate = Gate(pre_enqueue, events_of, monotonic, hooks)
        self.active = PodHeap()
        self.backoff = BackoffQueue(
            now,
            self._key_of,
            initial=initial_backoff,
            maximum=max_backoff,
            pop_from_backoff_q=pop_from_backoff_q,
            generic_workload=generic_workload,
        )
        self.unschedulable = UnschedulablePods()
        self.nominator = PodNominator(lister, self._pod)

    # --- in and between -----------------------------------------------------------------------------------------------

    def requeue(self, record: QueuedPodInfo, strategy: Strategy, label: str) -> bool:
        """Put a record where the strategy says. False when it rests among the unschedulable pods, gated or not."""
        if strategy is Strategy.SKIP:
            self.park(record, label)
            return False
        if strategy is Strategy.AFTER_BACKOFF and self.backoff.backing_off(record):
            return self._to_backoff(record, label)
        return self.to_active(record, label)

    def to_active(self, record: QueuedPodInfo, label: str, from_backoff: bool = False) -> bool:
        """From wherever it is, unless PreEnqueue says no: then (False) it rests among the unschedulable pods."""
        key = record.key
        if not (from_backoff and self._pop_from_backoff_q) and not self.gate.passes(record):
            if key not in self.active and key not in self.backoff:
                self.park(record, label)
            return False
        try:
            sort_key = self._key_of(record)
        except Exception as error:
            self._park_unsorted(record, label, error)
            return False
        now = self._now()
        if record.initial_attempt_timestamp is None:
            record.initial_attempt_timestamp = now
        if key in self.unschedulable:
            self.unschedulable.remove(key)
        elif len(self.backoff):
            self.backoff.remove(key)
        self.active.push(record, sort_key)
        if label in (ADD, UPDATE) and (record.pod.nominated_node_name or len(self.nominator)):
            self.nominator.add(record.pod)
        self._hooks.queue_incoming("active", label)
        self._moved(record, "active", label, now)
        self._on_ready()
        return True

    def _to_backoff(self, record: QueuedPodInfo, label: str) -> bool:
        if self._pop_from_backoff_q and not self.gate.passes(record):
            self.park(record, label)
            return False
        try:
            heap = self.backoff.push(record)
        except Exception as error:
            self._park_unsorted(record, label, error)
            return False
        self.unschedulable.remove(record.key)
        self._hooks.queue_incoming("backoff", label)
        early = heap is self.backoff.rejected
        self._moved(record, "backoff" if early else "error backoff", label, self._now())
        if early and self._pop_from_backoff_q:
            self._on_ready()
        return True

    def park(self, record: QueuedPodInfo, label: str) -> None:
        """Into the unschedulable set, or a fresh look at one that is there."""
        if self.unschedulable.put(record):
            self._hooks.queue_incoming("unschedulable", label)
            self._moved(record, "gated" if record.gated else "unschedulable", label, self._now())

    def _park_unsorted(self, record: QueuedPodInfo, label: str, error: Exception) -> None:
        """A broken QueueSort plugin must not lose the pod: it waits for the next event or the sweep."""
        log.error(error, "QueueSort failed, the pod is left among the unschedulable ones", pod=record.key)
        self.backoff.remove(record.key)
        self.active.remove(record.key)
        self.park(record, label)

    def activate(self, key: str) -> bool:
        """Out of the unschedulable set or backoff into the active queue. False if it was in neither, or is gated."""
        record = self.unschedulable.get(key)
        if record is not None:
            return self.to_active(record, _ACTIVATE)
        record = self.backoff.remove(key)
        return record is not None and self.to_active(record, _ACTIVATE, from_backoff=True)

    def resort(self, record: QueuedPodInfo) -> None:
        """An active pod or one in backoff changed: give it the turn it has now."""
        try:
            if record.key in self.active:
                self.active.push(record, self._key_of(record))
            else:
                self.backoff.push(record)
        except Exception as error:
            log.error(error, "QueueSort failed, the pod keeps its turn", pod=record.key)

    # --- out ----------------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The first active pod; if there is none, the one whose pause after a rejection ends first."""
        record = self.active.pop()
        if record is None and self._pop_from_backoff_q:
            record = self.backoff.pop_early()
            if record is not None:
                self._hooks.queue_incoming("active", POP_FROM_BACKOFF_Q)
        return record

    def delete(self, key: str) -> None:
        record = self.active.remove(key) or self.backoff.remove(key)
        if record is None:
            record = self.unschedulable.remove(key)
            if record is None:
                return
            self.count_rejectors(record, -1)
        self.tell(record, "delete")

    # --- looking ------------------------------------------------------------------------------------------------------

    def find(self, key: str) -> QueuedPodInfo | None:
        return self.active.get(key) or self.backoff.get(key) or self.unschedulable.get(key)

    def _pod(self, key: str) -> PodInfo | None:
        record = self.find(key)
        return None if record is None else record.pod

    def _key_of(self, record: QueuedPodInfo) -> Any:
        pod = record.pod
        return self._sort_key(pod.priority, record.timestamp, pod)

    def count_rejectors(self, record: QueuedPodInfo, change: int) -> None:
        """Move the gauges `unschedulable_pods` of everybody who turned the pod down."""
        for plugin in record.rejectors:
            self._hooks.unschedulable_pods(plugin, record.pod.scheduler_name, change)

    def tell(self, record: QueuedPodInfo, what: str, why: str = "") -> None:
        """A step of the pod's story."""
        self.story.tell((self._now(), record.key, what, why))

    def _moved(self, record: QueuedPodInfo, queue: str, event: str, now: float) -> None:
        self.story.tell((now, record.key, queue, event))
        if log.v(3):
            plugins = sorted(record.rejectors)
            log.info(
                "Pod moved to an internal scheduling queue",
                pod=record.key,
                event=event,
                queue=queue,
                unschedulablePlugins=plugins,
            )

    def records(self) -> Iterator[tuple[Place, QueuedPodInfo]]:
        """Every record with where it is: active, backoff, error backoff, then the unschedulable set."""
        yield from ((Place.ACTIVE, record) for record in self.active)
        yield from ((Place.BACKOFF, record) for record in self.backoff.rejected)
        yield from ((Place.ERROR_BACKOFF, record) for record in self.backoff.errors)
        for record in self.unschedulable:
            yield (Place.GATED if record.gated else Place.UNSCHEDULABLE), record

    def pending_counts(self) -> PendingCounts:
        gated = self.unschedulable.gated
        return PendingCounts(len(self.active), len(self.backoff), len(self.unschedulable) - gated, gated)

    def summary(self) -> str:
        return f"activeQ:{len(self.active)}; backoffQ:{len(self.backoff)}; unschedulablePods:{len(self.unschedulable)}"

    def validate(self) -> None:
        """AssertionError, with the pod's story where it is about one pod, when a pod is not where it belongs."""
        for part in (self.active, self.backoff.rejected, self.backoff.errors, self.unschedulable):
            part.validate()
        self.nominator.validate()
        places: dict[str, Place] = {}
        for place, record in self.records():
            self.expect(record.key not in places, record, f"in {place} and {places.get(record.key)}")
            places[record.key] = place
            in_backoff = place in (Place.BACKOFF, Place.ERROR_BACKOFF)
            unasked = in_backoff and not self._pop_from_backoff_q  # PreEnqueue is asked on the way out
            self.expect((place is Place.GATED) == record.gated or unasked, record, f"gated in {place}")
            self.expect(not in_backoff or self.backoff.early(record) == (place is Place.BACKOFF), record, f"in {place}")

    def expect(self, holds: bool, record: QueuedPodInfo, what: str) -> None:
        """AssertionError with the pod's story unless it holds."""
        if not holds:
            raise AssertionError("\n".join([f"{record!r}: {what}", *map(str, self.story.of(record.key))]))
