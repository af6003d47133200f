"""Searches that look at a part of the nodes; ids that begin with a number are those of the list of pitfalls."""

from __future__ import annotations

import heapq
import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.profiles.sampling import heap_root, nodes_to_find
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import PodBuilder, make_node, make_pod


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        pytest.param(99, 5, 99, id="63-fewer than 100 nodes"),
        pytest.param(6000, 0, 300, id="64-adaptive floor"),
        (10, 0, 10),
        (100, 0, 100),
        (125, 0, 100),
        (200, 0, 100),
        (250, 0, 120),
        (1000, 0, 420),
        (1000, 40, 400),
        (1000, 100, 1000),
        (5000, 0, 500),
        (6000, 40, 2400),
    ],
)
def test_nodes_to_find(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


def heapify_and_pop(totals: list[int]) -> int:
    """The reference's way, step by step: sift down from the last parent to the root, take the root."""
    heap = list(enumerate(totals))

    def down(i: int) -> None:
        while (child := 2 * i + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][1] > heap[child][1]:
                child += 1
            if not heap[child][1] > heap[i][1]:
                return
            heap[i], heap[child] = heap[child], heap[i]
            i = child

    for i in range(len(heap) // 2 - 1, -1, -1):
        down(i)
    return heap[0][0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=70))
def test_heap_root_is_what_a_heap_has_at_its_root(totals: list[int]) -> None:
    assert heap_root(np.array(totals)) == heapify_and_pop(totals)
    assert totals[heap_root(np.array(totals))] == heapq.nlargest(1, totals)[0]


@pytest.mark.parametrize(
    ("totals", "winner"), [([1, 2, 5, 5], 3), ([7, 7, 7], 0), ([1, 7, 7], 1), ([1, 1, 7, 1, 7], 4)]
)
def test_heap_root(totals: list[int], winner: int) -> None:
    """81: equal totals are decided by the order in which nodes were found."""
    assert heap_root(np.array(totals)) == winner


def cluster_of(nodes: int, *, tainted: frozenset[int] = frozenset(), **config: Any) -> Cluster:
    text = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config}
    cluster = Cluster(decode(json.dumps(text), args_types=PLUGIN_ARGS))
    for i in range(nodes):
        node = make_node(f"n{i:03}")
        cluster.add_node((node.taint("a") if i in tainted else node).obj())
    return cluster


def searched(cluster: Cluster, pod: PodBuilder | None = None) -> tuple[list[str], int, int]:
    """(first and last feasible node, how many were looked at, where the next search starts)"""
    profile = cluster.profiles["default-scheduler"]
    search = Search(profile, (pod or make_pod("p").req(cpu="1")).info(), cluster.nominator)
    search.run()
    names = [search.table.names[row] for row in search.rows]
    assert profile.sampler is not None
    return names[:1] + names[-1:], search.evaluated_nodes, profile.sampler.start


def test_search_goes_round_and_stops_at_the_next_feasible_node() -> None:
    cluster = cluster_of(250, tainted=frozenset({3, 100, 101}), percentageOfNodesToScore=40)
    assert searched(cluster) == (["n000", "n102"], 103, 103)
    assert searched(cluster) == (["n103", "n202"], 100, 203)
    assert searched(cluster) == (["n203", "n053"], 101, 54)


def test_all_nodes_are_told_of_when_none_fits() -> None:
    cluster = cluster_of(300, tainted=frozenset(range(300)), percentageOfNodesToScore=40)
    search = Search(cluster.profiles["default-scheduler"], make_pod("p").req(cpu="1").info())
    search.run()
    assert search.diagnosis.message() == "0/300 nodes are available: 300 node(s) had untolerated taint(s)."


def test_rejected_sample_is_explained_without_the_rest() -> None:
    cluster = cluster_of(250, tainted=frozenset({3, 240}), percentageOfNodesToScore=40)
    search = Search(cluster.profiles["default-scheduler"], make_pod("p").req(cpu="1").info())
    search.run()
    assert list(search.explain().node_statuses()) == ["n003"]


