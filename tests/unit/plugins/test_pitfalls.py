"""Where people get it wrong, from the specification: by number, input and what has to come out.

Here nodes, ports and the framework. Numbers that are missing are tested where they belong: resources (1 to 40) in
`test_node_resources` and `api/test_requests`, preemption and hints in their folders, devices with their plugin.
"""

from __future__ import annotations

from typing import Any

import pytest

from scenes import Scene, expression, named, node, pod, required
from skedge.profiles.search import CycleError
from skedge.testing.builders import PodBuilder, make_node, make_pod

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
OUTSIDE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
PORT = "node(s) didn't have free ports for the requested pod ports"
CORDON = "node.kubernetes.io/unschedulable"


def tolerating(**fields: str) -> PodBuilder:
    return pod(tolerations=[fields])


SIDECAR = {"name": "i", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}
NODES: dict[str, tuple[Scene, PodBuilder, dict[str, str]]] = {
    "41 Exists without a key tolerates everything": (
        Scene(node().taint(CORDON).taint("x", effect="NoExecute").unschedulable()),
        tolerating(operator="Exists"),
        {"a": ""},
    ),
    "42 Equal without a key compares values": (
        Scene(node("a").taint("k", "x"), node("b").taint("k", "y")),
        tolerating(operator="Equal", value="x"),
        {"a": "", "b": TAINTED},
    ),
    "43 no operator is Equal": (
        Scene(node("a").taint("k", "x"), node("b").taint("k", "y")),
        tolerating(key="k", value="x"),
        {"a": "", "b": TAINTED},
    ),
    "44 Exists passes over the value": (
        Scene(node().taint("k", "y")),
        tolerating(key="k", operator="Exists", value="x"),
        {"a": ""},
    ),
    "45 cordoned": (Scene(node().unschedulable().taint(CORDON)), pod(), {"a": CORDONED}),
    "45 tolerated twice": (
        Scene(node().unschedulable().taint(CORDON)),
        tolerating(key=CORDON, operator="Exists"),
        {"a": ""},
    ),
    "46 effects": (
        Scene(node("a").taint("k", effect="PreferNoSchedule"), node("b").taint("k", effect="NoExecute")),
        pod(),
        {"a": "", "b": TAINTED},
    ),
    "48 comparisons with the gate off": (
        Scene(node().taint("k", "5")),
        tolerating(key="k", operator="Gt", value="3"),
        {"a": TAINTED},
    ),
    "50 seconds": (
        Scene(node().taint("k", effect="NoExecute")),
        pod(tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 0}]),
        {"a": ""},
    ),
    "51 no terms": (Scene(node()), pod(affinity=required()), {"a": AFFINITY}),
    "52 an empty term": (Scene(node()), pod(affinity=required({})), {"a": AFFINITY}),
    "52 the other term decides": (
        Scene(node("a", {"k": "v"}), node("b")),
        pod(affinity=required({}, expression("k", "Exists"))),
        {"a": "", "b": AFFINITY},
    ),
    "53 NotIn": (Scene(node()), pod(affinity=required(expression("k", "NotIn", "v"))), {"a": ""}),
    "53 DoesNotExist": (Scene(node()), pod(affinity=required(expression("k", "DoesNotExist"))), {"a": ""}),
    "54 Gt": (
        Scene(node("a", {"k": "5"}), node("b", {"k": "a"}), node("c"), node("d", {"k": "6"})),
        pod(affinity=required(expression("k", "Gt", "5"))),
        {"a": AFFINITY, "b": AFFINITY, "c": AFFINITY, "d": ""},
    ),
    "55 NotIn of names looks at all": (
        Scene(node("a"), node("b")),
        pod(affinity=required(named("NotIn", "a"))),
        {"a": AFFINITY, "b": ""},
    ),
    "56 union of names": (
        Scene(node("a"), node("b"), node("c")),
        pod(affinity=required(named("In", "a"), named("In", "b"))),
        {"a": "", "b": ""},
    ),
    "57 a term without names looks at all": (
        Scene(node("a"), node("b", {"k": "v"}), node("c")),
        pod(affinity=required(named("In", "a"), expression("k", "Exists"))),
        {"a": "", "b": "", "c": AFFINITY},
    ),
    "58 two names in one term": (
        Scene(node("a"), node("b")),
        pod(affinity=required(named("In", "a", "b"))),
        {"*": "pod affinity terms conflict"},
    ),
    "62 a bad required expression": (
        Scene(node("a", {"k": "v"})),
        pod(affinity=required(expression("k", "Gt", "x"))),
        {"a": AFFINITY},
    ),
    "67 ports of init containers": (
        Scene(node(), pods=[make_pod("q").host_port(80).node("a")]),
        pod(initContainers=[{"name": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]),
        {"a": ""},
    ),
    "67 ports of sidecars": (
        Scene(node(), pods=[make_pod("q").host_port(80).node("a")]),
        pod(
            initContainers=[{"name": "i", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}]
        ),
        {"a": PORT},
    ),
    "66 only hostPort is looked at": (
        Scene(node(), pods=[make_pod("q").host_port(80).node("a")]),
        pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 80}]}]),
        {"a": ""},
    ),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes(case: str) -> None:
    scene, asking, want = NODES[case]
    assert scene.says(asking) == want


