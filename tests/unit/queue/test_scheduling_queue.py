"""The queue as a whole: what the tables of states and pitfalls do not say."""

from __future__ import annotations

import pytest

from skedge.framework import events
from skedge.queue.hints import ProfileQueueing, hint_map
from skedge.queue.pending import Place
from skedge.snapshot.pods import PodInfo
from unit.queue.support import NODE_LABEL, POD_DELETE, PV_ADD, QUEUE, SKIP, Rejector, World, pod

# --- order ------------------------------------------------------------------------------------------------------------


def test_priority_then_time_then_arrival() -> None:
    world = World()
    world.add(pod("a"), pod("b", priority=1))
    world.clock.advance(1)
    world.add(pod("c"), pod("d", priority=1), pod("e"))
    assert [world.pop_name() for _ in range(6)] == ["b", "d", "a", "c", "e", ""]


def test_a_pod_that_failed_goes_behind_those_that_waited() -> None:
    """kubernetes#73700: no starvation by pods that are tried again and again."""
    world = World()
    world.add(pod("again"))
    for i in range(3):
        world.clock.advance(1)
        world.add(pod(f"new{i}"))
        record = world.queue.pop_specific_pod(pod("again"))
        assert record is not None
        world.clock.advance(20)
        world.fail(record, "Fit", pending=["Fit"])
        world.queue.move_all(events.NODE_ADD)
        assert world.place(pod("again")) is Place.ACTIVE
        assert world.pop_name() == f"new{i}"


def test_update_in_active_changes_the_turn() -> None:
    world = World()
    first, second = pod("first"), pod("second")
    world.add(first, second)
    world.update(first, pod("first", labels={"a": "b"}))
    world.update(second, pod("second", priority=9))
    assert [world.pop_name(), world.pop_name()] == ["second", "first"]


def test_attempts_and_first_time() -> None:
    world = World()
    world.barrier.closed = {"p"}
    world.add(pod())
    world.clock.advance(5)
    world.barrier.closed = set()
    world.queue.activate([pod()])
    record = world.pop()
    assert (record.attempts, record.timestamp, record.initial_attempt_timestamp) == (1, 1_000_000.0, 1_000_005.0)
    world.fail(record)
    assert (record.timestamp, world.queue.pop()) == (1_000_005.0, None)
    world.pass_time(2)
    assert world.pop() is record
    assert (record.attempts, record.initial_attempt_timestamp) == (2, 1_000_005.0)
    assert world.queue.scheduling_cycle == 2


# --- putting back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (Place.UNSCHEDULABLE, "Pod ns/p is already present in unschedulable queue"),
        (Place.GATED, "Pod ns/p is already present in unschedulable queue"),
        (Place.ACTIVE, "Pod ns/p is already present in the active queue"),
        (Place.BACKOFF, "Pod ns/p is already present in the backoff queue"),
        (Place.ERROR_BACKOFF, "Pod ns/p is already present in the backoff queue"),
    ],
)
def test_put_back_beside_a_new_pod_of_its_name(where: Place, words: str) -> None:
    """kubernetes#104521: the old one is done with, the new one stays."""
    world = World()
    world.add(pod(uid="1"))
    old = world.pop()
    new = pod(uid="2")
    if where is Place.GATED:
        world.barrier.closed = {"p"}
    world.add(new)
    if where not in (Place.ACTIVE, Place.GATED):
        world.fail(world.pop(), *(() if where is Place.ERROR_BACKOFF else ("Fit",)))
        if where is Place.BACKOFF:
            world.queue.move_all(events.NODE_ADD)
    assert world.place(new) is where
    gauge = world.counts.gauge()
    old.set_rejectors(["Fit"])
    assert world.queue.add_unschedulable_if_not_present(old) == words
    assert (world.place(old.pod), world.place(new)) == (None, where)
    assert (old.unschedulable_count, world.counts.gauge()) == (0, gauge)


def test_put_back_without_having_been_in_flight() -> None:
    world = World()
    world.add(pod())
    record = world.pop()
    world.queue.done(record.pod.uid)
    assert world.fail(record, "Fit") is Place.BACKOFF


