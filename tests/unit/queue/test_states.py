"""Every way from one place to another: (state, event) → next state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skedge.framework import events
from skedge.queue.pending import Place
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PodInfo
from unit.queue.support import GATES_GONE, NODE_LABEL, POD_DELETE, QUEUE, SKIP, Rejector, World, pod

A, B, E = Place.ACTIVE, Place.BACKOFF, Place.ERROR_BACKOFF
U, G, F = Place.UNSCHEDULABLE, Place.GATED, Place.IN_FLIGHT
P = pod()
CHANGED = pod(labels={"a": "b"})

Step = Callable[[World], object]


# --- ways into a state ------------------------------------------------------------------------------------------------


def nowhere(world: World) -> None:
    world.store[P.key] = P


def closed(world: World) -> None:
    world.barrier.closed = {"p"}


def active(world: World) -> None:
    world.add(P)


def in_flight(world: World) -> None:
    world.add(P)
    world.pop()


def record_of(world: World) -> QueuedPodInfo:
    record = world.queue.in_flight(P.uid) or world.queue.find(P.key)
    assert record is not None
    return record


def error_backoff(world: World) -> None:
    in_flight(world)
    world.fail(record_of(world))


def rejected(world: World) -> None:
    world.rejected(P, "Fit")


def rejected_long_ago(world: World) -> None:
    rejected(world)
    world.clock.advance(20)


def rejected_pending(world: World) -> None:
    world.rejected(P, "Fit", pending=["Fit"])


def backoff(world: World) -> None:
    rejected(world)
    node_added(world)


def without_rejectors(world: World) -> None:
    """Unschedulable without a rejector: only a QueueSort plugin that fails leaves a pod like that."""
    rejected(world)
    record = record_of(world)
    world.queue._pending.unschedulable.remove(P.key)
    record.set_rejectors()
    world.queue._pending.unschedulable.put(record)


def gated_anew(world: World) -> None:
    closed(world)
    world.add(P)


def gated_after_rejection(world: World) -> None:
    """By Barrier, which listens to Pod Delete, as does its older rejector Fit."""
    rejected(world)
    closed(world)
    node_added(world)


def gated_and_settled(world: World) -> None:
    gated_after_rejection(world)
    world.clock.advance(20)


# --- events -----------------------------------------------------------------------------------------------------------


def then(*steps: Step) -> Step:
    def run(world: World) -> None:
        for step in steps:
            step(world)

    return run


def opened(world: World) -> None:
    world.barrier.closed.clear()


def skipping(world: World) -> None:
    world.fit.answer = SKIP


def add(world: World) -> None:
    world.add(P)


def delete(world: World) -> None:
    world.queue.delete(P)


def update(world: World) -> None:
    world.update(P, CHANGED)


def node_added(world: World) -> None:
    world.queue.move_all(events.NODE_ADD)


def pod_deleted(world: World) -> None:
    world.queue.move_all(events.ASSIGNED_POD_DELETE, pod("gone"), None)


def node_labelled(world: World) -> None:
    world.queue.move_all(NODE_LABEL)


def activate(world: World) -> None:
    world.queue.activate([P])


def pop(world: World) -> None:
    world.queue.pop()


def pop_specific(world: World) -> None:
    world.queue.pop_specific_pod(P)


def wait(seconds: float) -> Step:
    return lambda world: world.pass_time(seconds)


def done(world: World) -> None:
    world.queue.done(P.uid)


def fail(*plugins: str) -> Step:
    return lambda world: world.fail(record_of(world), *plugins)


def fail_pending(world: World) -> None:
    world.fail(record_of(world), "Fit", pending=["Fit"])


WANTS_UPDATES = events.ClusterEvent(events.POD, events.ActionType.UPDATE_POD_LABEL)

ROWS: list[tuple[str, Step, Step, Place | None]] = [
    ("unknown: add", nowhere, add, A),
    ("unknown: add, gated", closed, add, G),
    ("unknown: update", nowhere, update, A),
    ("unknown: update, gated", closed, update, G),
    ("unknown: delete", nowhere, delete, None),
    ("unknown: event", nowhere, node_added, None),
    ("unknown: Activate", nowhere, activate, None),
    ("unknown: done", nowhere, done, None),
    ("active: pop", active, pop, F),
    ("active: pop this one", active, pop_specific, F),
    ("active: update", active, update, A),
    ("active: update, gate closed meanwhile", then(active, closed), update, A),
    ("active: add once more, gate closed meanwhile", then(active, closed), add, A),
    ("active: delete", active, delete, None),
    ("active: event", active, node_added, A),
    ("active: Activate", active, activate, A),
    ("active: time", active, wait(400), A),
    ("backoff: not over", backoff, wait(1), B),
    ("backoff: over at a whole second", backoff, wait(2), A),
    ("backoff: over, gate closed meanwhile", then(backoff, closed), wait(2), A),
    ("backoff: pop while nothing is active", backoff, pop, F),
    ("backoff: pop this one", backoff, pop_specific, F),
    ("backoff: Activate", backoff, activate, A),
    ("backoff: Activate, gate closed meanwhile", then(backoff, closed), activate, A),
    ("backoff: update", backoff, update, B),
    ("backoff: event", backoff, pod_deleted, B),
    ("backoff: delete", backoff, delete, None),
    ("error backoff: over", error_backoff, wait(2), A),
    ("error backoff: not over", error_backoff, wait(1), E),
    ("error backoff: pop while nothing is active", error_backoff, pop, E),
    ("error backoff: Activate", error_backoff, activate, A),
    ("error backoff: update", error_backoff, update, E),
    ("error backoff: event", error_backoff, node_added, E),
    ("error backoff: delete", error_backoff, delete, None),
    ("unschedulable: Queue, backing off", rejected, node_added, B),
    ("unschedulable: Queue, backing off, no rejectors", without_rejectors, node_added, E),
    ("unschedulable: Queue, backoff over", rejected_long_ago, node_added, A),
    ("unschedulable: Queue of a pending plugin", rejected_pending, node_added, A),
    ("unschedulable: all Skip", then(rejected, skipping), node_added, U),
    ("unschedulable: event without interest", rejected, node_labelled, U),
    ("unschedulable: Queue, gate closed, backing off", then(rejected, closed), node_added, G),
    ("unschedulable: Queue, gate closed", then(rejected_long_ago, closed), node_added, G),
    ("unschedulable: own update of no interest", rejected, update, U),
    ("unschedulable: 5 minutes, not yet the tick", rejected, wait(329), U),
    ("unschedulable: 5 minutes, at the tick", rejected, wait(330), A),
    ("unschedulable: Activate", rejected, activate, A),
    ("unschedulable: Activate, gate closed", then(rejected, closed), activate, G),
    ("unschedulable: pop this one", rejected, pop_specific, F),
    ("unschedulable: pop", rejected, pop, U),
    ("unschedulable: delete", rejected, delete, None),
    ("gated: event of the gate, rejector's Queue, open", then(gated_and_settled, opened), pod_deleted, A),
    ("gated: the same, backing off", then(gated_after_rejection, opened), pod_deleted, B),
    ("gated: the same, rejectors Skip", then(gated_and_settled, opened, skipping), pod_deleted, G),
    ("gated: the same, still closed", gated_and_settled, pod_deleted, G),
    ("gated: event not of the gate", then(gated_and_settled, opened), node_added, G),
    ("gated: 5 minutes, still closed", gated_after_rejection, wait(1000), G),
    ("gated: 5 minutes, opened without an event", then(gated_after_rejection, opened), wait(1000), A),
    ("gated: Activate, open", then(gated_anew, opened), activate, A),
    ("gated: Activate, closed", gated_anew, activate, G),
    ("gated: pop this one", gated_anew, pop_specific, G),
    ("gated: pop", gated_anew, pop, G),
    ("gated: delete", gated_anew, delete, None),
    ("in flight: failed, nobody rejected", in_flight, fail(), E),
    ("in flight: rejected, nothing happened", in_flight, fail("Fit"), U),
    ("in flight: rejected, useful event", then(in_flight, node_added), fail("Fit"), B),
    ("in flight: rejected, useless event", then(in_flight, skipping, node_added), fail("Fit"), U),
    ("in flight: rejected, useless then useful event", then(in_flight, node_labelled, pod_deleted), fail("Fit"), B),
    ("in flight: pending plugin, useful event", then(in_flight, node_added), fail_pending, A),
    ("in flight: rejected, useful event, gate closed", then(in_flight, node_added, closed), fail("Fit"), G),
    ("in flight: rejected, gate closed, nothing happened", then(in_flight, closed), fail("Fit"), U),
    ("in flight: done", in_flight, done, None),
    ("in flight: update", in_flight, update, F),
    ("in flight: event", in_flight, node_added, F),
    ("in flight: Activate", in_flight, activate, F),
    ("in flight: Activate, then rejected", then(in_flight, activate), fail("Fit"), B),
    ("in flight: delete", in_flight, delete, F),
    ("in flight: pop", in_flight, pop, F),
    ("in flight: pop this one", in_flight, pop_specific, F),
    ("in flight: time", in_flight, wait(1000), F),
]


@pytest.mark.parametrize(("before", "event", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_next_state(before: Step, event: Step, expected: Place | None) -> None:
    world = World()
    before(world)
    event(world)
    assert world.place(P) is expected


@pytest.mark.parametrize(
    ("label_hint", "settled", "gate", "expected"),
    [
        (True, False, False, B),
        (True, True, False, A),
        (False, True, False, U),
        (True, True, True, G),
    ],
)
def test_own_update(label_hint: bool, settled: bool, gate: bool, expected: Place) -> None:
    """A rejected pod's own update: some event's hint says Queue, or none does."""
    world = _world_listening_to_labels(label_hint)
    world.rejected(P, "Labels")
    if settled:
        world.clock.advance(20)
    if gate:
        closed(world)
    update(world)
    assert world.place(P) is expected
    assert world.queue.pending_pods()[0] == [CHANGED]


@pytest.mark.parametrize(("settled", "expected"), [(True, A), (False, B)])
def test_own_update_of_a_gated_pod(settled: bool, expected: Place) -> None:
    """A rejector's hint is enough: what the gate listens to does not count."""
    world = _world_listening_to_labels(True)
    world.rejected(P, "Labels", "Fit")
    closed(world)
    node_added(world)
    assert world.place(P) is G
    opened(world)
    if settled:
        world.clock.advance(20)
    update(world)
    assert world.place(P) is expected