@pytest.mark.parametrize(
    ("config", "looked_for"),
    [
        pytest.param(
            {"percentageOfNodesToScore": 40, "profiles": [{"percentageOfNodesToScore": 0}]},
            120,
            id="65-explicit 0 of the profile is adaptive",
        ),
        ({"percentageOfNodesToScore": 100, "profiles": [{"percentageOfNodesToScore": 60}]}, 150),
        ({"percentageOfNodesToScore": 0}, 120),
    ],
)
def test_percentage_of_the_profile_goes_first(config: dict[str, Any], looked_for: int) -> None:
    assert searched(cluster_of(250, **config)) == (["n000", f"n{looked_for - 1:03}"], looked_for, looked_for)


def test_no_sampler_unless_asked_for() -> None:
    assert cluster_of(250).profiles["default-scheduler"].sampler is None
    assert not cluster_of(1).cache.table.node_observers


NO_SCORES: dict[str, Any] = {
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}],
    "percentageOfNodesToScore": 50,
}


def test_without_score_plugins_the_first_node_is_taken() -> None:
    """67, 82: one node is looked for, and successive pods start at successive nodes."""
    cluster = cluster_of(3, **NO_SCORES)
    assert [searched(cluster) for _ in range(4)] == [
        (["n000", "n000"], 1, 1),
        (["n001", "n001"], 1, 2),
        (["n002", "n002"], 1, 0),
        (["n000", "n000"], 1, 1),
    ]


def test_with_an_extender_one_node_is_not_enough() -> None:
    cluster = cluster_of(3, **NO_SCORES, extenders=[{"urlPrefix": "http://x", "filterVerb": "filter"}])
    assert searched(cluster) == (["n000", "n002"], 3, 0)


def test_nominated_node_leaves_the_start_where_it_is() -> None:
    """68, 83: where the nominated node fits nothing else is looked at."""
    cluster = cluster_of(250, percentageOfNodesToScore=40)
    pod = make_pod("p").req(cpu="1").nominated("n007")
    assert searched(cluster, pod) == (["n007", "n007"], 1, 0)


def test_names_narrowed_by_prefilter_move_the_start() -> None:
    cluster = cluster_of(250, percentageOfNodesToScore=40)
    pod = make_pod("p").req(cpu="1")
    names = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n007", "n009", "gone")]
    pod.json["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [each]} for each in names]
            }
        }
    }
    assert searched(cluster, pod)[1:] == (2, 2)


@given(seed=st.integers(0, 100_000))
@settings(max_examples=25, deadline=None)
def test_a_part_of_what_a_whole_search_finds(seed: int) -> None:
    """Against a walk over the nodes one by one, with what a search of all nodes says of each."""
    rng = random.Random(seed)
    cluster = cluster_of(0, percentageOfNodesToScore=rng.choice([1, 60, 90]))
    for i in range(rng.randrange(101, 180)):
        node = make_node(f"n{i:03}").zone(rng.choice(["a", "b", "c"])).capacity(cpu=rng.choice(["1", "2"]))
        cluster.add_node((node.taint("t") if rng.random() < 0.15 else node).obj())
    profile = cluster.profiles["default-scheduler"]
    sampler = profile.sampler
    assert sampler is not None
    for i in range(6):
        pod = make_pod(f"p{i}").req(cpu="1").label(app="x").priority(5)
        if rng.random() < 0.5:
            pod.spread("topology.kubernetes.io/zone", {"app": "x"})
        if rng.random() < 0.3:
            promised = make_pod(f"promised{i}").req(cpu="1").priority(9).nominated(f"n{rng.randrange(100):03}")
            cluster.add_pod(promised.obj())
        order, profile.sampler = sampler.rows(), None
        whole = Search(profile, pod.info(), cluster.nominator)
        whole.run()
        profile.sampler = sampler
        some = Search(profile, pod.info(), cluster.nominator)
        some.run()
        enough, fits = some.to_find(len(order)), set(whole.rows.tolist())
        found: list[int] = []
        visited = 0
        for row in order.tolist():
            if row in fits and len(found) == enough:
                break
            visited += 1
            if row in fits:
                found.append(row)
        assert some.rows.tolist() == found
        assert some.evaluated_nodes == visited
        if not found:
            assert some.diagnosis.message() == whole.diagnosis.message()
            continue
        totals = dict(zip(whole.rows.tolist(), whole.scores().tolist(), strict=True)) if fits == set(found) else None
        if totals is not None and len(found) > 1:
            assert some.scores().tolist() == [totals[row] for row in found]
        chosen = some.table.names[some.rows[heap_root(some.scores())]] if len(found) > 1 else some.table.names[found[0]]
        cluster.cache.assume_pod(pod.info(), chosen)