def test_all_events_of_the_flight_count() -> None:
    """kubernetes#120413: an event that is no use must not hide the one that is."""
    world = World()
    world.fit.judge = lambda each, old, new: QUEUE if old is not None else SKIP
    world.add(pod())
    record = world.pop()
    world.queue.move_all(events.NODE_ADD, None, "node")
    world.queue.move_all(events.ASSIGNED_POD_DELETE, pod("gone"), None)
    world.queue.move_all(events.NODE_ADD, None, "node")
    assert world.fail(record, "Fit") is Place.BACKOFF
    assert [old for _, old, _ in world.fit.asked if old is not None] != []


def test_own_update_in_flight_is_gone_through() -> None:
    update = events.ClusterEvent(events.POD, events.ActionType.UPDATE)
    world = World(Rejector("Own", update, judge=lambda each, old, new: QUEUE if new.labels else SKIP))
    old, new = pod(), pod(labels={"a": "b"})
    world.add(old)
    record = world.pop()
    world.update(old, new)
    record.pod = new
    assert world.fail(record, "Own") is Place.BACKOFF


# --- events -----------------------------------------------------------------------------------------------------------


def test_pre_check_narrows() -> None:
    world = World()
    for name, priority in (("low", 1), ("high", 2)):
        world.rejected(pod(name, priority=priority))
    world.queue.move_all(events.NODE_ADD, None, None, lambda each: each.priority <= 1)
    assert (world.place(pod("low")), world.place(pod("high"))) == (Place.BACKOFF, Place.UNSCHEDULABLE)
    assert [name for name, _, _ in world.fit.asked] == ["ns/low"]


def test_hints_see_the_objects() -> None:
    world = World()
    world.rejected(pod())
    world.queue.move_all(events.NODE_ADD, None, "node")
    assert world.fit.asked == [("ns/p", None, "node")]


def test_only_pods_whose_rejectors_listen_are_asked() -> None:
    world = World()
    for name, plugin in (("a", "Fit"), ("b", "Other"), ("c", "Fit")):
        world.rejected(pod(name), plugin)
    world.queue.move_all(NODE_LABEL)
    assert ([name for name, _, _ in world.other.asked], world.fit.asked) == (["ns/b"], [])


def test_interest_of_any_profile_keeps_an_event() -> None:
    second = ProfileQueueing((), hint_map([Rejector("PV", PV_ADD)]))
    world = World(profiles={"second": second})
    world.add(pod())
    world.pop()
    world.queue.move_all(PV_ADD)
    assert world.queue.in_flight_counts() == {"PodPopped": 1, "PersistentVolumeAdd": 1}


def test_pods_of_an_unknown_profile_are_not_stuck() -> None:
    world = World()
    record = world.rejected(pod(scheduler="nobody"), "Fit")
    world.queue.move_all(NODE_LABEL)
    assert world.place(record.pod) is Place.BACKOFF


def test_implicit_taint_registration_wakes() -> None:
    world = World()
    record = world.rejected(pod(), "Fit")
    world.fit.answer = SKIP
    world.queue.move_all(events.ClusterEvent(events.NODE, events.ActionType.UPDATE_NODE_TAINT))
    assert world.place(record.pod) is Place.BACKOFF


# --- counts -----------------------------------------------------------------------------------------------------------


