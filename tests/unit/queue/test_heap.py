"""Order, turns and look-up in the heap."""

from __future__ import annotations

import random

from skedge.queue.heap import PodHeap
from unit.queue.support import record


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
