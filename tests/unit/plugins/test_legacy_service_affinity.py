"""ServiceAffinity."""

import random
from typing import Any

import numpy as np
import pytest

from legacy_clusters import feasible, fill, plugin_cluster, policy_cluster, scores, search, service
from skedge import names
from skedge.config.legacy.args import ServiceAffinityArgs
from skedge.framework.status import Code, Status
from skedge.simulate.cluster import Cluster
from skedge.snapshot.views import DeltaView
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod

ZONES = {"a1": "a", "a2": "a", "b1": "b", "c1": ""}


def nodes() -> list[NodeBuilder]:
    return [make_node(name).label(zone=zone) if zone else make_node(name) for name, zone in ZONES.items()]


def member(name: str, node: str = "", namespace: str = "default") -> PodBuilder:
    pod = make_pod(name, namespace).label(app="x")
    return pod.node(node) if node else pod


def affine(pods: list[PodBuilder], services: list[dict[str, Any]], labels: list[str] | None = None) -> Cluster:
    cluster = plugin_cluster(names.SERVICE_AFFINITY, ServiceAffinityArgs(affinity_labels=labels or ["zone"]))
    fill(cluster, nodes(), pods, Service=services)
    return cluster


OURS = [service("s", app="x")]
EVERYWHERE = ["a1", "a2", "b1", "c1"]


@pytest.mark.parametrize(
    ("pods", "services", "selector", "expected"),
    [
        ([], OURS, {}, EVERYWHERE),  # the first one is free
        ([member("1", "b1")], OURS, {}, ["b1"]),
        ([member("1", "a2")], OURS, {}, ["a1", "a2"]),
        ([member("1", "c1")], OURS, {}, EVERYWHERE),  # its node has no value to follow
        ([member("1", "b1")], [], {}, EVERYWHERE),  # no service
        ([member("1", "b1")], [service("s", "other", app="x")], {}, EVERYWHERE),
        ([member("1", "b1", "other")], OURS, {}, EVERYWHERE),
        ([make_pod("1").node("b1")], OURS, {}, EVERYWHERE),  # lacks the pod's labels
        ([member("1", "b1")], OURS, {"zone": "a"}, ["a1", "a2"]),  # the pod says it itself
        ([member("1", "b1")], [], {"zone": "a"}, ["a1", "a2"]),
        ([member("1", "gone")], OURS, {}, EVERYWHERE),  # its node is not there any more
    ],
)
def test_filter(pods: list[PodBuilder], services: list[Any], selector: dict[str, str], expected: list[str]) -> None:
    assert feasible(affine(pods, services), member("p").node_selector(**selector)) == expected


def test_some_labels_given_and_others_followed() -> None:
    cluster = affine([member("1", "a1")], OURS, ["zone", "rack"])
    fill(cluster, [make_node("a1").label(zone="a", rack="1"), make_node("a2").label(zone="a", rack="2")])
    fill(cluster, [make_node("b1").label(zone="b", rack="1")])
    assert feasible(cluster, member("p").node_selector(zone="b")) == ["b1"]
    assert feasible(cluster, member("p")) == ["a1"]


def test_rejection() -> None:
    cluster = affine([member("1", "b1")], OURS)
    expected = Status(Code.UNSCHEDULABLE, "node(s) didn't match service affinity", plugin=names.SERVICE_AFFINITY)
    statuses = search(cluster, member("p")).explain().node_statuses()
    assert statuses == {"a1": expected, "a2": expected, "c1": expected}


