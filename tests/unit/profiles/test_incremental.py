"""The law of kept answers: after any sequence of changes they equal answers computed from nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.profiles.search import Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import Cluster

PODS: list[Callable[[str], PodInfo]] = [
    lambda name: make_pod(name).req(cpu="500m", memory="1Gi").info(),
    lambda name: make_pod(name).info(),
    lambda name: make_pod(name).req(cpu="1").node_selector(disk="ssd").info(),
    lambda name: make_pod(name).req(memory="2Gi").toleration("dedicated", operator="Exists").info(),
    lambda name: (
        make_pod(name).req(cpu="100m").prefer_node(3, "disk", ["ssd", "hdd"]).prefer_node(9, "x", ["1"]).info()
    ),
    lambda name: make_pod(name).resource("example.com/gpu", "1").info(),
    lambda name: make_pod(name).req(cpu="3").node_affinity_in("kubernetes.io/hostname", ["n1", "n2"]).info(),
]


def result(cluster: Cluster, pod: PodInfo) -> tuple[dict[str, int], str]:
    """Feasible nodes with totals, and the message when there are none."""
    profile = cluster.profiles["default-scheduler"]
    search = Search(profile, PodInfo(pod.pod))
    search.run()
    names = [search.table.names[row] for row in search.rows]
    if not names:
        return {}, search.explain().message(post_filter=False)
    totals = search.scores() if len(names) > 1 else np.zeros(1, np.int64)
    return dict(zip(names, totals.tolist(), strict=True)), ""


def rebuilt(cluster: Cluster) -> Cluster:
    """The same state in a new engine."""
    fresh = Cluster()
    for node in cluster.cache.table.nodes:
        if node is not None:
            fresh.cache.add_node(node)
    for pod in sorted(cluster.cache.pods(), key=lambda p: p.sequence):
        fresh.cache.add_pod(copy_of(pod))
    return fresh


def copy_of(pod: PlacedPod) -> PlacedPod:
    new = object.__new__(PlacedPod)
    for slot in PlacedPod.__slots__:
        setattr(new, slot, getattr(pod, slot))
    return new


class Changes:
    """Random changes to a cluster."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.rng, self.serial = cluster, random.Random(seed), 0

    def node(self, name: str) -> None:
        rng = self.rng
        node = make_node(name).capacity(
            cpu=rng.choice(["1", "2", "4", "900m"]), memory=rng.choice(["2Gi", "8Gi", "1Ei"])
        )
        node.capacity(pods=rng.choice(["1", "3", "110"]))
        if rng.random() < 0.5:
            node.label(disk=rng.choice(["ssd", "hdd"]))
        if rng.random() < 0.2:
            node.label(x="1")
        if rng.random() < 0.3:
            node.taint(rng.choice(["dedicated", "other"]), effect=rng.choice(["NoSchedule", "PreferNoSchedule"]))
        if rng.random() < 0.2:
            node.unschedulable()
        if rng.random() < 0.3:
            node.resource("example.com/gpu", rng.choice(["0", "1", "8"]))
        self.cluster.cache.add_node(node.obj())

    def step(self) -> None:
        rng, cache = self.rng, self.cluster.cache
        what = rng.random()
        if what < 0.3:
            self.node(f"n{rng.randrange(6)}")
        elif what < 0.4:
            present = [node for node in cache.table.nodes if node is not None]
            if present:
                cache.remove_node(rng.choice(present))
        elif what < 0.8:
            self.serial += 1
            info = rng.choice(PODS)(f"placed-{self.serial}")
            name = f"n{rng.randrange(7)}"
            if rng.random() < 0.5:
                cache.assume_pod(info, name)
            else:
                cache.add_pod(PlacedPod(info, name))
        else:
            pods = list(cache.pods())
            if pods:
                cache.remove_pod(rng.choice(pods))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1_000_000), steps=st.integers(1, 25))
def test_kept_answers_equal_fresh_ones(seed: int, steps: int) -> None:
    cluster = Cluster()
    changes = Changes(cluster, seed)
    for i in range(changes.rng.randrange(5)):
        changes.node(f"n{i}")
    pods = [make(f"pending-{i}") for i, make in enumerate(PODS)]
    for _ in range(steps):
        for _ in range(changes.rng.randrange(4)):
            changes.step()
        cluster.cache.validate()
        pod = changes.rng.choice(pods)
        assert result(cluster, pod) == result(rebuilt(cluster), pod)
    for pod in pods:
        assert result(cluster, pod) == result(rebuilt(cluster), pod)


def test_after_one_change_only_its_row_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows evaluated per plugin are counted: an unrelated change costs no more than the rows it touched."""
    cluster = Cluster()
    for i in range(50):
        cluster.cache.add_node(make_node(f"n{i}").obj())
    pod = PODS[0]("p")
    result(cluster, pod)
    profile = cluster.profiles["default-scheduler"]
    asked: dict[str, int] = {}
    for standing in profile._standings.values():
        for owner, kept in [(p.name, k) for p, k in standing.filters] + [(w.name, w.kept) for w in standing.scores]:
            rule = kept._rule

            def counting(state: object, info: object, view: object, rule: object = rule, owner: str = owner) -> object:
                asked[owner] = asked.get(owner, 0) + view.size  # type: ignore[attr-defined]
                return rule(state, info, view)  # type: ignore[operator]

            kept._rule = counting
    cluster.cache.add_pod(PlacedPod(PODS[0]("q"), "n7"))
    result(cluster, pod)
    assert asked == {"NodeResourcesFit": 2, "NodeResourcesBalancedAllocation": 1}  # Fit filters and scores
    asked.clear()
    cluster.cache.add_node(make_node("n9").taint("k").obj())
    result(cluster, pod)
    assert set(asked) == {"NodeUnschedulable", "TaintToleration"}
    assert max(asked.values()) <= 2


def test_where_one_node_fits_scores_are_made_when_somebody_asks() -> None:
    cluster = Cluster()
    for i in range(3):
        cluster.cache.add_node(make_node(f"n{i}").resource("example.com/gpu", "1" if i == 1 else "0").obj())
    pod = make_pod("p").resource("example.com/gpu", "1").info()
    profile = cluster.profiles["default-scheduler"]
    search = Search(profile, pod)
    search.run()
    assert search.rows.tolist() == [1]
    assert not len(search.standing.totals)
    alone = Search(rebuilt(cluster).profiles["default-scheduler"], pod)
    alone.run()
    assert search.scores().tolist() == alone.scores().tolist()
    assert search.scores().item() > 0

    cluster.cache.add_node(make_node("n2").resource("example.com/gpu", "1").obj())
    assert len(result(cluster, pod)[0]) == 2
    assert result(cluster, pod) == result(rebuilt(cluster), pod)
