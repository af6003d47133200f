"""Pods that were popped and are not done, and what happened meanwhile.

Upstream: `pkg/scheduler/backend/queue/active_queue.go` (inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from skedge.framework.events import ClusterEvent
from skedge.queue.queued_pod import QueuedPodInfo


class InFlightEvent(NamedTuple):
    event: ClusterEvent
    old: Any
    new: Any
    label: str


class InFlight:
    """One line of events in order of arrival; a pod's marker is its position in that line when it was popped.

    An event is kept as long as a pod popped before it is in flight.
    """

    def __init__(self) -> None:
        self._pods: dict[str, tuple[int, QueuedPodInfo]] = {}
        self._events: deque[InFlightEvent] = deque()
        self._first = 0  # position of the first event kept
        self.event_counts: dict[str, int] = {}

    def start(self, uid: str, record: QueuedPodInfo) -> bool:
        """Mark a popped pod. False (and no change) if that UID is in flight already."""
        if uid in self._pods:
            return False
        self._pods[uid] = (self._first + len(self._events), record)
        return True

    def append(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Something happened; only to be called while a pod is in flight."""
        label = event.label
        self._events.append(InFlightEvent(event, old, new, label))
        self.event_counts[label] = self.event_counts.get(label, 0) + 1

    def since(self, uid: str) -> Iterator[InFlightEvent]:
        """What happened since that pod was popped, in order; the pod must be in flight."""
        return islice(self._events, self._pods[uid][0] - self._first, None)

    def done(self, uid: str) -> bool:
        """Take the pod's marker away and forget the events nobody needs any more. False if it was not in flight."""
        if self._pods.pop(uid, None) is None:
            return False
        if self._events:
            self._forget()
        return True

    def _forget(self) -> None:
        events, counts = self._events, self.event_counts
        # Markers were set in order, so the oldest stands first.
        needed = next(iter(self._pods.values()))[0] if self._pods else self._first + len(events)
        while self._first < needed:
            label = events.popleft().label
            self._first += 1
            counts[label] -= 1
            if not counts[label]:
                del counts[label]

    def clear(self) -> None:
        for uid in list(self._pods):
            self.done(uid)

    @property
    def events(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def get(self, uid: str) -> QueuedPodInfo | None:
        found = self._pods.get(uid)
        return None if found is None else found[1]

    def items(self) -> Iterator[tuple[str, QueuedPodInfo]]:
        """(UID, record) in the order they were popped."""
        return ((uid, record) for uid, (_, record) in self._pods.items())

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """AssertionError when markers are out of order, an unneeded event was kept, or counts are wrong."""
        markers = [marker for marker, _ in self._pods.values()]
        end = self._first + len(self._events)
        assert markers == sorted(markers), "markers out of order"
        assert all(self._first <= marker <= end for marker in markers), "a marker points outside the events"
        if self._events:
            assert markers, "events are kept though nothing is in flight"
            assert markers[0] == self._first, "events are kept that no pod needs"
        counted: dict[str, int] = {}
        for kept in self._events:
            counted[kept.label] = counted.get(kept.label, 0) + 1
        assert counted == self.event_counts, f"counts of events are {self.event_counts}, there are {counted}"
