"""The heap, backoff, unschedulable set, in-flight events and story, each by itself."""

from __future__ import annotations

import math
import random

import pytest

from skedge.framework import events
from skedge.queue.backoff import BackoffQueue
from skedge.queue.heap import PodHeap
from skedge.queue.in_flight import InFlight
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.queue.story import Story
from skedge.queue.unschedulable import UnschedulablePods
from unit.queue.support import NODE_LABEL, pod, priority_sort

NANO = 1e-9


def record(name: str = "p", timestamp: float = 0.0, **fields: object) -> QueuedPodInfo:
    made = QueuedPodInfo(pod(name), timestamp)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


# --- heap -------------------------------------------------------------------------------------------------------------


def test_heap_keeps_order_of_arrival_among_equals() -> None:
    heap = PodHeap()
    for name in "bca":
        heap.push(record(name), 1)
    heap.push(record("first"), 0)
    assert [r.pod.name for _ in range(4) if (r := heap.pop())] == ["first", "b", "c", "a"]
    assert heap.pop() is None


def test_heap_rekeys_without_losing_the_turn() -> None:
    heap = PodHeap()
    records = [record(name) for name in "abc"]
    for each in records:
        heap.push(each, 1)
    heap.push(records[0], 5)
    heap.push(records[0], 1)
    heap.validate()
    assert [r.pod.name for _ in range(3) if (r := heap.pop())] == ["a", "b", "c"]
    assert len(heap) == 0


def test_heap_replaces_another_record_of_the_key() -> None:
    heap = PodHeap()
    old, new = record("a"), record("a")
    heap.push(old, 1)
    heap.push(new, 2)
    assert (len(heap), heap.get("ns/a"), list(heap)) == (1, new, [new])
    assert heap.pop() is new
    assert heap.peek() is None


def test_heap_stays_small_under_removals() -> None:
    heap, rng = PodHeap(), random.Random(1)
    for i in range(2000):
        heap.push(record(f"p{i % 10}"), rng.random())
        if rng.random() < 0.5:
            heap.remove(f"ns/p{rng.randrange(10)}")
        heap.validate()
    assert len(heap._heap) < 100


# --- backoff ----------------------------------------------------------------------------------------------------------


def backoff(initial: float = 1.0, maximum: float = 10.0, early: bool = True, now: float = 0.0) -> BackoffQueue:
    return BackoffQueue(
        lambda: now,
        lambda r: priority_sort(r.pod.priority, r.timestamp, r.pod),
        initial=initial,
        maximum=maximum,
        pop_from_backoff_q=early,
    )


@pytest.mark.parametrize(
    ("initial", "maximum", "count", "expected"),
    [
        *((1, 10, count, seconds) for count, seconds in enumerate((1, 2, 4, 8, 10, 10), start=1)),
        (1, 32, 16, 32),
        (1, 32, 10_000, 32),
        (3 * NANO, (2**63 - 1) * NANO, 5, 48 * NANO),
        (3, 10, 2, 6),
        (3, 10, 3, 10),
        (20, 10, 1, 10),
        (0, 10, 4, 0),
    ],
)
def test_duration(initial: float, maximum: float, count: int, expected: float) -> None:
    assert backoff(initial, maximum).duration(count) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("errors", "rejections", "timestamp", "early", "maximum", "expected"),
    [
        (0, 0, 100.5, True, 10, 0.0),
        (0, 1, 100.5, True, 10, 101.0),
        (0, 1, 100.5, False, 10, 101.5),
        (0, 3, 100.9, True, 10, 104.0),
        (2, 3, 100.0, True, 10, 102.0),
        (1, 9, 100.0, True, 10, 101.0),
        (1, 0, 100.5, True, 0, 0.0),
        (0, 5, 100.5, True, 0, 0.0),
    ],
)
def test_expiration(
    errors: int, rejections: int, timestamp: float, early: bool, maximum: float, expected: float
) -> None:
    each = record(timestamp=timestamp, consecutive_errors_count=errors, unschedulable_count=rejections)
    assert backoff(maximum=maximum, early=early).expiration(each) == expected


@pytest.mark.parametrize(
    ("now", "early", "expected"),
    [
        (100.9, True, True),
        (101.0, True, True),  # its own second
        (101.99, True, True),
        (102.0, True, False),
        (101.4, False, True),
        (101.5, False, True),  # its own moment
        (101.6, False, False),
    ],
)
def test_backing_off(now: float, early: bool, expected: bool) -> None:
    """A pause of a second that began at 100.5."""
    assert backoff(now=now, early=early).backing_off(record(timestamp=100.5, unschedulable_count=1)) is expected


def test_expiration_is_kept() -> None:
    queue, each = backoff(), record(timestamp=100.0, unschedulable_count=1)
    queue.push(each)
    each.unschedulable_count = 4
    assert queue.expiration(each) == 101.0
    each.backoff_expiration = 0.0
    assert queue.expiration(each) == 108.0