def test_worlds_of_preemption() -> None:
    """Where the example itself would have to go, the next pod is followed; added pods come last."""
    cluster = affine([member("1", "a1"), member("2", "b1")], OURS)
    found = search(cluster, member("p"))
    plugin = found.profile.filter[0]
    table = cluster.cache.table
    rows = np.array([table.row_of[name] for name in EVERYWHERE], np.int64)

    def codes(added: dict[str, list[PodBuilder]], removed: dict[str, list[PodBuilder]]) -> list[int]:
        worlds = [
            {table.row_of[name]: [pod.placed() for pod in pods] for name, pods in each.items()}
            for each in (added, removed)
        ]
        result: list[int] = plugin.filter(found.state, found.pod, DeltaView(table, rows, *worlds)).tolist()
        return result

    assert codes({}, {}) == [0, 0, 1, 1]
    assert codes({}, {"a1": [member("1", "a1")], "b1": [member("2", "b1")]}) == [1, 0, 1, 1]
    assert codes({"b1": [member("3", "b1")]}, {}) == [0, 0, 1, 1]
    alone = affine([], OURS)
    found = search(alone, member("p"))
    plugin, table = found.profile.filter[0], alone.cache.table
    assert codes({"b1": [member("3", "b1")], "a1": [make_pod("4").node("a1")]}, {}) == [0, 0, 0, 0]


def spread(pods: list[PodBuilder], labels: list[str], services: list[Any]) -> dict[str, int]:
    args = ServiceAffinityArgs(anti_affinity_labels_preference=labels)
    cluster = plugin_cluster(names.SERVICE_AFFINITY, args)
    fill(cluster, nodes(), pods, Service=services)
    return scores(cluster, member("p"), names.SERVICE_AFFINITY)


@pytest.mark.parametrize(
    ("pods", "labels", "services", "expected"),
    [
        ([], ["zone"], OURS, {"a1": 100, "a2": 100, "b1": 100, "c1": 0}),
        ([member("1", "b1")], ["zone"], [], {"a1": 100, "a2": 100, "b1": 100, "c1": 0}),
        ([member("1", "a1"), member("2", "a2"), member("3", "b1")], ["zone"], OURS, {"a1": 33, "a2": 33, "b1": 66}),
        ([member("1", "a1"), member("2", "c1")], ["zone", "rack"], OURS, {"a1": 25, "a2": 25, "b1": 50}),
        ([member("1", "a1").terminating(), member("2", "b1", "other")], ["zone"], OURS, {"a1": 100, "b1": 100}),
    ],
)
def test_score(pods: list[PodBuilder], labels: list[str], services: list[Any], expected: dict[str, int]) -> None:
    found = spread(pods, labels, services)
    assert {name: found[name] for name in expected} == expected
    assert found["c1"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_score_as_a_plain_computation(seed: int) -> None:
    rng = random.Random(seed)
    labels = ["zone", "rack", "row"]
    built, pods, counts = [], [], {}
    for i in range(25):
        name = f"n{i}"
        node = make_node(name)
        for label in labels:
            if rng.random() < 0.7:
                node.labels({label: rng.choice("abc")})
        built.append(node)
        counts[name] = rng.randrange(3)
        pods += [member(f"p{i}-{k}", name) for k in range(counts[name])]
    args = ServiceAffinityArgs(anti_affinity_labels_preference=labels)
    cluster = plugin_cluster(names.SERVICE_AFFINITY, args)
    fill(cluster, built, pods, Service=OURS)
    of = {node.json["metadata"]["name"]: node.json["metadata"]["labels"] for node in built}
    total = sum(counts.values())
    expected = {}
    for name, mine in of.items():
        result = 0.0
        for label in labels:
            if label in mine:
                alike = sum(counts[other] for other, theirs in of.items() if theirs.get(label) == mine[label])
                result += 100.0 * (float(total - alike) / total)
        expected[name] = int(result / len(labels))
    assert scores(cluster, member("p"), names.SERVICE_AFFINITY) == expected


def test_through_a_policy() -> None:
    cluster = policy_cluster("""
predicates: [{name: ZoneTogether, argument: {serviceAffinity: {labels: [zone]}}}]
priorities:
- {name: SpreadRack, weight: 3, argument: {serviceAntiAffinity: {label: rack}}}
- {name: SpreadRow, weight: 3, argument: {serviceAntiAffinity: {label: row}}}
""")
    fill(cluster, [make_node("n").label(rack="1", row="1"), make_node("m").label(zone="z", rack="2")])
    fill(cluster, [], [member("1", "n")], Service=OURS)
    assert feasible(cluster, member("p")) == ["m", "n"]
    assert scores(cluster, member("p"), names.SERVICE_AFFINITY) == {"n": 0, "m": 300}
