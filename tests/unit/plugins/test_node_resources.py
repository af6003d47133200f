"""NodeResourcesFit and NodeResourcesBalancedAllocation: the tables of facts, in the units they are written in."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from skedge.api.core import Node
from skedge.api.resource import DeviceClass
from skedge.config.gates import FeatureGates
from skedge.framework.events import DEVICE_CLASS, QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.state import CycleState
from skedge.plugins.noderesources.fit import NodeResourcesFit
from skedge.profiles.search import Search
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Row, Rows
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
API = "kubescheduler.config.k8s.io/v1"
EXT, HUGE = "ext.com/a", "hugepages-2Mi"
U, UU = "Unschedulable", "UnschedulableAndUnresolvable"


_numbers = itertools.count()


def amounts(cpu: int = 0, mem: int = 0, **more: int) -> dict[str, str]:
    """cpu in milli, memory in bytes; what is 0 is not asked for, but for `zero`, written as such."""
    found = {"cpu": f"{cpu}m", "memory": str(mem)}
    found = {k: v for k, v in found.items() if v not in ("0m", "0")}
    names = {
        "ext": EXT,
        "huge": HUGE,
        "unknown": "unknown.com/b",
        "example": "example.com/b",
        "native": "kubernetes.io/something",
        "foo": "intel.com/foo",
        "bar": "intel.com/bar",
        "gpu": "nvidia.com/gpu",
        "storage": "storage",
    }
    return found | {names[k]: str(v) for k, v in more.items()}


def pod(
    *containers: Mapping[str, str],
    init: Sequence[Mapping[str, str]] = (),
    overhead: Mapping[str, str] | None = None,
    whole: Mapping[str, str] | None = None,
    node: str = "",
) -> PodBuilder:
    made = make_pod(f"p-{next(_numbers)}")
    spec = made.json["spec"]
    spec["containers"] = [{"name": f"c{i}", "resources": {"requests": dict(c)}} for i, c in enumerate(containers)]
    spec["initContainers"] = [{"name": f"i{i}", "resources": {"requests": dict(c)}} for i, c in enumerate(init)]
    if overhead:
        spec["overhead"] = dict(overhead)
    if whole:
        spec["resources"] = {"requests": dict(whole)}
    return made.node(node) if node else made


def node(name: str, allocatable: Mapping[str, str]) -> Node:
    made = make_node(name)
    made.json["status"]["allocatable"] = {"pods": "32", **allocatable}
    return made.obj()


def cluster_of(nodes: Sequence[Mapping[str, str]], args: Mapping[str, Mapping[str, Any]] | None = None) -> Cluster:
    config = [{"name": k, "args": dict(v)} for k, v in (args or {}).items()]
    cluster = Cluster(
        {
            "apiVersion": API,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": config}],
        }
    )
    for i, allocatable in enumerate(nodes, 1):
        cluster.cache.add_node(node(f"n{i}", allocatable))
    return cluster


# --- filter -----------------------------------------------------------------------------------------------------------

OFFER = {"cpu": "10m", "memory": "20", EXT: "5", "ephemeral-storage": "20", HUGE: "5"}
FIT: dict[str, tuple[Mapping[str, str], PodBuilder, Any]] = {
    "nothing asked": (amounts(10, 20), pod(), None),
    "both short": (amounts(10, 20), pod(amounts(1, 1)), (U, ["Insufficient cpu", "Insufficient memory"])),
    "init above": (amounts(8, 19), pod(amounts(1, 1), init=[amounts(3, 1)]), (U, ["Insufficient cpu"])),
    "largest init": (
        amounts(8, 19),
        pod(amounts(1, 1), init=[amounts(3, 1), amounts(2, 1)]),
        (U, ["Insufficient cpu"]),
    ),
    "init memory": (amounts(9, 19), pod(amounts(1, 1), init=[amounts(1, 3)]), (U, ["Insufficient memory"])),
    "inits are not summed": (amounts(9, 19), pod(amounts(1, 1), init=[amounts(1, 1), amounts(1, 1)]), None),
    "fits": (amounts(5, 5), pod(amounts(1, 1)), None),
    "equal is enough": (amounts(5, 19), pod(amounts(5, 1)), None),
    "equal init is enough": (amounts(5, 19), pod(amounts(4, 1), init=[amounts(5, 1)]), None),
    "extended above the node": ({}, pod(amounts(ext=10)), (UU, [f"Insufficient {EXT}"])),
    "extended used up": (amounts(ext=5), pod(amounts(ext=1)), (U, [f"Insufficient {EXT}"])),
    "extended summed": ({}, pod(amounts(ext=3), amounts(ext=3)), (UU, [f"Insufficient {EXT}"])),
    "extended of inits": (amounts(ext=2), pod(init=[amounts(ext=3), amounts(ext=3)]), None),
    "extended summed and used": (amounts(ext=2), pod(amounts(ext=3), amounts(ext=3)), (UU, [f"Insufficient {EXT}"])),
    "unknown": ({}, pod(amounts(unknown=1)), (UU, ["Insufficient unknown.com/b"])),
    "pod level": (amounts(5, 5), pod(amounts(1, 1), whole=amounts(7, 2)), (U, ["Insufficient cpu"])),
    "overhead": (amounts(5, 5), pod(amounts(1, 1), overhead=amounts(3, 13)), None),
    "zero of an overcommitted one": (amounts(ext=6), pod(amounts(ext=0)), None),
    "hugepages": (amounts(huge=5), pod(amounts(huge=1)), (U, [f"Insufficient {HUGE}"])),
    "overhead too much": (amounts(0, 5), pod(amounts(1, 1), overhead=amounts(0, 15)), (U, ["Insufficient memory"])),
    "B11.17 storage is nobody's": ({}, pod(amounts(storage=9)), None),
    "B11.20 native with a prefix": ({}, pod(amounts(native=1)), (UU, ["Insufficient kubernetes.io/something"])),
    "B11.22 no request on an overcommitted node": (amounts(11, 21), pod(), None),
    "B11.23 less than nothing left": (amounts(11, 5), pod(amounts(0, 1)), None),
    "B11.25 one of two is hopeless": (
        amounts(0, 19),
        pod(amounts(11, 2)),
        (UU, ["Insufficient cpu", "Insufficient memory"]),
    ),
}


def verdict(cluster: Cluster, asking: PodInfo) -> Any:
    search = Search(cluster.profiles["default-scheduler"], asking)
    search.run()
    status = search.explain().node_statuses().get("n1")
    return None if status is None else (status.code.word, list(status.reasons))


@pytest.mark.parametrize("case", FIT)
def test_filter(case: str) -> None:
    used, asking, want = FIT[case]
    cluster = cluster_of([OFFER])
    cluster.cache.add_pod(pod(used, node="n1").placed())
    assert verdict(cluster, asking.info()) == want


@pytest.mark.parametrize(
    ("args", "asking", "want"),
    [
        ({"ignoredResources": ["unknown.com/b"]}, amounts(unknown=1), None),
        (
            {"ignoredResourceGroups": ["example.com"]},
            amounts(example=1, native=1),
            (UU, ["Insufficient kubernetes.io/something"]),
        ),
        ({"ignoredResources": [HUGE]}, amounts(huge=9), (UU, [f"Insufficient {HUGE}"])),  # B11.18
    ],
)
def test_ignored(args: dict[str, Any], asking: dict[str, str], want: Any) -> None:
    assert verdict(cluster_of([OFFER], {"NodeResourcesFit": args}), pod(asking).info()) == want


@pytest.mark.parametrize(
    ("pods", "asking", "want"),
    [
        ("1", {}, (U, ["Too many pods"])),
        ("1", {"cpu": "10"}, (UU, ["Too many pods", "Insufficient cpu"])),
        (None, {}, (U, ["Too many pods"])),  # B11.21, B11.26
    ],
)
def test_number_of_pods(pods: str | None, asking: dict[str, str], want: Any) -> None:
    cluster = cluster_of([{"cpu": "5", "pods": pods} if pods else {"cpu": "5", "pods": "0"}])
    cluster.cache.add_pod(pod({}, node="n1").placed())
    assert verdict(cluster, pod(asking).info()) == want


# --- scores -----------------------------------------------------------------------------------------------------------

LEAST, MOST, RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"
C4, C6, C10 = amounts(4000, 10000), amounts(6000, 10000), amounts(10000, 20000)
DOWN = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}
UP = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 1}]}
ASK = amounts(3000, 5000)
ONE = amounts(3000, 0)
TWO = amounts(3000, 5000)


def strategy(kind: str, *resources: tuple[str, int], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, **more}
    if resources:
        found["resources"] = [{"name": name, "weight": weight} for name, weight in resources]
    return {"scoringStrategy": found}


BOTH = (("cpu", 1), ("memory", 2))
GPU = ((EXT, 2), ("cpu", 1), ("memory", 1))
EVEN = ((EXT, 1), ("cpu", 1), ("memory", 1))
E4, E10 = C6 | {EXT: "4"}, C6 | {EXT: "10"}
FOO = (("intel.com/foo", 1),)
FOOBAR = (("intel.com/foo", 3), ("intel.com/bar", 5))
Scored = tuple[dict[str, Any], Sequence[Any], Sequence[Any], PodBuilder, list[int]]
SCORES: dict[str, Scored] = {
    "least: no containers": (strategy(LEAST), [C4, C4], [], pod(), [100, 100]),
    "least: sizes": (strategy(LEAST), [C4, C6], [], pod(ASK), [37, 50]),
    "least: used": (strategy(LEAST), [C10, C10], [amounts(6000), amounts(6000, 5000)], pod(), [70, 57]),
    "least: used and asked": (strategy(LEAST), [C10, C10], [ONE, TWO], pod(ASK), [57, 45]),
    "least: larger memory": (strategy(LEAST), [C10, amounts(10000, 50000)], [ONE, TWO], pod(ASK), [57, 60]),
    "least: over (B11.29)": (strategy(LEAST), [C4, C4], [ONE, TWO], pod(amounts(3000) | {"memory": "0"}), [50, 25]),
    "least: no capacity": (strategy(LEAST), [{}, {}], [], pod(), [0, 0]),
    "least: weights": (strategy(LEAST, *BOTH), [C4, C6], [], pod(ASK), [41, 50]),
    "least: not asked for (B11.31)": (strategy(LEAST, *GPU), [E4, E4], [], pod(amounts(3000, 4000)), [55, 55]),
    "least: extended": (strategy(LEAST, *EVEN), [E4, E10], [], pod(ASK | {EXT: "2"}), [50, 60]),
    "most: sizes": (strategy(MOST), [C4, C6], [], pod(ASK), [62, 50]),
    "most: used": (strategy(MOST), [C10, C10], [amounts(6000), amounts(6000, 5000)], pod(), [30, 42]),
    "most: used and asked": (strategy(MOST), [C10, C10], [ONE, TWO], pod(ASK), [42, 55]),
    "most: nearly full": (
        strategy(MOST), [amounts(5000, 10000), amounts(10000, 9000)], [], pod(amounts(5000, 9000)), [95, 75],
    ),
    "most: weights": (strategy(MOST, *BOTH), [C4, C6], [], pod(ASK), [58, 50]),
    "most: extended": (strategy(MOST, *EVEN), [E4, E10], [], pod(ASK | {EXT: "2"}), [50, 40]),
    "most: not asked for": (strategy(MOST, *GPU), [C6, C6], [], pod(amounts(3000, 4000)), [45, 45]),
    "ratio: no containers": (strategy(RATIO, requestedToCapacityRatio=DOWN), [C4, C4], [], pod(), [100, 100]),
    "ratio: rounds (B11.28)": (strategy(RATIO, requestedToCapacityRatio=DOWN), [C4, C6], [], pod(ASK), [38, 50]),
    "ratio: used": (strategy(RATIO, requestedToCapacityRatio=DOWN), [C4, C6], [ASK, ASK], pod(), [38, 50]),
    "ratio: foo": (
        strategy(RATIO, *FOO, requestedToCapacityRatio=UP), [amounts(foo=8), amounts(foo=4)], [],
        pod(amounts(foo=2)), [2, 5],
    ),
    "ratio: foo used": (
        strategy(RATIO, *FOO, requestedToCapacityRatio=UP), [amounts(foo=8), amounts(foo=4)], [{}, amounts(foo=2)],
        pod(amounts(foo=2)), [2, 10],
    ),
    "ratio: foo all": (
        strategy(RATIO, *FOO, requestedToCapacityRatio=UP), [amounts(foo=8), amounts(foo=4)], [],
        pod(amounts(foo=4)), [5, 10],
    ),
    "ratio: no foo": (
        strategy(RATIO, *FOO, requestedToCapacityRatio=UP), [amounts(foo=8), amounts(foo=4)], [], pod(ASK), [0, 0],
    ),
    "ratio: two": (
        strategy(RATIO, *FOOBAR, requestedToCapacityRatio=UP), [amounts(foo=8, bar=4), amounts(foo=4, bar=8)], [],
        pod(amounts(foo=2, bar=2)), [4, 3],
    ),
    "ratio: two, one over": (
        strategy(RATIO, *FOOBAR, requestedToCapacityRatio=UP), [amounts(foo=8, bar=4), amounts(foo=4, bar=8)],
        [{}, amounts(foo=4, bar=2)], pod(amounts(foo=2, bar=2)), [4, 7],
    ),
    "ratio: two, all foo": (
        strategy(RATIO, *FOOBAR, requestedToCapacityRatio=UP), [amounts(foo=8, bar=4), amounts(foo=4, bar=8)], [],
        pod(amounts(foo=4, bar=2)), [5, 5],
    ),
    "ratio: two, nothing asked": (
        strategy(RATIO, *FOOBAR, requestedToCapacityRatio=UP), [amounts(foo=8, bar=4), amounts(foo=4, bar=8)], [],
        pod(), [0, 0],
    ),
    "B11.5 an explicit zero": (strategy(LEAST, ("cpu", 1)), [amounts(1000)] * 2, [], pod({"cpu": "0"}), [100, 100]),
    "B11.5 a missing one": (strategy(LEAST, ("cpu", 1)), [amounts(1000)] * 2, [], pod({}), [90, 90]),
    "B11.6 200Mi": (strategy(LEAST, ("memory", 1)), [amounts(0, 400 << 20)] * 2, [], pod({}), [50, 50]),
    "B11.33 storage as asked": (
        strategy(LEAST, ("ephemeral-storage", 1)), [{"ephemeral-storage": "100"}] * 2,
        [{}, {"ephemeral-storage": "40"}], pod({"ephemeral-storage": "10"}), [90, 50],
    ),
}  # fmt: skip


def scores(cluster: Cluster, asking: PodInfo, plugin: str) -> list[int]:
    search = Search(cluster.profiles["default-scheduler"], asking)
    search.run()
    search.only([cluster.cache.table.row_of[f"n{i}"] for i in range(1, cluster.cache.table.count + 1)])
    parts = search.scores_by_plugin()
    return parts[plugin].tolist() if plugin in parts else []


@pytest.mark.parametrize("case", SCORES)
def test_scores(case: str) -> None:
    args, nodes, used, asking, want = SCORES[case]
    cluster = cluster_of(nodes, {"NodeResourcesFit": args})
    for i, each in enumerate(used, 1):
        if each or "B11.33" in case:
            cluster.cache.add_pod(pod({"cpu": "0", "memory": "0", **each}, node=f"n{i}").placed())
    if used:  # facts are written for containers that ask for what they ask and nothing else
        asking.json["spec"]["containers"] = [
            {"name": "c", "resources": {"requests": {"cpu": "0", "memory": "0", **c["resources"]["requests"]}}}
            for c in asking.json["spec"]["containers"]
        ]
    assert scores(cluster, asking.info(), "NodeResourcesFit") == want


def test_empty_containers_count_by_default() -> None:
    cluster = cluster_of([{"cpu": "250m", "memory": "1000Mi"}] * 2, {"NodeResourcesFit": strategy(MOST)})
    for _ in range(2):
        cluster.cache.add_pod(pod({}, node="n1").placed())
    assert scores(cluster, pod({}).info(), "NodeResourcesFit") == [80, 30]


def test_pitfall_32_pod_level_requests_count_once_placed() -> None:
    cluster = cluster_of([{"cpu": "8"}] * 2, {"NodeResourcesFit": strategy(LEAST, ("cpu", 1))})
    cluster.cache.add_pod(pod({}, whole={"cpu": "4"}, node="n1").placed())
    assert scores(cluster, pod({}, whole={"cpu": "4"}).info(), "NodeResourcesFit") == [48, 98]


C35 = amounts(3500, 40000, gpu=8)
THREE = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}, {"name": "nvidia.com/gpu", "weight": 1}]
BALANCED: dict[str, tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str], list[Any], list[int]]] = {
    "uneven": (C4, {}, ASK, [], [68]),
    "even": (C6, {}, ASK, [], [75]),
    "from uneven": (C10, ONE, ASK, [], [73]),
    "from even": (C10, TWO, ASK, [], [74]),
    "larger memory": (amounts(10000, 50000), TWO, ASK, [], [70]),
    "evens it out": (amounts(3000, 5000), ONE, amounts(0, 5000), [], [100]),
    "tips it over": (amounts(3000, 5000), {}, amounts(0, 5000), [], [50]),
    "cpu alone": (C6, ONE, ONE, [], [62]),
    "cpu alone from even": (C6, TWO, ONE, [], [62]),
    "three": (C35, TWO | {"nvidia.com/gpu": "3"}, amounts(gpu=1), THREE, [75]),
    "three unused": (C35, TWO, amounts(gpu=1), THREE, [76]),
    "gpu not asked for": (C35, {}, ASK, THREE, [56]),
    "B11.35 best effort": (C4, {}, {}, [], []),
    "B11.37 no defaults": (C6, {}, amounts(0, 5000), [], [62]),
}


@pytest.mark.parametrize("case", BALANCED)
def test_balanced_allocation(case: str) -> None:
    offer, used, asked, resources, want = BALANCED[case]
    args = {"NodeResourcesBalancedAllocation": {"resources": resources}} if resources else {}
    cluster = cluster_of([offer, offer], args)
    for name in ("n1", "n2"):
        cluster.cache.add_pod(pod(used, node=name).placed())
    assert scores(cluster, pod(asked).info(), "NodeResourcesBalancedAllocation") == want * 2


# --- events -----------------------------------------------------------------------------------------------------------


def plugin_of(args: Any = None) -> NodeResourcesFit:
    cluster = Cluster()
    return NodeResourcesFit(
        args,
        Handle(
            table=cluster.cache.table,
            listers=cluster.listers,
            gates=FeatureGates(),
            clock=cluster.clock,
            rng=None,  # type: ignore[arg-type]
            ports=None,
        ),
    )


PENDING = pod(amounts(2, 0, ext=1)).info()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, amounts(2, 0, ext=1), QUEUE),
        (None, amounts(1, 0, ext=1), SKIP),
        (amounts(2, 0, ext=1), amounts(3, 0, ext=1), QUEUE),
        (amounts(2, 0, ext=1), amounts(2, 9, ext=1), SKIP),
        (amounts(2, 0, ext=1), amounts(2, 0, ext=2), QUEUE),
        (amounts(3, 0, ext=1), amounts(2, 0, ext=1), SKIP),
        (amounts(2, 0, ext=1) | {"pods": "1"}, amounts(2, 0, ext=1), QUEUE),
        (amounts(2), amounts(2, 9), SKIP),
    ],
)
def test_node_changes(old: Any, new: dict[str, str], hint: QueueingHint) -> None:
    before = None if old is None else node("n", old)
    assert plugin_of().after_node_change(PENDING, before, node("n", new)) is hint


def test_pitfall_34_ignored_resources_are_not_ignored_by_the_hint() -> None:
    cluster = cluster_of([{}], {"NodeResourcesFit": {"ignoredResources": [EXT]}})
    fit = next(p for p in cluster.profiles["default-scheduler"].plugins if p.name == "NodeResourcesFit")
    assert fit.after_node_change(PENDING, None, node("n", amounts(2))) is SKIP


@pytest.mark.parametrize(
    ("node_name", "nominated", "hint"), [("n", "", QUEUE), ("", "n", QUEUE), ("", "", SKIP)]
)  # fmt: skip
def test_deleted_pods(node_name: str, nominated: str, hint: QueueingHint) -> None:
    gone = pod({}, node=node_name)
    if nominated:
        gone = gone.nominated(nominated)
    assert plugin_of().after_pod_change(PENDING, gone.info(), None) is hint


@pytest.mark.parametrize(
    ("old", "new", "placed", "hint"),
    [
        (amounts(2), amounts(1), True, QUEUE),
        (amounts(2), amounts(1), False, SKIP),
        (amounts(0, 2), amounts(0, 1), True, SKIP),  # of memory the pending pod asks nothing
        (amounts(1), amounts(2), True, SKIP),
    ],
)
def test_shrinking_pods(old: Any, new: Any, placed: bool, hint: QueueingHint) -> None:
    name = "n" if placed else ""
    assert plugin_of().after_pod_change(PENDING, pod(old, node=name).info(), pod(new, node=name).info()) is hint


def test_its_own_change_always_helps() -> None:
    assert plugin_of().after_pod_change(PENDING, PENDING, PENDING) is QUEUE


def device_class(name: str, extended: str | None) -> DeviceClass:
    spec = {"extendedResourceName": extended} if extended else {}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, device_class("c", EXT), QUEUE),
        (None, device_class("c", "other.com/x"), SKIP),
        (None, device_class("mine", None), QUEUE),
        (device_class("c", None), device_class("c", EXT), QUEUE),
        (device_class("c", EXT), device_class("c", EXT), SKIP),
        (device_class("mine", EXT), device_class("mine", "other.com/x"), SKIP),
    ],
)
def test_device_classes(old: DeviceClass | None, new: DeviceClass, hint: QueueingHint) -> None:
    asking = pod(amounts(ext=1) | {"deviceclass.resource.kubernetes.io/mine": "1"}).info()
    fit = plugin_of()
    assert DEVICE_CLASS in [each.event.resource for each in fit.events_to_register()]
    assert fit.after_device_class_change(asking, old, new) is hint


@pytest.mark.parametrize("kind", [LEAST, MOST, RATIO])
def test_a_request_near_the_end_of_int64_is_scored_without_a_warning(kind: str) -> None:
    """Sums with it wrap, as in the reference; no node can take the pod, but its scores are worked out all the same."""
    more = {"requestedToCapacityRatio": UP} if kind == RATIO else {}
    cluster = cluster_of([amounts(4000)] * 3, {"NodeResourcesFit": strategy(kind, ("cpu", 1), ("memory", 1), **more)})
    for i in range(1, 4):
        cluster.cache.add_pod(pod({"cpu": "1", "memory": str(i)}, node=f"n{i}").placed())
    asking = pod({"cpu": "1", "memory": str(2**63 - 2)}).info()
    assert len(scores(cluster, asking, "NodeResourcesFit")) == 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("everywhere", [True, False], ids=["all nodes have all", "some lack some"])
@pytest.mark.parametrize("kind", [LEAST, MOST, RATIO])
def test_all_rows_at_once_answer_as_each_row_alone(kind: str, everywhere: bool, seed: int) -> None:
    """Crowded and overcommitted nodes among them, and one that is gone."""
    rng = random.Random(seed)
    more = {"requestedToCapacityRatio": UP} if kind == RATIO else {}
    args = strategy(kind, ("cpu", 1), ("memory", 3), (EXT, 2), **more)

    def offered() -> dict[str, str]:
        lacking = 0 if everywhere or rng.random() < 0.7 else 1
        return amounts(rng.choice((1000, 4000)), 10_000 * (1 - lacking), ext=5) | {"pods": rng.choice(("2", "9"))}

    cluster = cluster_of([offered() for _ in range(9)], {"NodeResourcesFit": args})
    for _ in range(rng.choice((4, 30))):
        asked = rng.choice((amounts(), amounts(300), amounts(900, 4000), amounts(100, 100, ext=2)))
        cluster.cache.add_pod(pod(asked, node=f"n{rng.randint(1, 9)}").placed())
    table = cluster.cache.table
    table.remove_node("n5")
    plugins = {plugin.name: plugin for plugin in cluster.profiles["default-scheduler"].plugins}
    for asking in (amounts(), amounts(200), amounts(200, 3000), amounts(700, 100, ext=1), amounts(5000, ext=9)):
        info, state = pod(asking).info(), CycleState()
        fit, balance = plugins["NodeResourcesFit"], plugins["NodeResourcesBalancedAllocation"]
        fit.pre_filter(state, info, Rows(table))
        for rule in (fit.filter, fit.score, balance.score):
            at_once = np.broadcast_to(rule(state, info, Rows(table)), table.size)
            chosen = np.broadcast_to(rule(state, info, Rows(table, np.arange(table.size))), table.size)
            for row in np.flatnonzero(table.exists).tolist():
                assert at_once[row] == chosen[row] == rule(state, info, Row(table, row)), (rule, asking, row)