def test_rejected_and_broken_wait_apart() -> None:
    queue = backoff(now=200.0)
    broken = record("broken", 100.0, consecutive_errors_count=1)
    rejected = record("rejected", 101.0, unschedulable_count=1)
    rejected.set_rejectors(["Fit"])
    later = record("later", 199.0, unschedulable_count=3)
    later.set_rejectors([], ["Fit"])
    assert queue.push(broken) is queue.errors
    assert queue.push(rejected) is queue.push(later) is queue.rejected
    assert (len(queue), queue.next_tick()) == (3, 102.0)
    assert [r.pod.name for r in queue.pop_completed()] == ["rejected", "broken"]
    assert queue.next_tick() == 204.0
    assert queue.pop_early() is later
    assert queue.next_tick() is None


def test_a_pod_changes_sides_with_its_rejectors() -> None:
    queue, each = backoff(), record(timestamp=1.0, unschedulable_count=1)
    queue.push(each)
    each.set_rejectors(["Fit"])
    queue.push(each)
    assert (len(queue.errors), len(queue.rejected)) == (0, 1)


# --- unschedulable ----------------------------------------------------------------------------------------------------


def test_unschedulable_pods_lie_in_buckets() -> None:
    pods = UnschedulablePods()
    first, second, gated = record("a"), record("b"), record("c")
    for each in (first, second, gated):
        each.set_rejectors(["Fit"])
    gated.gate("Gates", ())
    assert [pods.put(each) for each in (first, second, gated, first)] == [True, True, True, False]
    pods.validate()
    assert [(bucket.rejectors, bucket.gating_plugin, len(records)) for bucket, records in pods.buckets()] == [
        (frozenset({"Fit"}), "", 2),
        (frozenset({"Fit", "Gates"}), "Gates", 1),
    ]
    second.gate("Gates", ())
    assert not pods.put(second)
    pods.validate()
    assert pods.gated == 2
    for key in ("ns/a", "ns/b", "ns/c"):
        assert pods.remove(key) is not None
    assert pods.remove("ns/a") is None
    assert (len(pods), pods.gated, pods.buckets()) == (0, 0, [])


# --- in flight --------------------------------------------------------------------------------------------------------


def test_events_are_kept_for_those_popped_before_them() -> None:
    flying = InFlight()
    flying.start("a", record("a"))
    flying.append(events.NODE_ADD, None, 1)
    flying.start("b", record("b"))
    flying.append(NODE_LABEL, 2, 3)
    flying.append(events.NODE_ADD, None, 4)
    assert [(e.event, e.old, e.new) for e in flying.since("b")] == [(NODE_LABEL, 2, 3), (events.NODE_ADD, None, 4)]
    assert [e.new for e in flying.since("a")] == [1, 3, 4]
    assert flying.event_counts == {"NodeAdd": 2, "NodeUpdateNodeLabel": 1}
    assert flying.done("a")
    flying.validate()
    assert flying.event_counts == {"NodeAdd": 1, "NodeUpdateNodeLabel": 1}
    assert [e.new for e in flying.since("b")] == [3, 4]
    assert not flying.done("a")
    assert flying.done("b")
    flying.validate()
    assert (len(flying), flying.events, flying.event_counts) == (0, 0, {})


def test_events_between_two_others_stay() -> None:
    flying = InFlight()
    for uid in "abc":
        flying.start(uid, record(uid))
        flying.append(events.NODE_ADD, None, uid)
    flying.done("b")
    flying.validate()
    assert [e.new for e in flying.since("a")] == ["a", "b", "c"]
    flying.done("a")
    assert [e.new for e in flying.since("c")] == ["c"]
    assert flying.events == 1


def test_one_marker_a_uid() -> None:
    flying, first = InFlight(), record("a")
    assert flying.start("u", first)
    flying.append(events.NODE_ADD, None, None)
    assert not flying.start("u", record("other"))
    assert flying.get("u") is first
    assert len(list(flying.since("u"))) == 1
    flying.clear()
    assert ("u" in flying, flying.events) == (False, 0)


# --- story ------------------------------------------------------------------------------------------------------------


def test_story_is_bounded_and_per_pod() -> None:
    story = Story(limit=3)
    for i, key in enumerate(("ns/a", "ns/b", "ns/a", "ns/b")):
        story.tell((float(i), key, "active", "NodeAdd" if i else ""))
    assert len(story) == 3
    assert [str(step) for step in story.of("ns/a")] == ["2.000 ns/a active (NodeAdd)"]
    assert [step.time for step in story.last(2)] == [2.0, 3.0]
    assert math.isclose(story.last(9)[0].time, 1.0)
