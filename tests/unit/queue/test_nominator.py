"""Who was promised which node."""

from __future__ import annotations

import pytest

from skedge.queue.nominator import PodNominator
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_node, make_pod
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


class Promises:
    """A nominator over three nodes, and the crowd it keeps beside one that is made from nothing."""

    def __init__(self) -> None:
        self.queued: dict[str, PodInfo] = {}
        self.nominator = PodNominator(self.queued.get, self.queued.get)
        self.table = NodeTable()
        for name in ("n1", "n2", "n3"):
            self.table.set_node(make_node(name).obj())

    def promise(self, name: str, node: str, priority: int = 10) -> PodInfo:
        info = make_pod(name).req(cpu="1").priority(priority).info()
        self.queued[info.key] = info
        self.nominator.add(info, node)
        return info

    def crowd(self, priority: int = 5, uid: str = "") -> dict[str, list[str]]:
        crowd = self.nominator.crowd(self.table, priority, uid)
        for row, pods in crowd.items():
            assert crowd.count[row] == len(pods)
            asked = crowd.requested("cpu")
            assert (0 if asked is None else asked[row]) == sum(dict(pod.node_requests).get("cpu", 0) for pod in pods)
        assert sorted(crowd) == crowd.rows.tolist()
        self.nominator.validate()
        return {self.table.names[row]: [pod.name for pod in pods] for row, pods in crowd.items()}


def test_a_crowd_follows_promises() -> None:
    made = Promises()
    assert made.crowd() == {}
    a = made.promise("a", "n1")
    made.promise("low", "n1", 4)
    made.promise("b", "n2")
    assert made.crowd() == {"n1": ["a"], "n2": ["b"]}
    assert made.crowd(0) == {"n1": ["a", "low"], "n2": ["b"]}
    assert made.crowd(5, a.uid) == {"n2": ["b"]}
    made.promise("c", "n1")
    made.nominator.delete(a)
    assert made.crowd() == {"n1": ["c"], "n2": ["b"]}


def test_a_pod_in_flight_is_a_bare_name_in_the_crowd() -> None:
    made = Promises()
    a = made.promise("a", "n1")
    assert made.crowd() == {"n1": ["a"]}
    del made.queued[a.key]
    made.nominator.moved(a.uid)
    assert made.crowd() == {}
    assert made.crowd(0) == {"n1": ["a"]}
    made.queued[a.key] = a
    made.nominator.moved(a.uid)
    assert made.crowd() == {"n1": ["a"]}


def test_a_crowd_follows_nodes() -> None:
    made = Promises()
    made.promise("a", "n1")
    made.promise("b", "later")
    assert made.crowd() == {"n1": ["a"]}
    made.table.remove_node("n1")
    assert made.crowd() == {}
    made.table.set_node(make_node("later").obj())  # takes the row
    assert made.crowd() == {"later": ["b"]}
    for i in range(100):
        made.table.set_node(make_node(f"more{i}").obj())
    made.table.set_node(make_node("n1").obj())
    assert made.crowd() == {"later": ["b"], "n1": ["a"]}


def test_crowds_of_many_priorities() -> None:
    made = Promises()
    for priority in range(20):
        made.promise(f"p{priority}", "n1", priority)
        for least in range(priority + 1):
            assert len(made.crowd(least)["n1"]) == priority - least + 1
