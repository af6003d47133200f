"""Anything may happen in any order, and the queue and its slow twin agree on everything after each step."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent
from skedge.queue.pending import Place
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PodInfo
from unit.queue.support import NODE_LABEL, PV_ADD, QUEUE, SKIP, Rejector, World, pod
from unit.queue.twin import Rec, Twin

NAMES = [f"p{i}" for i in range(6)]
WHO = st.sampled_from(NAMES)
POD_LABEL = ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL)
EVENTS = [
    events.NODE_ADD,
    NODE_LABEL,
    events.ASSIGNED_POD_DELETE,
    PV_ADD,
    events.UNSCHEDULABLE_POD_ADD,
    events.UNSCHEDULABLE_TIMEOUT,
]
REJECTORS = st.sets(st.sampled_from(["Fit", "Other", "Labels"]), max_size=2)


class Thing:
    """What an event is about; which hints like it depends on its number."""

    def __init__(self, number: int) -> None:
        self.number = number


def likes(plugin: str, each: PodInfo, old: Any, new: Any) -> bool:
    if plugin == "SchedulingGates":
        return isinstance(new, PodInfo) and new.uid == each.uid
    number = new.number if isinstance(new, Thing) else len(getattr(new, "labels", {}))
    return (number + len(plugin) + int(each.name[1:])) % 3 != 0


class QueueAgainstTwin(RuleBasedStateMachine):
    @initialize(early=st.booleans(), groups=st.booleans())
    def build(self, early: bool, groups: bool) -> None:
        labels = Rejector("Labels", POD_LABEL, events.NODE_ADD, NODE_LABEL)
        world = self.world = World(labels, pop_from_backoff_q=early, generic_workload=groups)
        for plugin in (world.fit, world.other, world.barrier, labels):
            plugin.judge = lambda p, old, new, name=plugin.name: QUEUE if likes(name, p, old, new) else SKIP
        registered = {plugin.name: list(plugin.registered) for plugin in world.plugins}
        taints = ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT)
        for listening in (registered["Fit"], registered["Labels"]):
            listening.append(taints)
        self.twin = Twin(
            world.clock.now(),
            registered=registered,
            answer=likes,
            content=self.content,
            gates=["SchedulingGates", "Barrier"],
            store=world.store,
            early=early,
            groups=groups,
        )
        self.early = early
        self.uids = 0
        self.wakes_seen = 0

    def content(self, gate: str, each: PodInfo) -> bool:
        return (
            not each.pod.spec.scheduling_gates
            if gate == "SchedulingGates"
            else each.name not in self.world.barrier.closed
        )

    # --- rules --------------------------------------------------------------------------------------------------------

    @rule(
        name=WHO, priority=st.integers(0, 1), gated=st.booleans(), group=st.booleans(), node=st.sampled_from(["", "n"])
    )
    def add(self, name: str, priority: int, gated: bool, group: bool, node: str) -> None:
        if f"ns/{name}" in self.world.store:
            return
        self.uids += 1
        made = pod(
            name,
            uid=f"u{self.uids}",
            priority=priority,
            gates=["g"] if gated else (),
            group="g" if group else None,
            nominated=node,
        )
        self.world.add(made)
        self.twin.add(made)

    @rule(
        name=WHO,
        priority=st.integers(0, 1),
        gated=st.booleans(),
        labels=st.integers(0, 3),
        node=st.sampled_from(["", "n", "m"]),
        tolerations=st.integers(0, 1),
    )
    def update(self, name: str, priority: int, gated: bool, labels: int, node: str, tolerations: int) -> None:
        old = self.world.store.get(f"ns/{name}")
        if not isinstance(old, PodInfo):
            return
        new = pod(
            name,
            uid=old.uid,
            priority=priority,
            gates=["g"] if gated and old.pod.spec.scheduling_gates else (),
            labels={str(i): "" for i in range(labels)},
            nominated=node,
            tolerations=tolerations,
            group=old.group,
        )
        self.world.update(old, new)
        self.twin.update(old, new)

    @rule(name=WHO)
    def delete(self, name: str) -> None:
        gone = self.world.store.pop(f"ns/{name}", None)
        if isinstance(gone, PodInfo):
            self.world.queue.delete(gone)
            self.twin.delete(gone)

    @rule()
    def pop(self) -> None:
        record = self.world.queue.pop()
        possible = self.twin.next_ones()
        if record is None:
            assert not possible
            self.wakes_seen = self.world.wakes
        else:
            chosen = [r for r in possible if r.pod.uid == record.pod.uid]
            assert chosen, f"{record} popped, expected one of {possible}"
            self.twin.take(chosen[0])

    @rule(which=st.integers(0, 5), bound=st.booleans(), rejectors=REJECTORS, pending=REJECTORS)
    def finish(self, which: int, bound: bool, rejectors: set[str], pending: set[str]) -> None:
        flying = [record for place, record in self.world.queue.records() if place is Place.IN_FLIGHT]
        if not flying:
            return
        record = flying[which % len(flying)]
        uid = record.pod.uid
        known = self.world.store.get(record.key)
        if bound or known is None or known.uid != uid:
            self.world.queue.done(uid)
            self.twin.done(uid)
            if bound and known is not None and known.uid == uid:
                del self.world.store[record.key]
            return
        assert isinstance(known, PodInfo)
        pending = pending & rejectors
        record.set_rejectors(rejectors, pending)
        record.pod = known
        refused = self.world.queue.add_unschedulable_if_not_present(record)
        assert (refused is None) == (self.twin.fail(uid, known, rejectors, pending) is None)

    @rule(event=st.sampled_from(EVENTS), number=st.integers(0, 2), below=st.integers(0, 2))
    def something_happens(self, event: ClusterEvent, number: int, below: int) -> None:
        new = None if event.wildcard else Thing(number)
        self.world.queue.move_all(event, None, new, None if below == 2 else lambda p: p.priority <= below)
        self.twin.move_all(event, new, lambda p: p.priority <= below)

    @rule(names=st.lists(WHO, unique=True, max_size=3))
    def activate(self, names: list[str]) -> None:
        pods = [p for name in names if isinstance(p := self.world.store.get(f"ns/{name}"), PodInfo)]
        self.world.queue.activate(pods)
        for each in pods:
            self.twin.activate(each)

    @rule(name=WHO)
    def barrier(self, name: str) -> None:
        self.world.barrier.closed ^= {name}

    @rule(name=WHO, node=st.sampled_from([None, "", "n", "m"]))
    def nominate(self, name: str, node: str | None) -> None:
        each = self.world.store.get(f"ns/{name}")
        if isinstance(each, PodInfo):
            self.world.queue.nominator.add(each, node)
            self.twin.nominate(each, node)

    @rule(seconds=st.sampled_from([0.25, 1.0, 1.75, 4.0, 40.0, 330.0]))
    def time_passes(self, seconds: float) -> None:
        end = self.twin.now + seconds
        for second in range(int(self.twin.now) + 1, int(end) + 1):
            self.twin.now = float(second)
            self.twin.tick(sweep=second % 30 == 10)  # 1,000,000 % 30 == 10
        self.twin.now = end
        self.world.pass_time(seconds)

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def agree(self) -> None:
        world, twin = self.world, self.twin
        world.queue.validate()
        found = {record.pod.uid: (place, record) for place, record in world.queue.records()}
        assert found.keys() == {r.pod.uid for r in twin.records}
        for r in twin.records:
            self.same(r, *found[r.pod.uid])
        assert {k: n for k, n in world.counts.incoming.items() if n} == dict(twin.incoming)
        assert world.counts.gauge() == {name: n for name, n in twin.gauge.items() if n}
        flying = len(twin.at("in flight"))
        assert world.queue.in_flight_counts() == {**twin.kept_events(), "PodPopped": flying}
        nominator = world.queue.nominator
        assert {uid: nominator.node_of(uid) for r in found.values() if (uid := r[1].pod.uid) in twin.nominated} == {
            r.pod.uid: twin.nominated[r.pod.uid] for r in twin.records if r.pod.uid in twin.nominated
        }
        listed = Counter(
            placed.node_name for node in nominator.nominated_nodes() for placed in nominator.nominated_pods(node)
        )
        assert listed == Counter(twin.nominated.values())

    def same(self, r: Rec, place: Place, record: QueuedPodInfo) -> None:
        assert place.value == ("gated" if r.place == "unschedulable" and r.gate else r.place)
        assert record.pod is r.pod
        assert (record.attempts, record.timestamp, record.initial_attempt_timestamp) == (
            r.attempts,
            r.timestamp,
            r.first,
        )
        assert (record.unschedulable_count, record.consecutive_errors_count) == (r.rejections, r.errors)
        assert (record.rejectors, record.gating_plugin) == (r.rejectors, r.gate)
        assert record.was_flushed_from_unschedulable == r.flushed
        if place in (Place.BACKOFF, Place.ERROR_BACKOFF):
            assert record.backoff_expiration == self.twin.expiration(r)

    @invariant()
    def counted(self) -> None:
        counts = self.world.queue.pending_counts()
        twin = self.twin
        resting = twin.at("unschedulable")
        gated = sum(1 for r in resting if r.gate)
        assert counts == (len(twin.at("active")), len(twin.at("backoff", "error backoff")), len(resting) - gated, gated)

    @invariant()
    def nobody_sleeps_through(self) -> None:
        """Since the last pop in vain there was a call for every pod that can be popped now."""
        assert not self.twin.next_ones() or self.world.wakes > self.wakes_seen


QueueAgainstTwin.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestQueueAgainstTwin = QueueAgainstTwin.TestCase