@pytest.mark.parametrize(
    ("used", "wanted", "taken"),
    [
        pytest.param(("", "TCP"), ("127.0.0.1", "TCP"), True, id="63 wildcard used"),
        pytest.param(("", "TCP"), ("::", "TCP"), True, id="64 :: wanted"),
        pytest.param(("::", "TCP"), ("", "TCP"), True, id="64 :: used"),
        pytest.param(("127.0.0.1", "TCP"), ("::", "TCP"), False, id="64 :: is no wildcard"),
        pytest.param(("::", "TCP"), ("127.0.0.1", "TCP"), False, id="64 nor the other way round"),
        pytest.param(("", "TCP"), ("", "UDP"), False, id="65 protocols"),
    ],
)
def test_ports(used: tuple[str, str], wanted: tuple[str, str], taken: bool) -> None:
    scene = Scene(node(), pods=[make_pod("q").host_port(53, used[1], used[0]).node("a")])
    assert scene.says(make_pod("p").host_port(53, wanted[1], wanted[0])) == {"a": PORT if taken else ""}


def test_pitfall_59_pinned_to_a_ghost() -> None:
    search = Scene(node("a"), node("b"), node("c")).search(pod(affinity=required(named("In", "ghost"))))
    assert search.diagnosis.message(post_filter=False) == f"0/3 nodes are available: 3 {OUTSIDE}."
    assert search.diagnosis.unschedulable_plugins == {"NodeAffinity"}


def preferred(*terms: tuple[int, Any]) -> dict[str, Any]:
    listed = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": listed}}


TWO = (node("a", {"k": "v"}), node("b"))
SCORES: dict[str, tuple[Scene, PodBuilder, str, list[int]]] = {
    "47 NoSchedule tolerations do not help": (
        Scene(node("a").taint("k", effect="PreferNoSchedule"), node("b")),
        tolerating(key="k", operator="Exists", effect="NoSchedule"),
        "TaintToleration",
        [0, 300],
    ),
    "49 all without": (Scene(node("a"), node("b")), pod(), "TaintToleration", [300, 300]),
    "60 weight 0": (Scene(*TWO), pod(affinity=preferred((0, expression("k", "Exists")))), "NodeAffinity", [0, 0]),
    "60 an empty preference": (Scene(*TWO), pod(affinity=preferred((5, {}))), "NodeAffinity", [0, 0]),
    "61 none matches": (Scene(*TWO), pod(affinity=preferred((5, expression("x", "Exists")))), "NodeAffinity", [0, 0]),
    "122 volumes do not score": (Scene(*TWO), pod(), "VolumeBinding", []),
}


@pytest.mark.parametrize("case", SCORES)
def test_scores(case: str) -> None:
    scene, asking, plugin, want = SCORES[case]
    assert scene.scores(asking, plugin) == want


def test_pitfall_62_a_bad_preferred_expression_ends_the_cycle() -> None:
    asking = pod(affinity=preferred((1, expression("k", "Gt", "x"))))
    with pytest.raises(CycleError, match='running PreScore plugin "NodeAffinity"'):
        Scene(*TWO).search(asking).scores()
    assert Scene(TWO[0]).says(asking) == {"a": ""}  # 153: a single node is not scored


def test_pitfall_151_the_first_failing_filter_hides_the_others() -> None:
    assert Scene(node("a").taint("k").unschedulable()).says(pod(nodeSelector={"x": "y"})) == {"a": CORDONED}


def test_pitfall_152_entries_are_sorted_as_text() -> None:
    scene = Scene(*(node(f"n{i}").taint("k") for i in range(10)), node("x"), node("y"))
    message = scene.search(pod(nodeSelector={"x": "y"})).diagnosis.message(post_filter=False)
    assert message == f"0/12 nodes are available: 10 {TAINTED}, 2 {AFFINITY}."


def test_pitfall_135_promised_room_counts_for_those_below() -> None:
    nominated = pod(priority=5, containers=[{"name": "c", "resources": {"requests": {"cpu": "4"}}}]).nominated("a")
    scene = Scene(make_node("a").capacity(cpu="4"), pods=[nominated])

    def asking(priority: int) -> PodBuilder:
        return pod(priority=priority, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])

    assert scene.says(asking(5)) == {"a": "Insufficient cpu"}
    assert scene.says(asking(6)) == {"a": ""}
