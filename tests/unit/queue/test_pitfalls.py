"""The queue's part of the list of things people get wrong; a case's id begins with its number in that list."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skedge.cache.cache import Cache
from skedge.framework import events
from skedge.queue.pending import Place
from skedge.scheduler.event_handlers import EventHandlers
from skedge.snapshot.pods import PlacedPod
from unit.queue.support import NODE_LABEL, POD_DELETE, PV_ADD, SKIP, Barrier, Rejector, World, pod

CASES: list[Any] = []


def case(number: int, words: str) -> Callable[[Callable[[], None]], None]:
    def register(function: Callable[[], None]) -> None:
        CASES.append(pytest.param(function, id=f"{number}-{words}"))

    return register


def handlers(world: World) -> EventHandlers:
    scheduler: Any = SimpleNamespace(
        cache=Cache(),
        queue=world.queue,
        profiles={"default-scheduler": None},
        hooks=world.counts,
        waiting={},
        clock=world.clock,
    )
    return EventHandlers(scheduler)


@case(13, "event before the pop is not replayed")
def _() -> None:
    world = World()
    world.add(pod())
    world.queue.move_all(events.NODE_ADD)
    record = world.pop()
    assert world.queue.in_flight_counts() == {"PodPopped": 1}
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE


@case(14, "event nobody registered is not stored")
def _() -> None:
    world = World()
    world.add(pod())
    record = world.pop()
    world.queue.move_all(PV_ADD)
    assert world.queue.in_flight_counts() == {"PodPopped": 1}
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE


@case(15, "event in flight, hint Queue: backoff")
def _() -> None:
    world = World()
    world.add(pod())
    record = world.pop()
    world.queue.move_all(events.NODE_ADD)
    assert world.queue.in_flight_counts() == {"PodPopped": 1, "NodeAdd": 1}
    assert world.fail(record, "Fit") is Place.BACKOFF
    assert world.queue.in_flight_counts() == {"PodPopped": 0}


@case(16, "event in flight, hint Skip: unschedulable")
def _() -> None:
    world = World()
    world.fit.answer = SKIP
    world.add(pod())
    record = world.pop()
    world.queue.move_all(events.NODE_ADD)
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE


@case(17, "error: error backoff, hints are not asked")
def _() -> None:
    world = World()
    world.add(pod())
    record = world.pop()
    world.queue.move_all(events.NODE_ADD)
    assert world.fail(record) is Place.ERROR_BACKOFF
    assert world.fit.asked == []


@case(18, "a pending plugin's Queue wins over an earlier rejector's")
def _() -> None:
    first, second = Rejector("B", events.NODE_ADD), Rejector("A", events.NODE_ADD)
    world = World(first, second)
    record = world.rejected(pod(), "A", "B", pending=["A"])
    world.queue.move_all(events.NODE_ADD)
    assert first.asked
    assert world.place(record.pod) is Place.ACTIVE


@case(19, "a hint that fails counts as Queue")
def _() -> None:
    world = World()
    record = world.rejected(pod())
    world.fit.answer = ValueError("no idea")
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is Place.BACKOFF
    assert world.counts.hints == [("Fit", "NodeAdd", "Error")]


@case(20, "an event of another plugin's interest leaves the pod")
def _() -> None:
    world = World()
    record = world.rejected(pod(), "Fit")
    world.queue.move_all(NODE_LABEL)
    assert world.place(record.pod) is Place.UNSCHEDULABLE
    assert world.other.asked == []


@case(21, "ForceActivate of another pod is no reason")
def _() -> None:
    world = World()
    mine, others = pod("mine"), pod("others")
    world.add(mine, others)
    first, second = world.pop(), world.pop()
    world.queue.activate([others])
    assert world.fail(first, "Fit") is Place.UNSCHEDULABLE
    assert world.fail(second, "Fit") is Place.BACKOFF


@case(22, "a gated pod is not flushed")
def _() -> None:
    world = World()
    gated = pod(gates=["g"])
    world.add(gated)
    world.pass_time(1000)
    assert world.place(gated) is Place.GATED
    record = world.queue.find(gated.key)
    assert record is not None
    assert (record.attempts, record.initial_attempt_timestamp) == (0, None)


@case(23, "gated: an event only its older rejector wants is ignored")
def _() -> None:
    world = World()
    record = world.rejected(pod(), "Fit")
    world.barrier.closed = {"p"}
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is Place.GATED
    world.barrier.closed.clear()
    asked = len(world.fit.asked)
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is Place.GATED
    assert len(world.fit.asked) == asked
    world.queue.move_all(POD_DELETE)
    assert world.place(record.pod) is Place.BACKOFF


@case(24, "five minutes exactly are not longer than five minutes")
def _() -> None:
    world = World()
    record = world.rejected(pod(), "Fit")
    world.clock.advance(300)
    world.queue.flush_unschedulable_leftover()
    assert world.place(record.pod) is Place.UNSCHEDULABLE
    world.clock.advance(0.001)
    world.queue.flush_unschedulable_leftover()
    assert world.place(record.pod) is Place.ACTIVE


@case(25, "pop takes from backoff when nothing is active: soonest first, then priority")
def _() -> None:
    world = World()
    late, low, high = pod("late", priority=100), pod("low"), pod("high", priority=5)
    for each in (late, low, high):
        world.rejected(each)
    record = world.queue.find(late.key)
    assert record is not None
    record.unschedulable_count = 4
    world.clock.advance(0.3)
    world.queue.move_all(events.NODE_ADD)
    assert {world.place(each) for each in (late, low, high)} == {Place.BACKOFF}
    assert [world.pop_name() for _ in range(4)] == ["high", "low", "late", ""]
    assert world.counts.incoming["active", "PopFromBackoffQ"] == 3


@case(26, "pop never takes from error backoff")
def _() -> None:
    world = World()
    world.add(pod())
    world.fail(world.pop())
    assert world.queue.pop() is None


@case(27, "in the second of its end the backoff is on")
def _() -> None:
    world = World()
    world.add(pod())
    world.clock.advance(0.5)
    record = world.pop()
    world.fail(record)
    world.clock.advance(1.4)  # nominally over at 1.5, floored to 1; it is 1.9
    world.queue.flush_backoff_completed()
    assert world.place(record.pod) is Place.ERROR_BACKOFF
    assert world.queue.next_deadline() == 2.0
    world.clock.advance(0.1)
    world.queue.flush_backoff_completed()
    assert world.place(record.pod) is Place.ACTIVE


@case(28, "no maximum, no backoff: rejected and broken alike")
def _() -> None:
    world = World(pod_initial_backoff=0.0, pod_max_backoff=0.0)
    world.add(pod("broken"))
    assert world.fail(world.pop()) is Place.ACTIVE
    world.queue.delete(pod("broken"))
    record = world.rejected(pod("rejected"))
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is Place.ACTIVE


@case(29, "a rejection ends a row of errors; backoff counts rejections")
def _() -> None:
    world = World()
    world.add(pod())
    for errors in (1, 2, 3):
        record = world.pop()
        assert world.fail(record) is Place.ERROR_BACKOFF
        assert record.consecutive_errors_count == errors
        world.pass_time(6)
    record = world.pop()
    world.fail(record, "Fit")
    assert (record.consecutive_errors_count, record.unschedulable_count) == (0, 1)
    world.queue.move_all(events.NODE_ADD)
    assert record.backoff_expiration == record.timestamp // 1 + 1


@case(30, "an update in backoff brings no early release")
def _() -> None:
    world = World()
    record = world.rejected(pod())
    world.queue.move_all(events.NODE_ADD)
    end = record.backoff_expiration
    new = pod(labels={"a": "b"})
    world.update(record.pod, new)
    assert world.place(new) is Place.BACKOFF
    assert (record.pod, record.backoff_expiration) == (new, end)


@case(31, "an update in flight queues nothing; the failure queues the informer's object")
def _() -> None:
    world = World()
    old, new = pod(), pod(labels={"a": "b"})
    world.add(old)
    record = world.pop()
    world.update(old, new)
    assert world.place(new) is Place.IN_FLIGHT
    assert record.pod is old
    record.pod = new  # what the failure handler found in the informer
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE
    assert world.queue.pending_pods()[0] == [new]


@case(32, "an update of an unknown pod adds it")
def _() -> None:
    world = World()
    world.update(pod(), pod(labels={"a": "b"}))
    assert world.counts.incoming == {("active", "UnschedulablePodUpdate"): 1}
    assert world.pop().pod.labels == {"a": "b"}


@case(33, "one of two gates removed: still gated")
def _() -> None:
    world = World()
    two, one, none = pod(gates=["a", "b"]), pod(gates=["b"]), pod()
    world.add(two)
    world.update(two, one)
    assert world.place(one) is Place.GATED
    world.update(one, none)
    assert world.place(none) is Place.ACTIVE


@case(34, "a UID in flight is not popped again; the next pod is")
def _() -> None:
    world = World()
    world.add(pod("a"))
    world.pop()
    world.add(pod("a"), pod("b"))
    assert world.pop_name() == "b"
    assert world.queue.pop() is None


@case(35, "bound by somebody else: out of the queue, and no room was freed")
def _() -> None:
    world = World()
    mine, other = pod("mine"), world.rejected(pod("other"))
    world.rejected(mine)
    world.fit.answer = SKIP
    bound = PlacedPod(pod("mine"), "n1")
    handlers(world).pod_updated(mine, bound)
    assert world.place(mine) is None
    assert world.place(other.pod) is Place.UNSCHEDULABLE
    assert world.fit.asked == []


@case(36, "an update with the same resourceVersion is ignored")
def _() -> None:
    world = World()
    old, new = pod(version="7"), pod(version="7", labels={"a": "b"})
    handlers(world).pod_added(old)
    handlers(world).pod_updated(old, new)
    assert world.pop().pod is old


def _three_with_nomination() -> tuple[World, EventHandlers]:
    world = World()
    for each in (pod("nominated", priority=5, nominated="n1"), pod("same", priority=5), pod("high", priority=6)):
        world.rejected(each)
    return world, handlers(world)


@case(37, "a nominated pod is deleted: pods of at most its priority are looked at")
def _() -> None:
    world, handler = _three_with_nomination()
    handler.pod_deleted(pod("nominated", priority=5, nominated="n1"))
    assert world.place(pod("nominated")) is None
    assert world.place(pod("same")) is Place.BACKOFF
    assert world.place(pod("high")) is Place.UNSCHEDULABLE


def _nomination_moves(node: str) -> None:
    world, handler = _three_with_nomination()
    old = pod("nominated", priority=5, nominated="n1")
    handler.pod_updated(old, pod("nominated", priority=1, nominated=node, version="2"))
    assert world.place(old) is Place.BACKOFF
    assert world.place(pod("same")) is Place.BACKOFF
    assert world.place(pod("high")) is Place.UNSCHEDULABLE


CASES.append(
    pytest.param(lambda: _nomination_moves("n2"), id="38-nominated elsewhere: a wake-up with the old priority")
)
CASES.append(pytest.param(lambda: _nomination_moves(""), id="38-nomination taken back: the same"))


@case(38, "a first nomination wakes nobody")
def _() -> None:
    world = World()
    old = pod("p", priority=5)
    for each in (old, pod("same", priority=5)):
        world.rejected(each)
    handlers(world).pod_updated(old, pod("p", priority=5, nominated="n1", version="2"))
    assert world.place(old) is Place.UNSCHEDULABLE
    assert world.place(pod("same")) is Place.UNSCHEDULABLE
    assert world.queue.nominator.node_of("uid-p") == "n1"


@case(39, "async preemption: rests unschedulable, gated when an event tries to move it, then wakes on deletions only")
def _() -> None:
    preemption = Barrier("DefaultPreemption", POD_DELETE)
    world = World(preemption)
    each = pod()
    world.add(each)
    record = world.pop()
    preemption.closed = {"p"}
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE
    world.queue.move_all(events.NODE_ADD)
    assert world.place(each) is Place.GATED
    preemption.closed.clear()
    world.queue.move_all(events.NODE_ADD)
    assert world.place(each) is Place.GATED
    world.queue.move_all(events.ASSIGNED_POD_DELETE)
    assert world.place(each) is Place.BACKOFF


@case(40, "Activate: nothing in active or unknown, remembered in flight")
def _() -> None:
    world = World()
    active, flying = pod("active"), pod("flying")
    world.add(flying)
    record = world.pop()
    world.add(active)
    before = dict(world.counts.incoming)
    world.queue.activate([active, pod("unknown")])
    assert (world.place(active), world.place(pod("unknown"))) == (Place.ACTIVE, None)
    assert world.counts.incoming == before
    world.queue.activate([flying])
    assert world.queue.in_flight_counts() == {"PodPopped": 1, "ForceActivate": 1}
    assert world.fail(record, "Fit") is Place.BACKOFF


@pytest.mark.parametrize("check", CASES)
def test_pitfall(check: Callable[[], None]) -> None:
    check()


def test_every_number_has_a_case() -> None:
    assert {int(param.id.split("-")[0]) for param in CASES} == set(range(13, 41))
