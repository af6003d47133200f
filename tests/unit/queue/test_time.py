"""Deadlines, the sweep, and the clock."""

from __future__ import annotations

import math

import pytest

from skedge.framework import events
from skedge.queue.pending import Place
from skedge.queue.scheduling_queue import SchedulingQueue
from unit.queue.support import World, pod


def test_deadlines() -> None:
    world = World()
    assert world.queue.next_deadline() is None
    world.clock.advance(0.4)
    world.add(pod("broken"))
    assert world.queue.next_deadline() is None
    record = world.pop()
    world.fail(record)
    assert world.queue.next_deadline() == 2.0
    world.rejected(pod("rejected"))
    assert world.queue.next_deadline() == 2.0
    world.clock.advance(1.6)
    world.queue.flush_due()
    assert (world.place(record.pod), world.queue.next_deadline()) == (Place.ACTIVE, 30.0)
    world.clock.advance(28)
    world.queue.flush_due()
    assert world.queue.next_deadline() == 60.0


@pytest.mark.parametrize("start", [0.0, 12.345, 0.1 + 0.2, 98_765.432_1])
def test_deadlines_pass_whatever_the_clock_reads(start: float) -> None:
    world = World()
    world.clock.advance(start)
    queue = SchedulingQueue(
        world.clock, lambda priority, timestamp, each: timestamp, {}, lister=world.store.get, pod_max_backoff=3.0
    )
    world.queue = queue
    world.add(pod())
    for _ in range(50):
        record = world.pop()
        assert world.fail(record) is Place.ERROR_BACKOFF
        before = world.clock.monotonic()
        world.pass_time(5)
        assert world.place(record.pod) is Place.ACTIVE
        assert world.clock.monotonic() == pytest.approx(before + 5)


def test_the_sweep_can_be_off() -> None:
    world = World(max_in_unschedulable=math.inf)
    record = world.rejected(pod())
    assert world.queue.next_deadline() is None
    world.clock.advance(100_000)
    world.queue.flush_due()
    assert world.place(record.pod) is Place.UNSCHEDULABLE


def test_a_missed_sweep_is_made_up_once() -> None:
    world = World()
    world.rejected(pod())
    world.clock.advance(95)
    assert world.queue.next_deadline() == 30.0
    world.queue.flush_due()
    assert world.queue.next_deadline() == 120.0


def test_the_sweep_tells_pods_in_flight() -> None:
    world = World()
    world.rejected(pod("old"))
    world.add(pod("flying"))
    flying = world.pop()
    world.clock.advance(301)
    world.queue.flush_unschedulable_leftover()
    assert world.queue.in_flight_counts() == {"PodPopped": 1, "UnschedulableTimeout": 1}
    assert world.fail(flying, "Fit") is Place.BACKOFF


def test_flush_mark_lasts_until_put_back() -> None:
    world = World()
    record = world.rejected(pod())
    world.pass_time(330)
    assert record.was_flushed_from_unschedulable
    world.fail(world.pop(), "Fit")
    assert not record.was_flushed_from_unschedulable


def test_setting_the_clock_moves_no_pod() -> None:
    class Jumping:
        def __init__(self) -> None:
            self.wall, self.elapsed = 1000.0, 50.0

        def now(self) -> float:
            return self.wall

        def monotonic(self) -> float:
            return self.elapsed

    clock = Jumping()
    queue = SchedulingQueue(clock, lambda priority, timestamp, each: timestamp, {}, lister=lambda key: None)
    queue.add(pod())
    record = queue.pop()
    assert record is not None
    queue.add_unschedulable_if_not_present(record)
    clock.wall -= 3600
    clock.elapsed += 2
    queue.flush_due()
    assert queue.pop() is record


# --- wake-ups ---------------------------------------------------------------------------------------------------------


def test_every_way_to_become_poppable_wakes() -> None:
    """kubernetes#119784: nobody may be put into the active queue silently."""
    world = World()

    def woken() -> bool:
        before, world.wakes = world.wakes, 0
        return before > 0

    each = pod()
    world.add(each)
    assert woken()
    world.fail(world.pop(), "Fit", pending=["Fit"])
    assert not woken()
    world.queue.move_all(events.NODE_ADD)
    assert woken(), "moved by an event"
    record = world.pop()
    world.queue.move_all(events.NODE_ADD)
    assert not woken()
    world.fail(record, "Fit", pending=["Fit"])
    assert woken(), "active at once after a failure"
    world.fail(world.pop(), "Fit")
    world.queue.move_all(events.NODE_ADD)
    assert world.place(each) is Place.BACKOFF
    assert woken(), "may be popped early"
    world.fail(world.pop())
    assert not woken()
    world.pass_time(5)
    assert woken(), "backoff over"
    world.fail(world.pop(), "Fit")
    world.queue.activate([each])
    assert woken(), "activated"
    world.fail(world.pop(), "Fit")
    world.pass_time(331)
    assert woken(), "swept"
    world.queue.close()
    assert woken(), "closed"
