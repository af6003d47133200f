"""Changes that would help: each is told when it helps, and only then."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from skedge.api.core import Pod
from skedge.api.requests import pod_requests
from skedge.simulate.changes import amount_text, changes, with_totals
from skedge.simulate.cluster import Cluster
from skedge.simulate.explain import explain
from skedge.simulate.explanation import Hint
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod


def hints(nodes: list[NodeBuilder], pods: list[PodBuilder], pod: PodBuilder) -> list[Hint]:
    cluster = Cluster()
    for node in nodes:
        cluster.add_node(node.obj())
    for other in pods:
        cluster.add_pod(other.obj())
    before = state(cluster)
    found = explain(cluster, pod.info())
    assert found.verdict == "Unschedulable", found
    cluster.cache.validate()
    assert state(cluster) == before
    return found.hints


def state(cluster: Cluster) -> Any:
    table = cluster.cache.table
    nodes = {name: msgspec.to_builtins(node) for name in table.row_of if (node := table.node(name)) is not None}
    return nodes, sorted((pod.key, pod.node_name) for pod in cluster.cache.pods())


def told(found: list[Hint]) -> list[str]:
    return [f"{hint.text}: {hint.nodes} {','.join(hint.examples)}" for hint in found]


GPU = "dedicated", "gpu"


def zoned(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label(zone=zone)


@pytest.mark.parametrize(
    ("nodes", "pods", "pod", "expected"),
    [
        pytest.param(
            [make_node("a").taint(*GPU), make_node("b").taint(*GPU).taint("x"), make_node("c").taint("y")],
            [],
            make_pod("p"),
            ["tolerate the taint dedicated=gpu:NoSchedule: 1 a", "tolerate the taint y:NoSchedule: 1 c"],
            id="taints",
        ),
        pytest.param(
            [make_node("a").taint("x").taint("y")],
            [],
            make_pod("p"),
            ["tolerate the taint x:NoSchedule and tolerate the taint y:NoSchedule: 1 a"],
            id="two taints of one node",
        ),
        pytest.param(
            [make_node("a"), make_node("b").capacity(cpu="3")],
            [make_pod("o").req(cpu="2").node("a")],
            make_pod("p").req(cpu="6"),
            ["ask for cpu 3 instead of 6: 1 b"],
            id="cpu",
        ),
        pytest.param(
            [make_node("a").capacity(cpu="2", memory="1Gi"), make_node("b").capacity(cpu="1", memory="8Gi")],
            [],
            make_pod("p").req(cpu="3", memory="2Gi"),
            [
                "ask for cpu 1 instead of 3: 1 b",
            ],
            id="one resource that is enough",
        ),
        pytest.param(
            [make_node("a").capacity(cpu="2", memory="1Gi"), make_node("b").capacity(cpu="1", memory="1Gi")],
            [],
            make_pod("p").req(cpu="4", memory="2Gi"),
            ["ask for cpu 2 instead of 4 and memory 1Gi instead of 2Gi: 1 a"],
            id="all resources at once",
        ),
        pytest.param(
            [make_node("a").resource("example.com/gpu", "4")],
            [make_pod("o").resource("example.com/gpu", "1").node("a")],
            make_pod("p").resource("example.com/gpu", "8"),
            ["ask for example.com/gpu 3 instead of 8: 1 a"],
            id="an extended resource",
        ),
        pytest.param(
            [make_node("a").label(disk="ssd"), make_node("b").label(disk="hdd", cpu="fast")],
            [],
            make_pod("p").node_selector(disk="ssd", cpu="fast"),
            [
                "do without the node selector disk=ssd: 1 b",
                "do without the node selector cpu=fast: 1 a",
                "do without any node selector: 2 a,b",
            ],
            id="node selector",
        ),
        pytest.param(
            [zoned("a", "z1")],
            [],
            make_pod("p").node_affinity_in("zone", ["z2"]),
            ["do without required node affinity: 1 a"],
            id="node affinity",
        ),
        pytest.param(
            [make_node("a")],
            [make_pod("o").host_port(80).node("a")],
            make_pod("p").host_port(80).host_port(81),
            [
                "do without the host port 80: 1 a",
                "free the room of default/o (priority 0) on a: 1 a",
                "add a node like a: 1 a-1",
            ],
            id="host port",
        ),
        pytest.param(
            [zoned("a", "z1"), zoned("b", "z2").capacity(cpu="0")],
            [make_pod("o").label(app="x").node("a")],
            make_pod("p").label(app="x").req(cpu="1").spread("zone", {"app": "x"}),
            [
                "ask for no cpu instead of 1: 1 b",
                "do without the spread constraint over zone (maxSkew 1): 1 a",
                "free the room of default/o (priority 0) on a: 1 a",
            ],
            id="spreading",
        ),
        pytest.param(
            [zoned("a", "z1")],
            [make_pod("o").label(app="x").node("a")],
            make_pod("p").pod_affinity("zone", {"app": "x"}, anti=True).pod_affinity("zone", {"app": "x"}),
            [
                "do without the pod anti-affinity to pods with app=x by zone: 1 a",
            ],
            id="anti-affinity",
        ),
        pytest.param(
            [zoned("a", "z1")],
            [],
            make_pod("p").pod_affinity("zone", {"app": "x"}),
            ["do without the pod affinity to pods with app=x by zone: 1 a"],
            id="affinity",
        ),
        pytest.param(
            [make_node("a").unschedulable(), make_node("b").unschedulable().taint("x")],
            [],
            make_pod("p"),
            ["uncordon node a: 1 a"],
            id="cordoned",
        ),
        pytest.param(
            [make_node("a").capacity(cpu="1")],
            [make_pod("o1").req(cpu="800m").priority(9).node("a"), make_pod("o2").req(cpu="100m").node("a")],
            make_pod("p").req(cpu="1"),
            ["ask for cpu 100m instead of 1: 1 a", "add a node like a: 1 a-1"],
            id="one more node",
        ),
        pytest.param(
            [make_node("a").capacity(pods="2", cpu="1")],
            [make_pod("o1").priority(9).node("a"), make_pod("o2").node("a")],
            make_pod("p"),
            [
                "free the room of default/o2 (priority 0) on a: 1 a",
                "free the room of default/o1 (priority 9) on a: 1 a",
                "add a node like a: 1 a-1",
            ],
            id="too many pods",
        ),
        pytest.param([make_node("a").capacity(pods="0")], [], make_pod("p"), [], id="nothing helps"),
    ],
)
def test_what_is_told(nodes: list[NodeBuilder], pods: list[PodBuilder], pod: PodBuilder, expected: list[str]) -> None:
    assert told(hints(nodes, pods, pod)) == expected


def test_change_is_in_the_apis_terms() -> None:
    found = hints([make_node("a").taint(*GPU)], [], make_pod("p"))
    toleration = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    assert found[0].change == {"add": {"spec.tolerations": toleration}}
    found = hints([make_node("a")], [], make_pod("p").req(cpu="9"))
    assert found[0].change == {"requests": {"cpu": "4"}}


def test_affinity_expressions_are_left_out_one_by_one() -> None:
    pod = make_pod("p").node_affinity_in("disk", ["ssd"])
    required = pod.json["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchExpressions"].append({"key": "gpu", "operator": "Exists"})
    found = hints([make_node("a").label(disk="ssd")], [], pod)
    assert told(found) == [
        "do without the node affinity gpu Exists: 1 a",
        "do without required node affinity: 1 a",
    ]


# --- requests ---------------------------------------------------------------------------------------------------------

Build = Callable[[PodBuilder], Any]


def overhead(pod: PodBuilder) -> None:
    pod.json["spec"]["overhead"] = {"cpu": "500m"}


def init(pod: PodBuilder) -> None:
    pod.json["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "7"}}}]


def sidecar(pod: PodBuilder) -> None:
    container = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    pod.json["spec"]["initContainers"] = [container]


def pod_level(pod: PodBuilder) -> None:
    pod.json["spec"]["resources"] = {"requests": {"cpu": "9"}}


@pytest.mark.parametrize("change", [lambda pod: None, overhead, init, sidecar, pod_level])
@pytest.mark.parametrize("total", [0, 1000, 2500, 4400])
def test_totals(change: Build, total: int) -> None:
    pod = make_pod("p").req(cpu="2").container(cpu="3", memory="1Gi").container()
    change(pod)
    before = pod_requests(pod.obj())
    reduced = with_totals(pod.obj(), {"cpu": total})
    after = pod_requests(reduced)
    floor = 500 if change is overhead else 1000 if change is sidecar and total >= 1000 else 0
    assert after["cpu"] == max(total, floor)
    assert after["memory"] == before["memory"]
    assert pod_requests(pod.obj()) == before


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 3 << 30, "3Gi"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("example.com/x", 1024, "1024"),
    ],
)
def test_amounts(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


# --- random clusters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_hints_hold_and_changes_that_are_not_told_do_not_help(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster()
    for i in range(6):
        node = zoned(f"n{i}", rng.choice("ab")).capacity(cpu=str(rng.randrange(1, 4)))
        if rng.random() < 0.5:
            node.taint(rng.choice("xy"))
        cluster.add_node(node.obj())
        for k in range(rng.randrange(3)):
            cluster.add_pod(make_pod(f"p{i}-{k}").label(app="x").req(cpu="500m").node(f"n{i}").obj())
    pod = make_pod("p").label(app="x").req(cpu=str(rng.randrange(1, 6)))
    pod.node_selector(zone=rng.choice("ab")).spread("zone", {"app": "x"})
    if rng.random() < 0.5:
        pod.pod_affinity("zone", {"app": rng.choice("xy")}, anti=rng.random() < 0.7)
    info = pod.info()
    found = explain(cluster, info)
    if found.fits:
        assert not found.hints
        return
    promised = {hint.text: hint for hint in found.hints}
    for change in changes(copy.deepcopy(info.pod), cluster.cache.table):
        then = explain(cluster, PodInfo(change.pod), hints=False)
        assert bool(then.fits) == (change.text in promised), change.text
        if change.text in promised:
            assert promised[change.text].nodes == then.fits


def test_changes_leave_the_pod_alone() -> None:
    pod = make_pod("p").host_port(1).node_selector(a="b").pod_affinity("zone", {"a": "b"}, anti=True)
    pod.spread("zone", {"a": "b"}).node_affinity_in("a", ["b"])
    decoded = pod.obj()
    cluster = Cluster()
    cluster.add_node(make_node("n").taint("x").obj())
    made = list(changes(decoded, cluster.cache.table))
    assert {each.kind for each in made} == {
        "toleration",
        "hostPort",
        "spread",
        "nodeSelector",
        "nodeAffinity",
        "podAntiAffinity",
    }
    assert msgspec.to_builtins(decoded) == msgspec.to_builtins(msgspec.convert(pod.json, Pod))
