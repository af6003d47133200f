"""The queue of pods to be placed. Upstream: `pkg/scheduler/backend/queue/scheduling_queue.go`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from skedge.clock import Clock
from skedge.framework.events import (
    ASSIGNED_POD_DELETE,
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from skedge.queue.hints import ProfileQueueing, QueueingHints, Strategy
from skedge.queue.in_flight import InFlight
from skedge.queue.nominator import Lister
from skedge.queue.object_events import pod_update_events
from skedge.queue.pending import ADD, UPDATE, PendingCounts, PendingPods, Place
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.queue.story import Step
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

SWEEP_SECONDS: Final = 30.0
"""How often pods that have been unschedulable for too long are looked for."""

_ROUNDING: Final = 1e-6


class SchedulingQueue:
    """Pods without a node, each in exactly one place, and the order in which they are tried.

                        add; update of a pod not seen before
                                        │ PreEnqueue
                          content ┌─────┴─────┐ not content
                                  ▼           ▼
         ┌────────────────▶ ACTIVE ◀─────── GATED ◀────────────────┐
         │                   │   ▲      its gate listens to an     │ PreEnqueue not content
         │               pop │   │      event, a rejector's hint   │ on the way out
         │                   ▼   │      says Queue; Activate       │
         │             IN FLIGHT │                                 │
         │                   │   └───────────────────────────┐     │
         │                   ├─▶ done: bound soon, or gone   │     │
         │    attempt failed │                               │ hint says Queue and backoff is over,
         │         ┌─────────┴──┬────────────────────┐       │ or by a pending plugin; Activate
         │         │ nobody     │ rejected, a hint   │ rejected    │
         │         │ rejected   │ said Queue in the  │       │     │
         │         ▼            ▼ meantime           ▼       │     │
         │   ERROR BACKOFF   BACKOFF ◀────────── UNSCHEDULABLE ────┘
         │         │            │    hint says Queue;
         └─────────┴────────────┘    5 minutes passed
          pause over, at a whole second; Activate

    Pop takes from BACKOFF before its time when ACTIVE is empty, never from ERROR BACKOFF. `delete` leads out of every
    place but IN FLIGHT: that pod's cycle will find it gone. Events, updates and Activate leave a pod in flight where it
    is; they are gone through once its attempt has failed.

    Pure state: nothing here waits. The caller pops until None, then sleeps until `on_ready` was called, and calls
    `flush_due` at `next_deadline()`. One thread, no re-entrance: hints, PreEnqueue and `on_ready` must not call back.

    Time is the clock's `now()` at the start, moved on by `monotonic()`: setting the machine's clock moves no pod.

    Args:
        sort_key: the QueueSort plugin's: (priority, timestamp, pod) → what is ordered, smallest first.
        profiles: scheduler name → its PreEnqueue plugins and hint map.
        pod_initial_backoff, pod_max_backoff: seconds; a maximum of 0 means no backoff.
        max_in_unschedulable: seconds after which an unschedulable pod is tried without an event; `math.inf`: never.
        pop_from_backoff_q, generic_workload: the gates SchedulerPopFromBackoffQ and GenericWorkload.
        lister: the informer's pod of a key.
        on_ready: called when a pod may be popped; it should only set a flag.
        hooks: is told what the metrics need, but for `pending_counts()` and `in_flight_counts()`, which are asked for.
    """

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[int, float, PodInfo], Any],
        profiles: Mapping[str, ProfileQueueing],
        *,
        lister: Lister,
        on_ready: Callable[[], None] = lambda: None,
        pod_initial_backoff: float = 1.0,
        pod_max_backoff: float = 10.0,
        max_in_unschedulable: float = 300.0,
        pop_from_backoff_q: bool = True,
        generic_workload: bool = False,
        hooks: SchedulerHooks | None = None,
    ) -> None:
        hooks = hooks or SchedulerHooks()
        self._monotonic = clock.monotonic
        self._epoch = clock.now() - clock.monotonic()
        self._on_ready = on_ready
        self._max_in_unschedulable = max_in_unschedulable
        self._generic_workload = generic_workload
        self._last_sweep = self.now()
        self.closed = False
        self.scheduling_cycle = 0
        self.hints = QueueingHints({name: p.hints for name, p in profiles.items()}, clock.monotonic, hooks)
        self._pending = PendingPods(
            self.now,
            clock.monotonic,
            sort_key,
            {name: p.pre_enqueue for name, p in profiles.items()},
            self.hints.events_of,
            lister=lister,
            on_ready=on_ready,
            initial_backoff=pod_initial_backoff,
            max_backoff=pod_max_backoff,
            pop_from_backoff_q=pop_from_backoff_q,
            generic_workload=generic_workload,
            hooks=hooks,
        )
        self.nominator = self._pending.nominator
        self._in_flight = InFlight()

    def now(self) -> float:
        """Seconds since 1970, in the time all records and stories are written in."""
        return self._epoch + self._monotonic()

    # --- pods come and go ---------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """A pod without a node appeared."""
        self._pending.to_active(QueuedPodInfo(pod, self.now()), ADD)

    def update(self, old: PodInfo | None, new: PodInfo) -> None:
        """A pod without a node changed; with `old` unknown any change counts as the generic one."""
        if new.uid in self._in_flight:
            for event in _update_events(old, new):
                self._in_flight.append(event, old, new)
            return
        pending = self._pending
        record = pending.find(new.key)
        if record is None:
            pending.to_active(QueuedPodInfo(new, self.now()), UPDATE)
            return
        before = old or record.pod
        record.pod = new
        self.nominator.update(before, new)
        pending.tell(record, "update")
        if record.key not in pending.unschedulable:
            pending.resort(record)
            return
        for event in _update_events(old, new):
            if pending.requeue(record, self.hints.worth_requeuing(record, event, old, new), event.label):
                return

    def delete(self, pod: PodInfo | PlacedPod) -> None:
        """A pod is gone, or got a node elsewhere. One in flight is left alone."""
        self.nominator.delete(pod)
        self._pending.delete(pod.key)

    # --- the cycle's side ---------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to try, now in flight; None when none may be popped. Never waits."""
        while not self.closed:
            record = self._pending.pop()
            if record is None or self._take(record):
                return record
        return None

    def pop_specific_pod(self, pod: PodInfo) -> QueuedPodInfo | None:
        """This pod, now in flight, wherever it waits; None when it is gated, in flight or unknown."""
        pending, key = self._pending, pod.key
        if key not in pending.active:
            pending.activate(key)
        record = pending.active.remove(key)
        return record if record is not None and self._take(record) else None

    def _take(self, record: QueuedPodInfo) -> bool:
        record.attempts += 1
        if not self._in_flight.start(record.pod.uid, record):
            log.error(None, "the same pod is tracked in multiple places in the scheduler", pod=record.key)
            self._pending.tell(record, "dropped")
            return False
        self.scheduling_cycle += 1
        record.promised = self.nominator.moved(record.pod.uid)
        if record.rejectors:
            self._pending.count_rejectors(record, -1)
        self._pending.tell(record, "pop")
        return True

    def done(self, uid: str) -> None:
        """The pod's attempt is over as far as the queue is concerned: bound soon, or given up."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, record: QueuedPodInfo) -> str | None:
        """Put a pod back whose attempt failed, with the rejectors set on the record and the informer's pod in it.

        Ends its flight in any case. Returns None, or why it was not put back: a pod of its key waits already.
        """
        uid, key, pending = record.pod.uid, record.key, self._pending
        try:
            if key in pending.unschedulable:
                return f"Pod {key} is already present in unschedulable queue"
            if key in pending.active:
                return f"Pod {key} is already present in the active queue"
            if key in pending.backoff:
                return f"Pod {key} is already present in the backoff queue"
            if record.rejectors:
                record.unschedulable_count += 1
                record.consecutive_errors_count = 0
            else:
                record.consecutive_errors_count += 1
            record.timestamp = self.now()
            record.backoff_expiration = 0.0
            record.was_flushed_from_unschedulable = False
            pending.count_rejectors(record, 1)
            pending.requeue(record, self._strategy_after_flight(record), SCHEDULE_ATTEMPT_FAILURE)
            return None
        finally:
            self._in_flight.done(uid)
            self.nominator.moved(uid)

    def _strategy_after_flight(self, record: QueuedPodInfo) -> Strategy:
        """Go through what happened since the pod was popped."""
        if not record.rejectors or (self._generic_workload and record.pod.group is not None):
            return Strategy.AFTER_BACKOFF
        if record.pod.uid not in self._in_flight:
            log.error(None, "a pod is put back that was not in flight", pod=record.key)
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for event, old, new, _ in self._in_flight.since(record.pod.uid):
            found = self.hints.worth_requeuing(record, event, old, new)
            if found is Strategy.IMMEDIATELY:
                return found
            if found is Strategy.AFTER_BACKOFF:
                strategy = found
                if not record.pending_plugins:
                    break
        return strategy

    # --- the world's side ---------------------------------------------------------------------------------------------

    def move_all(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        pre_check: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Something happened in the cluster: unschedulable pods it may help are tried again.

        `pre_check` narrows who is looked at. Upstream: MoveAllToActiveOrBackoffQueue.
        """
        if not self.hints.of_interest(event):
            return
        unschedulable = self._pending.unschedulable
        if len(unschedulable):
            can_matter = self.hints.can_matter
            records = unschedulable.select(lambda b: can_matter(b.scheduler_name, b.rejectors, event))
            if pre_check is not None:
                records = [record for record in records if pre_check(record.pod)]
            self._move(records, event, old, new)
        if self._in_flight:
            self._in_flight.append(event, old, new)

    def _move(self, records: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any) -> None:
        label = event.label
        for record in records:
            if record.gated and not any(registered.matches(event) for registered in record.gating_events):
                continue
            strategy = self.hints.worth_requeuing(record, event, old, new)
            if strategy is not Strategy.SKIP:
                self._pending.unschedulable.remove(record.key)
                self._pending.requeue(record, strategy, label)

    def promise_over(self, record: QueuedPodInfo, node_name: str) -> None:
        """An attempt ended with this node for the pod, chosen or nominated.

        Whoever may use another one that was promised to it is told here: where we alone knew of the promise, and where
        the pod is bound, no change of the pod would tell them.
        """
        held, record.promised = record.promised, ""
        if held and held != node_name:
            self.room_given_up(record.pod, held, itself=False)

    def room_given_up(self, pod: PodInfo, node_name: str, itself: bool = True) -> None:
        """A pod does not go to the node that was promised to it: pods of at most its priority may."""
        self.move_all(
            ASSIGNED_POD_DELETE,
            PlacedPod(pod, node_name),
            None,
            lambda pending: pending.priority <= pod.priority and (itself or pending.uid != pod.uid),
        )

    def activate(self, pods: Iterable[PodInfo | PlacedPod]) -> None:
        """Try these pods again at once, whatever they wait for (gates excepted); for pods in flight: later."""
        for pod in pods:
            if not self._pending.activate(pod.key) and pod.uid in self._in_flight:
                self._in_flight.append(FORCE_ACTIVATE, None, pod)

    # --- time ---------------------------------------------------------------------------------------------------------

    def flush_backoff_completed(self) -> None:
        """Pods whose pause is over become active."""
        for record in self._pending.backoff.pop_completed():
            self._pending.to_active(record, BACKOFF_COMPLETE, from_backoff=True)

    def flush_unschedulable_leftover(self) -> None:
        """Pods that have been unschedulable for longer than allowed are tried without an event.

        A gated pod stays unless its gate has opened without any event saying so (the reference does not even look).
        """
        now, pending = self.now(), self._pending
        records = [r for r in pending.unschedulable if now - r.timestamp > self._max_in_unschedulable]
        for record in records:
            record.was_flushed_from_unschedulable = True
            if record.gated and not pending.gate.passes(record):
                pending.unschedulable.put(record)
            else:
                self._move((record,), UNSCHEDULABLE_TIMEOUT, None, None)
        if records and self._in_flight:
            self._in_flight.append(UNSCHEDULABLE_TIMEOUT, None, None)

    def flush_due(self) -> None:
        """Whatever `next_deadline` was about."""
        self.flush_backoff_completed()
        since = self.now() - self._last_sweep
        if since >= SWEEP_SECONDS:
            self._last_sweep += since // SWEEP_SECONDS * SWEEP_SECONDS
            self.flush_unschedulable_leftover()

    def next_deadline(self) -> float | None:
        """When, in the clock's `monotonic()`, `flush_due` is to be called next; None when nothing waits for time."""
        due = self._pending.backoff.next_tick()
        if len(self._pending.unschedulable) and self._max_in_unschedulable < math.inf:
            sweep = self._last_sweep + SWEEP_SECONDS
            due = sweep if due is None else min(due, sweep)
        if due is None:
            return None
        when = due - self._epoch
        return when if self._epoch + when >= due else when + _ROUNDING

    # --- looking ------------------------------------------------------------------------------------------------------

    def find(self, key: str) -> QueuedPodInfo | None:
        """The record that waits under a key; pods in flight are not found."""
        return self._pending.find(key)

    def in_flight(self, uid: str) -> QueuedPodInfo | None:
        """The record of a pod in flight."""
        return self._in_flight.get(uid)

    def records(self) -> Iterator[tuple[Place, QueuedPodInfo]]:
        """Every record the queue knows, in flight included, with where it is."""
        yield from self._pending.records()
        yield from ((Place.IN_FLIGHT, record) for _, record in self._in_flight.items())

    def nominated_pods_for_node(self, node_name: str) -> list[PlacedPod]:
        """Pods that were promised room on the node, as if they were on it."""
        return self.nominator.nominated_pods(node_name)

    def pending_counts(self) -> PendingCounts:
        return self._pending.pending_counts()

    def pending_pods(self) -> tuple[list[PodInfo], str]:
        """Pods that wait, and how many wait where, in the reference's words."""
        return [record.pod for _, record in self._pending.records()], self._pending.summary()

    def in_flight_counts(self) -> dict[str, int]:
        """`inflight_events{event}`: events kept for pods in flight by label, and the pods as `PodPopped`."""
        return {**self._in_flight.event_counts, "PodPopped": len(self._in_flight)}

    def story(self, key: str) -> list[Step]:
        """What happened to a pod lately, oldest first."""
        return self._pending.story.of(key)

    def statistics(self) -> dict[str, int]:
        return {
            **self.pending_counts()._asdict(),
            "error_backoff": len(self._pending.backoff.errors),
            "in_flight": len(self._in_flight),
            "in_flight_events": self._in_flight.events,
            "nominated": len(self.nominator),
            "scheduling_cycle": self.scheduling_cycle,
            "story": len(self._pending.story),
        }

    def validate(self) -> None:
        """Check that every pod is in exactly one place and what is kept in two forms agrees.

        Raises AssertionError; where it is about one pod, with the pod's story.
        """
        self._pending.validate()
        self._in_flight.validate()
        for _, record in self._pending.records():
            self._pending.expect(record.pod.uid not in self._in_flight, record, "waits and is in flight")

    def close(self) -> None:
        """No pod is popped any more; nothing counts as in flight."""
        self._in_flight.clear()
        self.closed = True
        self._on_ready()


def _update_events(old: PodInfo | None, new: PodInfo) -> Iterable[ClusterEvent]:
    return (UNSCHEDULABLE_POD_UPDATE,) if old is None else pod_update_events(old, new)
