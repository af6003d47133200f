"""Least, most and ratio scorers of a Policy that asks for several."""

import random
from itertools import pairwise

import pytest

from legacy_clusters import fill, plugin_cluster, policy_cluster, scores
from skedge import names
from skedge.config.legacy.args import RequestedToCapacityRatioArgs
from skedge.config.plugin_args import ResourceSpec, ShapePoint
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import make_node, make_pod

RISING = [ShapePoint(0, 0), ShapePoint(100, 10)]
BENT = [ShapePoint(0, 10), ShapePoint(40, 3), ShapePoint(80, 9)]


def cluster_of(plugin: str, args: object = None) -> Cluster:
    cluster = plugin_cluster(plugin, args)
    fill(
        cluster,
        [
            make_node("half").capacity(cpu="4", memory="8Gi"),
            make_node("empty").capacity(cpu="4", memory="8Gi"),
            make_node("over").capacity(cpu="1", memory="8Gi"),
            make_node("none").capacity(cpu="0", memory="8Gi"),
        ],
        [make_pod("a").req(cpu="2", memory="4Gi").node("half"), make_pod("b").req(cpu="1").node("over")],
    )
    return cluster


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        # half: cpu 3/4, memory 5/8; over: cpu 2/1, memory (1Gi + 200Mi)/8Gi; none: cpu 1/0
        (names.NODE_RESOURCES_LEAST_ALLOCATED, None, {"half": 31, "empty": 81, "over": 42, "none": 43}),
        (names.NODE_RESOURCES_MOST_ALLOCATED, None, {"half": 68, "empty": 18, "over": 7, "none": 6}),
        (
            names.REQUESTED_TO_CAPACITY_RATIO,
            RequestedToCapacityRatioArgs(shape=RISING),
            {"half": 69, "empty": 19, "over": 58, "none": 57},
        ),
        (
            names.REQUESTED_TO_CAPACITY_RATIO,
            RequestedToCapacityRatioArgs(
                shape=RISING, resources=[ResourceSpec("cpu", 3), ResourceSpec("example.com/x", 1)]
            ),
            {"half": 81, "empty": 44, "over": 100, "none": 100},
        ),
    ],
)
def test_scores(plugin: str, args: object, expected: dict[str, int]) -> None:
    pod = make_pod().req(cpu="1", memory="1Gi")
    assert scores(cluster_of(plugin, args), pod, plugin) == expected


def test_missing_requests_count_as_small_ones() -> None:
    cluster = plugin_cluster(names.NODE_RESOURCES_MOST_ALLOCATED)
    fill(cluster, [make_node("n").capacity(cpu="1", memory="2000Mi")])
    fill(cluster, [make_node("m").capacity(cpu="2", memory="2000Mi")])
    assert scores(cluster, make_pod(), names.NODE_RESOURCES_MOST_ALLOCATED) == {"n": 10, "m": 7}


def by_shape(shape: list[ShapePoint], at: int) -> int:
    for before, after in pairwise(shape):
        if at <= before.utilization:
            return before.score * 10
        if at <= after.utilization:
            rise = (after.score - before.score) * 10 * (at - before.utilization)
            return before.score * 10 + int(rise / (after.utilization - before.utilization))
    return shape[-1].score * 10


@pytest.mark.parametrize("seed", range(5))
def test_ratio_as_a_plain_computation(seed: int) -> None:
    rng = random.Random(seed)
    resources = [ResourceSpec("cpu", 2), ResourceSpec("memory", 1), ResourceSpec("example.com/x", 5)]
    cluster = plugin_cluster(
        names.REQUESTED_TO_CAPACITY_RATIO, RequestedToCapacityRatioArgs(shape=BENT, resources=resources)
    )
    capacities = {}
    for i in range(40):
        cpu, memory, extra = rng.randrange(0, 9000), rng.randrange(0, 4000), rng.choice((0, 4, 100))
        capacities[f"n{i}"] = (cpu, memory, extra)
        node = make_node(f"n{i}").capacity(cpu=f"{cpu}m", memory=str(memory)).resource("example.com/x", str(extra))
        fill(cluster, [node])
    wanted = (rng.randrange(1, 3000), rng.randrange(1, 3000), rng.randrange(0, 90))
    pod = make_pod().req(cpu=f"{wanted[0]}m", memory=str(wanted[1])).resource("example.com/x", str(wanted[2]))
    expected = {}
    for name, capacity in capacities.items():
        parts = []
        for spec, have, ask in zip(resources, capacity, wanted, strict=True):
            used = 100 if not have or ask > have else 100 - (have - ask) * 100 // have
            score = by_shape(BENT, used)
            parts += [(score, spec.weight)] if score > 0 else []
        weights = sum(weight for _, weight in parts)
        expected[name] = int(sum(s * w for s, w in parts) / weights + 0.5) if weights else 0
    assert scores(cluster, pod, names.REQUESTED_TO_CAPACITY_RATIO) == expected


def test_a_policy_with_several_gets_each() -> None:
    cluster = policy_cluster("""
predicates: []
priorities:
- {name: LeastRequestedPriority, weight: 2}
- {name: MostRequestedPriority, weight: 1}
""")
    fill(cluster, [make_node("n").capacity(cpu="10", memory="10Gi")])
    pod = make_pod().req(cpu="1", memory="1Gi")
    assert scores(cluster, pod, names.NODE_RESOURCES_LEAST_ALLOCATED) == {"n": 180}
    assert scores(cluster, pod, names.NODE_RESOURCES_MOST_ALLOCATED) == {"n": 10}
