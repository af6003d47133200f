"""Who was promised which node."""

from __future__ import annotations

import pytest

from skedge.queue.nominator import PodNominator
from skedge.snapshot.pods import PlacedPod, PodInfo
from unit.queue.support import World, pod

Known = dict[str, PodInfo | PlacedPod]


def nominator(*known: PodInfo | PlacedPod) -> PodNominator:
    store: Known = {each.key: each for each in known}
    return PodNominator(store.get, lambda key: None)


@pytest.mark.parametrize(
    ("status", "nominate", "expected"),
    [
        ("", None, ""),
        ("n1", None, "n1"),
        ("n1", "", ""),
        ("n1", "n2", "n2"),
        ("", "n2", "n2"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("earlier", ["", "n9"])
def test_add(status: str, nominate: str | None, expected: str, earlier: str) -> None:
    each = pod(nominated=status)
    made = nominator(each)
    if earlier:
        made.add(each, earlier)
    made.add(each, nominate)
    assert made.node_of(each.uid) == expected
    assert list(made.nominated_nodes()) == ([expected] if expected else [])
    assert bool(made) is bool(expected)
    made.validate()


@pytest.mark.parametrize("known", [None, PlacedPod(pod(), "n1"), pod(node="n1")], ids=["gone", "bound", "bound too"])
def test_no_promise_to_a_pod_that_is_gone_or_bound(known: PodInfo | PlacedPod | None) -> None:
    made = nominator(*([known] if known else []))
    made.add(pod(nominated="n1"), "n2")
    assert not made


@pytest.mark.parametrize(
    ("before", "after", "memory", "expected"),
    [
        ("", "", "n5", "n5"),
        ("", "", "", ""),
        ("", "n1", "n5", "n1"),
        ("n1", "n2", "n5", "n2"),
        ("n1", "", "n5", ""),
        ("n1", "n1", "n5", "n1"),
        ("", "n1", "", "n1"),
    ],
)
def test_update(before: str, after: str, memory: str, expected: str) -> None:
    old, new = pod(nominated=before), pod(nominated=after, labels={"a": "b"})
    made = nominator(new)
    if memory:
        made.add(old, memory)
    made.update(old, new)
    assert made.node_of(new.uid) == expected
    made.validate()


def test_update_of_a_pod_made_anew() -> None:
    old, new = pod(uid="1"), pod(uid="2", nominated="n2")
    made = nominator(new)
    made.add(old, "n1")
    made.update(old, new)
    assert (made.node_of("1"), made.node_of("2"), len(made)) == ("", "n2", 1)


def test_delete_is_by_uid() -> None:
    made = nominator(pod("a"), pod("b"))
    made.add(pod("a"), "n")
    made.add(pod("b"), "n")
    made.delete(pod("a", uid="another"))
    assert [placed.name for placed in made.nominated_pods("n")] == ["a", "b"]
    made.delete(PlacedPod(pod("a"), "n"))
    assert [placed.name for placed in made.nominated_pods("n")] == ["b"]
    made.delete(pod("b"))
    assert (list(made.nominated_nodes()), made.nominated_pods("n")) == ([], [])


def test_pods_of_a_node_come_from_the_queue_or_are_bare() -> None:
    world = World()
    each = pod(priority=7, nominated="n1")
    world.add(each)
    (placed,) = world.queue.nominated_pods_for_node("n1")
    assert (placed.key, placed.uid, placed.priority, placed.node_name) == (each.key, each.uid, 7, "n1")
    assert world.queue.nominated_pods_for_node("n1")[0] is placed, "made anew though nothing changed"
    record = world.pop()
    (bare,) = world.queue.nominated_pods_for_node("n1")
    assert (bare.key, bare.uid, bare.priority, bare.node_requests) == (each.key, each.uid, 0, ())
    world.fail(record, "Fit")
    assert world.queue.nominated_pods_for_node("n1")[0].priority == 7
    new = pod(priority=8, nominated="n1")
    world.update(each, new)
    assert world.queue.nominated_pods_for_node("n1")[0].priority == 8
    world.queue.delete(new)
    assert world.queue.nominated_pods_for_node("n1") == []


def test_gated_pods_are_not_nominated_on_the_way_in() -> None:
    world = World()
    gated = pod(gates=["g"], nominated="n1")
    world.add(gated)
    assert not world.queue.nominator
    opened = pod(nominated="n1")
    world.update(gated, opened)
    assert world.queue.nominator.node_of(opened.uid) == "n1"


def test_unknown_update_nominates() -> None:
    world = World()
    world.update(pod(), pod(nominated="n1"))
    assert world.queue.nominator.node_of("uid-p") == "n1"
