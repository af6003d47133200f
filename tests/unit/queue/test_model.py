"""Anything may happen in any order, and the queue and its slow twin agree on everything after each step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
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

NAMES = [f"p{i}" for i in range(4)]
WHO = st.integers(0, len(NAMES) - 1)
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
        for priority in (0, 1, 0):
            self.add(priority=priority, gated=False, group=priority == 1, node="")

    def known(self, which: int) -> list[PodInfo]:
        """One of the pods the informer knows, if there is any."""
        pods = [each for each in self.world.store.values() if isinstance(each, PodInfo)]
        return [pods[which % len(pods)]] if pods else []

    def content(self, gate: str, each: PodInfo) -> bool:
        return (
            not each.pod.spec.scheduling_gates
            if gate == "SchedulingGates"
            else each.name not in self.world.barrier.closed
        )

    # --- rules --------------------------------------------------------------------------------------------------------

    @rule(priority=st.integers(0, 1), gated=st.booleans(), group=st.booleans(), node=st.sampled_from(["", "n"]))
    def add(self, priority: int, gated: bool, group: bool, node: str) -> None:
        name = next((name for name in NAMES if f"ns/{name}" not in self.world.store), None)
        if name is None:
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
        which=WHO,
        priority=st.integers(0, 1),
        gated=st.booleans(),
        labels=st.integers(0, 3),
        node=st.sampled_from(["", "n", "m"]),
        tolerations=st.integers(0, 1),
    )
    def update(self, which: int, priority: int, gated: bool, labels: int, node: str, tolerations: int) -> None:
        for old in self.known(which):
            new = pod(
                old.name,
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

    @rule(which=WHO)
    def delete(self, which: int) -> None:
        for gone in self.known(which):
            del self.world.store[gone.key]
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

    @rule(which=WHO)
    def add_again(self, which: int) -> None:
        for each in self.known(which):
            if not self.twin.flying(each.uid):
                self.world.queue.add(each)
                self.twin.add(each)

    @rule(
        rejectors=REJECTORS,
        pending=REJECTORS,
        meanwhile=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 2)), max_size=2),
    )
    def attempt(self, rejectors: set[str], pending: set[str], meanwhile: list[tuple[ClusterEvent, int]]) -> None:
        """A whole cycle that fails."""
        self.pop()
        for event, number in meanwhile:
            self.something_happens(event, number, 2)
        flying = len(self.twin.at("in flight"))
        self.finish(flying - 1, False, rejectors, pending)

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

    @rule(which=WHO)
    def activate(self, which: int) -> None:
        pods = self.known(which)
        self.world.queue.activate(pods)
        for each in pods:
            self.twin.activate(each)

    @rule(which=WHO)
    def pop_specific(self, which: int) -> None:
        for each in self.known(which):
            self.twin.activate_waiting(each)
            waits = self.twin.waiting(each.key)
            record = self.world.queue.pop_specific_pod(each)
            assert (record is not None) == (waits is not None and waits.place == "active")
            if record is not None and waits is not None:
                self.twin.take(waits)

    @rule(name=st.sampled_from(NAMES))
    def barrier(self, name: str) -> None:
        self.world.barrier.closed ^= {name}

    @rule(which=WHO, node=st.sampled_from([None, "", "n", "m"]))
    def nominate(self, which: int, node: str | None) -> None:
        for each in self.known(which):
            self.world.queue.nominator.add(each, node)
            self.twin.nominate(each, node)

    @rule(sweep=st.booleans())
    def flush(self, sweep: bool) -> None:
        """At any time, not only when it is due."""
        self.world.queue.flush_backoff_completed()
        if sweep:
            self.world.queue.flush_unschedulable_leftover()
        self.twin.tick(sweep)

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


QueueAgainstTwin.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestQueueAgainstTwin = QueueAgainstTwin.TestCase


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_long_walk(seed: int, early: bool) -> None:
    """The same rules, drawn so that most steps do something."""
    rng = random.Random(seed)
    machine = QueueAgainstTwin()
    machine.build(early=early, groups=seed % 2 == 0)

    def plugins() -> set[str]:
        return set(rng.sample(["Fit", "Other", "Labels"], rng.choice([0, 1, 1, 2])))

    steps: list[tuple[int, Callable[[], None]]] = [
        (6, lambda: machine.add(rng.randrange(2), rng.random() < 0.2, rng.random() < 0.2, rng.choice(["", "", "n"]))),
        (12, lambda: machine.update(*draw(4, 2), rng.random() < 0.5, *draw(4), rng.choice(["", "n", "m"]), *draw(2))),
        (2, lambda: machine.delete(*draw(4))),
        (3, lambda: machine.add_again(*draw(4))),
        (8, machine.pop),
        (20, lambda: machine.attempt(plugins(), plugins(), [(rng.choice(EVENTS), *draw(3))] * rng.randrange(2))),
        (10, lambda: machine.finish(*draw(6), rng.random() < 0.2, plugins(), plugins())),
        (20, lambda: machine.something_happens(rng.choice(EVENTS), *draw(3, 3))),
        (3, lambda: machine.activate(*draw(4))),
        (2, lambda: machine.pop_specific(*draw(4))),
        (4, lambda: machine.barrier(rng.choice(NAMES))),
        (3, lambda: machine.nominate(*draw(4), rng.choice([None, "", "n"]))),
        (4, lambda: machine.flush(rng.random() < 0.5)),
        (20, lambda: machine.time_passes(rng.choice([0.25, 0.25, 1.0, 1.0, 1.75, 4.0]))),
        (1, lambda: machine.time_passes(rng.choice([40.0, 330.0]))),
    ]

    def draw(*limits: int) -> list[int]:
        return [rng.randrange(limit) for limit in limits]

    weights = [weight for weight, _ in steps]
    for _ in range(1000):
        rng.choices(steps, weights)[0][1]()
        machine.agree()
        machine.counted()
        machine.nobody_sleeps_through()