def _world_listening_to_labels(queue: bool) -> World:
    return World(Rejector("Labels", WANTS_UPDATES, answer=QUEUE if queue else SKIP))


@pytest.mark.parametrize("rejectors", [("Fit",), ()])
@pytest.mark.parametrize("generic_workload", [True, False])
def test_pod_of_a_group_never_rests(rejectors: tuple[str, ...], generic_workload: bool) -> None:
    """Nor is it popped before its pause is over."""
    world = World(generic_workload=generic_workload)
    member = pod("member", group="g")
    world.add(member)
    assert world.fail(world.pop(), *rejectors) is (E if generic_workload or not rejectors else U)


def _members(world: World) -> list[PodInfo]:
    members = [pod(name, group="g") for name in ("active", "backoff", "unschedulable", "gated", "flying")]
    world.add(members[4])
    world.pop()
    world.rejected(members[1])
    node_added(world)
    world.rejected(members[2])
    world.add(members[0])
    world.barrier.closed = {"gated"}
    world.add(members[3])
    return members


def test_pop_the_members_of_a_group() -> None:
    world = World()
    members = _members(world)
    taken = [record.pod.name for member in members if (record := world.queue.pop_specific_pod(member)) is not None]
    assert taken == ["active", "backoff", "unschedulable"]
    assert world.queue.in_flight_counts()["PodPopped"] == 4
    assert world.place(members[3]) is G


@pytest.mark.parametrize("event", [GATES_GONE, POD_DELETE, events.FORCE_ACTIVATE, events.UNSCHEDULABLE_TIMEOUT])
def test_in_flight_wildcards_are_kept_like_events(event: events.ClusterEvent) -> None:
    world = World()
    in_flight(world)
    world.queue.move_all(event)
    assert world.queue.in_flight_counts() == {"PodPopped": 1, event.label: 1}
