"""SelectorSpread."""

import random
from typing import Any

import pytest

from legacy_clusters import fill, plugin_cluster, scores, service
from skedge import names
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


def labelled(name: str, node: str = "", namespace: str = "default", **labels: str) -> PodBuilder:
    pod = make_pod(name, namespace).label(**labels)
    return pod.node(node) if node else pod


def spread(nodes: list[NodeBuilder], pods: list[PodBuilder], pod: PodBuilder, **objects: Any) -> dict[str, int]:
    cluster = plugin_cluster(names.SELECTOR_SPREAD)
    fill(cluster, nodes, pods, **objects)
    return scores(cluster, pod, names.SELECTOR_SPREAD)


def owner(selector: Any, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": "o", "namespace": namespace}, "spec": {"selector": selector}}


TWO = [make_node("a"), make_node("b")]
ON_A = [labelled("1", "a", app="x"), labelled("2", "a", app="x", tier="t"), labelled("3", "b", app="x")]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({}, {"a": 100, "b": 100}),
        ({"Service": [service("s", app="x")]}, {"a": 0, "b": 50}),
        ({"Service": [service("s", app="y")]}, {"a": 100, "b": 100}),
        ({"Service": [service("s", "other", app="x")]}, {"a": 100, "b": 100}),
        ({"Service": [service("s")]}, {"a": 100, "b": 100}),
        ({"Service": [service("s", app="x"), service("t", tier="t")]}, {"a": 0, "b": 100}),
        ({"ReplicationController": [owner({"app": "x"})]}, {"a": 0, "b": 50}),
        ({"ReplicationController": [owner({})]}, {"a": 100, "b": 100}),
        ({"ReplicaSet": [owner({"matchLabels": {"app": "x"}})]}, {"a": 0, "b": 50}),
        ({"ReplicaSet": [owner({})]}, {"a": 100, "b": 100}),
        ({"ReplicaSet": [owner({"matchExpressions": [{"key": "tier", "operator": "Exists"}]})]}, {"a": 0, "b": 100}),
        ({"StatefulSet": [owner({"matchExpressions": [{"key": "?", "operator": "In"}]})]}, {"a": 100, "b": 100}),
    ],
)
def test_who_belongs_together(objects: dict[str, list[Any]], expected: dict[str, int]) -> None:
    assert spread(TWO, ON_A, labelled("p", app="x", tier="t"), **objects) == expected


def test_pods_that_go_or_live_elsewhere_do_not_count() -> None:
    pods = [
        labelled("1", "a", app="x").terminating(),
        labelled("2", "a", "other", app="x"),
        labelled("3", "b", app="x"),
    ]
    assert spread(TWO, pods, labelled("p", app="x"), Service=[service("s", app="x")]) == {"a": 100, "b": 0}


def test_a_pod_with_constraints_of_its_own_is_not_scored() -> None:
    pod = labelled("p", app="x").spread("zone", {"app": "x"}, when="ScheduleAnyway")
    assert spread(TWO, ON_A, pod, Service=[service("s", app="x")]) == {}


def test_zones_weigh_two_thirds() -> None:
    nodes = [make_node("a").zone("z1"), make_node("b").zone("z1"), make_node("c").zone("z2"), make_node("d")]
    pods = [labelled("1", "a", app="x"), labelled("2", "c", app="x"), labelled("3", "c", app="x")]
    found = spread(nodes, pods, labelled("p", app="x"), Service=[service("s", app="x")])
    assert found == {"a": 50, "b": 66, "c": 0, "d": 100}


def zone_of(labels: dict[str, str]) -> tuple[str, str] | None:
    zone = labels.get(OLD_ZONE, labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get(OLD_REGION, labels.get("topology.kubernetes.io/region", ""))
    return (region, zone) if region or zone else None


@pytest.mark.parametrize("seed", range(6))
def test_as_a_plain_computation(seed: int) -> None:
    rng = random.Random(seed)
    nodes, pods, counts = [], [], {}
    for i in range(30):
        node = make_node(f"n{i}")
        for key, values in (
            (OLD_ZONE, ("z1", "z2", "")),
            (OLD_REGION, ("r1",)),
            ("topology.kubernetes.io/zone", ("z1", "z3")),
            ("topology.kubernetes.io/region", ("r1", "z1")),
        ):
            if rng.random() < 0.4:
                node.labels({key: rng.choice(values)})
        nodes.append(node)
        counts[f"n{i}"] = rng.randrange(4)
        pods += [labelled(f"p{i}-{k}", f"n{i}", app="x") for k in range(counts[f"n{i}"])]
    zones = {node.json["metadata"]["name"]: zone_of(node.json["metadata"]["labels"]) for node in nodes}
    of_zone: dict[Any, int] = {}
    for name, zone in zones.items():
        of_zone[zone] = of_zone.get(zone, 0) + counts[name]
    most, most_of_zone = max(counts.values()), max((n for zone, n in of_zone.items() if zone), default=0)
    expected = {}
    for name, zone in zones.items():
        score = 100.0 * (float(most - counts[name]) / most) if most else 100.0
        if zone is not None:
            part = 100.0 * (float(most_of_zone - of_zone[zone]) / most_of_zone) if most_of_zone else 100.0
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * part
        expected[name] = int(score)
    assert spread(nodes, pods, labelled("p", app="x"), Service=[service("s", app="x")]) == expected
