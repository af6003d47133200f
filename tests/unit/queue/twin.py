"""The slow, obvious twin of the scheduling queue: one list of records, searched and sorted anew at every step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skedge.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from skedge.queue.object_events import pod_update_events
from skedge.snapshot.pods import PodInfo

Registered = dict[str, list[ClusterEvent]]


@dataclass
class Rec:
    pod: PodInfo
    timestamp: float
    place: str = ""
    attempts: int = 0
    first: float | None = None
    rejections: int = 0
    errors: int = 0
    unschedulable: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    marker: int = 0
    flushed: bool = False

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable | self.pending


class Twin:
    def __init__(
        self,
        now: float,
        *,
        registered: Registered,
        answer: Callable[[str, PodInfo, Any, Any], bool],
        content: Callable[[str, PodInfo], bool],
        gates: list[str],
        store: dict[str, Any],
        early: bool,
        groups: bool,
    ) -> None:
        self.now = now
        self.registered = registered
        self.answer = answer
        self.content = content
        self.gates = gates
        self.store = store
        self.early = early
        self.groups = groups
        self.records: list[Rec] = []
        self.log: list[tuple[ClusterEvent, Any, Any]] = []
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.gauge: Counter[str] = Counter()
        self.nominated: dict[str, str] = {}

    # looking

    def waiting(self, key: str) -> Rec | None:
        return next((r for r in self.records if r.pod.key == key and r.place != "in flight"), None)

    def flying(self, uid: str) -> Rec | None:
        return next((r for r in self.records if r.pod.uid == uid and r.place == "in flight"), None)

    def at(self, *places: str) -> list[Rec]:
        return [r for r in self.records if r.place in places]

    def kept_events(self) -> Counter[str]:
        markers = [r.marker for r in self.at("in flight")]
        return Counter(event.label for event, _, _ in self.log[min(markers) :]) if markers else Counter()

    def expiration(self, r: Rec) -> float:
        count = r.errors or r.rejections
        if not count:
            return 0.0
        end = r.timestamp + min(10.0, 2.0 ** (count - 1))
        return math.floor(end) if self.early else end

    def backing_off(self, r: Rec) -> bool:
        return self.expiration(r) >= (math.floor(self.now) if self.early else self.now)

    def next_ones(self) -> list[Rec]:
        """Those that may be popped next; more than one where only order of arrival decides."""
        key: Callable[[Rec], Any] = lambda r: (-r.pod.priority, r.timestamp)  # noqa: E731
        best = self.at("active")
        if not best and self.early:
            best = self.at("backoff")
            key = lambda r: (self.expiration(r), -r.pod.priority, r.timestamp)  # noqa: E731
        least = min(map(key, best), default=None)
        return [r for r in best if key(r) == least]

    # nomination

    def nominate(self, pod: PodInfo, node: str | None = None) -> None:
        self.nominated.pop(pod.uid, None)
        node = pod.nominated_node_name if node is None else node
        known = self.store.get(pod.key)
        if node and known is not None and not known.node_name:
            self.nominated[pod.uid] = node

    # moving

    def enqueue_check(self, r: Rec) -> bool:
        for name in sorted(self.gates, key=lambda name: name != r.gate):
            if not self.content(name, r.pod):
                if name not in r.unschedulable:
                    self.gauge[name] += 1
                r.unschedulable.add(name)
                r.gate = name
                return False
        r.gate = ""
        return True

    def evict(self, r: Rec) -> None:
        """Whatever else waits under the key gives way."""
        self.records = [x for x in self.records if x is r or x.pod.key != r.pod.key or x.place == "in flight"]
        if r not in self.records:
            self.records.append(r)

    def to_active(self, r: Rec, label: str, from_backoff: bool = False) -> bool:
        if not (from_backoff and self.early) and not self.enqueue_check(r):
            other = self.waiting(r.pod.key)
            if other is None or other is r or other.place == "unschedulable":
                self.to_unschedulable(r, label)
            return False
        if r.first is None:
            r.first = self.now
        self.evict(r)
        r.place = "active"
        self.incoming["active", label] += 1
        if label in ("UnschedulablePodAdd", "UnschedulablePodUpdate"):
            self.nominate(r.pod)
        return True

    def to_backoff(self, r: Rec, label: str) -> bool:
        if self.early and not self.enqueue_check(r):
            self.to_unschedulable(r, label)
            return False
        self.evict(r)
        r.place = "backoff" if r.rejectors and not (self.groups and r.pod.group) else "error backoff"
        self.incoming["backoff", label] += 1
        return True

    def to_unschedulable(self, r: Rec, label: str) -> None:
        other = self.waiting(r.pod.key)
        if other is None or other.place != "unschedulable":
            self.incoming["unschedulable", label] += 1
        self.evict(r)
        r.place = "unschedulable"

    def requeue(self, r: Rec, strategy: str, label: str) -> bool:
        if strategy == "skip":
            self.to_unschedulable(r, label)
            return False
        if strategy == "after backoff" and self.backing_off(r):
            return self.to_backoff(r, label)
        return self.to_active(r, label)

    def worth(self, r: Rec, event: ClusterEvent, old: Any, new: Any) -> str:
        if not r.rejectors:
            return "after backoff"
        if event.wildcard:
            return "after backoff" if new is None or getattr(new, "uid", None) == r.pod.uid else "skip"
        said = {
            name
            for name in r.rejectors
            if any(e.matches(event) for e in self.registered[name]) and self.answer(name, r.pod, old, new)
        }
        if said & r.pending:
            return "immediately"
        return "after backoff" if said else "skip"

    # what the queue is told

    def add(self, pod: PodInfo) -> None:
        self.to_active(Rec(pod, self.now), "UnschedulablePodAdd")

    def update(self, old: PodInfo, new: PodInfo) -> None:
        happened = pod_update_events(old, new)
        if self.flying(new.uid):
            self.log += [(event, old, new) for event in happened]
            return
        r = self.waiting(new.key)
        if r is None:
            self.to_active(Rec(new, self.now), "UnschedulablePodUpdate")
            return
        r.pod = new
        silent = not old.nominated_node_name and not new.nominated_node_name
        self.nominate(new, self.nominated.get(old.uid) if silent else None)
        if r.place == "unschedulable":
            for event in happened:
                if self.requeue(r, self.worth(r, event, old, new), event.label):
                    break

    def delete(self, pod: PodInfo) -> None:
        self.nominated.pop(pod.uid, None)
        r = self.waiting(pod.key)
        if r is not None:
            if r.place == "unschedulable":
                self.gauge.subtract(r.rejectors)
            self.records.remove(r)

    def take(self, r: Rec) -> None:
        if r.place == "backoff":
            self.incoming["active", "PopFromBackoffQ"] += 1
        r.attempts += 1
        r.place = "in flight"
        r.marker = len(self.log)
        self.gauge.subtract(r.rejectors)

    def done(self, uid: str) -> None:
        self.records = [r for r in self.records if not (r.place == "in flight" and r.pod.uid == uid)]

    def fail(self, uid: str, pod: PodInfo, unschedulable: set[str], pending: set[str]) -> str | None:
        r = self.flying(uid)
        assert r is not None
        r.pod = pod
        r.unschedulable, r.pending, r.gate = set(unschedulable), set(pending), ""
        if self.waiting(pod.key):
            self.done(uid)
            return "already present"
        if r.rejectors:
            r.rejections, r.errors = r.rejections + 1, 0
        else:
            r.errors += 1
        r.timestamp, r.flushed = self.now, False
        self.gauge.update(r.rejectors)
        strategy = "skip"
        if not r.rejectors or (self.groups and pod.group):
            strategy = "after backoff"
        else:
            found = {self.worth(r, *entry) for entry in self.log[r.marker :]}
            strategy = next((s for s in ("immediately", "after backoff") if s in found), "skip")
        r.place = ""
        self.records.remove(r)
        self.requeue(r, strategy, "ScheduleAttemptFailure")
        return None

    def move_all(self, event: ClusterEvent, new: Any, check: Callable[[PodInfo], bool]) -> None:
        if not event.wildcard and not any(e.matches(event) for es in self.registered.values() for e in es):
            return
        self.move([r for r in self.at("unschedulable") if check(r.pod)], event, new)
        self.log.append((event, None, new))

    def move(self, records: list[Rec], event: ClusterEvent, new: Any) -> None:
        for r in records:
            if r.gate and not any(e.matches(event) for e in self.registered[r.gate]):
                continue
            strategy = self.worth(r, event, None, new)
            if strategy != "skip":
                self.records.remove(r)
                r.place = ""
                self.requeue(r, strategy, event.label)

    def activate(self, pod: PodInfo) -> None:
        if not self.activate_waiting(pod) and self.flying(pod.uid):
            self.log.append((FORCE_ACTIVATE, None, pod))

    def activate_waiting(self, pod: PodInfo) -> bool:
        r = self.waiting(pod.key)
        if r is None or r.place == "active":
            return False
        if r.place == "unschedulable":
            return self.to_active(r, "ForceActivate")
        self.records.remove(r)
        return self.to_active(r, "ForceActivate", from_backoff=True)

    def tick(self, sweep: bool) -> None:
        for r in [*self.at("backoff"), *self.at("error backoff")]:
            if not self.backing_off(r):
                self.records.remove(r)
                self.to_active(r, "BackoffComplete", from_backoff=True)
        if sweep:
            old = [r for r in self.at("unschedulable") if self.now - r.timestamp > 300]
            for r in old:
                r.flushed = True
                if not r.gate or self.enqueue_check(r):
                    self.move([r], UNSCHEDULABLE_TIMEOUT, None)
            if old:
                self.log.append((UNSCHEDULABLE_TIMEOUT, None, None))