def test_incoming_and_gauges_through_a_life() -> None:
    world = World()
    each = pod()
    world.add(each)
    world.fail(world.pop(), "Fit", "Other")
    assert world.counts.gauge() == {"Fit": 1, "Other": 1}
    assert world.queue.pending_counts() == (0, 0, 1, 0)
    world.barrier.closed = {"p"}
    world.queue.move_all(events.NODE_ADD)
    assert world.counts.gauge() == {"Fit": 1, "Other": 1, "Barrier": 1}
    assert world.queue.pending_counts() == (0, 0, 0, 1)
    world.barrier.closed = set()
    world.queue.move_all(POD_DELETE)
    assert world.queue.pending_counts() == (0, 1, 0, 0)
    world.pass_time(2)
    assert world.queue.pending_counts() == (1, 0, 0, 0)
    world.pop()
    assert world.counts.gauge() == {}
    assert world.counts.incoming == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("unschedulable", "NodeAdd"): 1,
        ("backoff", "PodDelete"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_look_that_changes_nothing_is_not_incoming() -> None:
    world = World()
    world.barrier.closed = {"p"}
    world.add(pod())
    world.queue.activate([pod()])
    world.update(pod(), pod(labels={"a": "b"}))
    assert world.counts.incoming == {("unschedulable", "UnschedulablePodAdd"): 1}


def test_deleting_takes_the_gauge_down_in_the_unschedulable_set_only() -> None:
    world = World()
    world.rejected(pod("a"), "Fit")
    world.queue.delete(pod("a"))
    assert world.counts.gauge() == {}
    world.rejected(pod("b"), "Fit")
    world.queue.move_all(events.NODE_ADD)
    world.queue.delete(pod("b"))
    assert world.counts.gauge() == {"Fit": 1}


def test_one_pre_enqueue_in_ten_is_timed() -> None:
    world = World()
    for i in range(20):
        world.add(pod(f"p{i}"))
    assert world.counts.executions == [
        (plugin, "PreEnqueue", "Success") for _ in range(2) for plugin in ("SchedulingGates", "Barrier")
    ]


def test_summary_and_records() -> None:
    world = World()
    world.add(pod("flying"))
    world.pop()
    world.add(pod("broken"))
    world.fail(world.pop())
    world.rejected(pod("rejected"), "Fit")
    world.add(pod("gated", gates=["g"]), pod("active"))
    pods, summary = world.queue.pending_pods()
    assert [each.name for each in pods] == ["active", "broken", "rejected", "gated"]
    assert summary == "activeQ:1; backoffQ:1; unschedulablePods:2"
    assert {record.pod.name: place.value for place, record in world.queue.records()} == {
        "active": "active",
        "broken": "error backoff",
        "rejected": "unschedulable",
        "gated": "gated",
        "flying": "in flight",
    }
    assert world.queue.in_flight("uid-flying") is not None
    assert world.queue.find("ns/flying") is None
    assert world.queue.statistics() == {
        "active": 1,
        "backoff": 1,
        "unschedulable": 1,
        "gated": 1,
        "error_backoff": 1,
        "in_flight": 1,
        "in_flight_events": 0,
        "nominated": 0,
        "scheduling_cycle": 3,
        "story": world.queue.statistics()["story"],
    }


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_broken_sort_loses_no_pod() -> None:
    def sort_key(priority: int, timestamp: float, each: PodInfo) -> str:
        return each.labels["rank"]

    world = World(sort_key=sort_key)
    good, bad, mended = pod("good", labels={"rank": "1"}), pod("bad"), pod("bad", labels={"rank": "0"})
    world.add(good, bad)
    assert world.place(bad) is Place.UNSCHEDULABLE
    world.update(good, pod("good"))
    assert world.place(good) is Place.ACTIVE
    world.update(bad, mended)
    assert world.place(mended) is Place.ACTIVE
    assert world.pop_name() == "bad"
    record = world.pop()
    world.queue.move_all(events.NODE_ADD)
    assert world.fail(record, "Fit") is Place.UNSCHEDULABLE


def test_validate_tells_the_story() -> None:
    world = World()
    world.add(pod())
    record = world.pop()
    world.queue._pending.park(record, "by mistake")
    with pytest.raises(
        AssertionError, match=r"waits and is in flight\n1000000.000 ns/p active \(UnschedulablePodAdd\)"
    ):
        world.queue.validate()


def test_story_of_a_pod() -> None:
    world = World()
    world.add(pod(), pod("other"))
    world.fail(world.pop(), "Fit")
    world.queue.move_all(events.NODE_ADD)
    world.update(pod(), pod(labels={"a": "b"}))
    world.pass_time(2)
    world.queue.delete(pod())
    assert [(step.what, step.why) for step in world.queue.story("ns/p")] == [
        ("active", "UnschedulablePodAdd"),
        ("pop", ""),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "NodeAdd"),
        ("update", ""),
        ("active", "BackoffComplete"),
        ("delete", ""),
    ]


def test_close() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    world.pop()
    world.queue.close()
    assert world.queue.pop() is None
    assert world.queue.in_flight_counts() == {"PodPopped": 0}


def test_update_without_the_old_object() -> None:
    world = World()
    world.rejected(pod())
    world.queue.update(None, pod(labels={"a": "b"}, nominated="n1"))
    assert world.place(pod()) is Place.UNSCHEDULABLE
    assert world.queue.nominator.node_of("uid-p") == "n1"
    world.add(pod("flying"))
    world.pop()
    world.queue.update(None, pod("flying"))
    assert world.queue.in_flight_counts() == {"PodPopped": 1, "UnschedulablePodUpdate": 1}


def test_many_pods_of_one_priority() -> None:
    world = World()
    world.add(*(pod(f"p{i}") for i in range(3000)))
    assert [world.pop_name() for _ in range(3000)] == [f"p{i}" for i in range(3000)]
