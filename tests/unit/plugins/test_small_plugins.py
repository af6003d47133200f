"""PrioritySort, SchedulingGates, NodeUnschedulable, NodeName, TaintToleration, NodeAffinity: facts and hints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scenes import Scene, expression, node, pod, required
from skedge.api.core import Node
from skedge.config.gates import FeatureGates
from skedge.framework.events import QueueingHint
from skedge.framework.normalize import FORWARD, REVERSE
from skedge.framework.status import Code
from skedge.plugins.node_affinity import NodeAffinity
from skedge.plugins.node_name import NodeName
from skedge.plugins.node_unschedulable import NodeUnschedulable
from skedge.plugins.priority_sort import PrioritySort
from skedge.plugins.scheduling_gates import SchedulingGates
from skedge.plugins.taint_toleration import TaintToleration
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
PREFER = "PreferNoSchedule"


@pytest.mark.parametrize(
    ("scores", "forward", "reverse"),
    [
        ([1, 2, 3, 4], [25, 50, 75, 100], [75, 50, 25, 0]),
        ([1000, 10, 20, 30], [100, 1, 2, 3], [0, 99, 98, 97]),
        ([1000, 1, 1, 1], [100, 0, 0, 0], [0, 100, 100, 100]),
        ([1, 1, 1, 1], [100] * 4, [0] * 4),
        ([0, 0, 0, 0], [0] * 4, [100] * 4),
        ([0, 1, 1, 1], [0, 100, 100, 100], [100, 0, 0, 0]),
    ],
)
def test_default_normalizing(scores: list[int], forward: list[int], reverse: list[int]) -> None:
    raw = np.array(scores, np.int64)
    assert FORWARD.apply(raw, FORWARD.bounds(raw)).tolist() == forward
    assert REVERSE.apply(raw, REVERSE.bounds(raw)).tolist() == reverse


def test_priority_sort() -> None:
    info = make_pod("p").info()
    keys = [PrioritySort().sort_key(priority, when, info) for priority, when in ((5, 9.0), (5, 10.0), (0, 1.0))]
    assert keys == sorted(keys)
    assert keys[0] < keys[1] < keys[2]


@pytest.mark.parametrize(("gates", "words"), [((), ""), (("g1", "g2"), "waiting for scheduling gates: [g1 g2]")])
def test_scheduling_gates(gates: Sequence[str], words: str) -> None:
    status = SchedulingGates().pre_enqueue((make_pod("p").gates(*gates) if gates else make_pod("p")).info())
    assert status.message == words
    assert status.code is (Code.UNSCHEDULABLE_AND_UNRESOLVABLE if gates else Code.SUCCESS)


def hint_of(plugin: Any, resource: str, *objects: Any) -> QueueingHint:
    entry = next(each for each in plugin.events_to_register() if each.event.resource == resource)
    return QUEUE if entry.hint is None else QueueingHint(entry.hint(*objects))


def test_hint_of_gates() -> None:
    mine, other = make_pod("p").uid("1").info(), make_pod("q").uid("2").info()
    assert hint_of(SchedulingGates(), "Pod", mine, mine, mine) is QUEUE
    assert hint_of(SchedulingGates(), "Pod", mine, other, other) is SKIP


def test_node_name() -> None:
    scene = Scene(node("a"), node("b"))
    asking = pod()
    asking.json["spec"]["nodeName"] = "b"
    assert scene.says(asking) == {"a": "node(s) didn't match the requested node name", "b": ""}
    assert hint_of(NodeName(), "Node", asking.info(), None, node("c").obj()) is QUEUE


# --- cordons and taints -----------------------------------------------------------------------------------------------

FREE, CORDONED = node("a"), node("a").unschedulable()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, FREE, QUEUE),
        (None, CORDONED, SKIP),
        (CORDONED, FREE, QUEUE),
        (FREE, CORDONED, SKIP),
        (FREE, node("a").taint("k"), SKIP),
    ],
)
def test_hints_of_cordons(old: NodeBuilder | None, new: NodeBuilder, hint: QueueingHint) -> None:
    assert hint_of(NodeUnschedulable(), "Node", pod().info(), old and old.obj(), new.obj()) is hint


@pytest.mark.parametrize(
    ("toleration", "own", "hint"),
    [
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True, QUEUE),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, False, SKIP),
        ({"key": "k", "operator": "Exists"}, True, SKIP),
    ],
)
def test_hints_of_new_tolerations(toleration: dict[str, str], own: bool, hint: QueueingHint) -> None:
    mine = make_pod("p").uid("1")
    changed = pod(tolerations=[toleration]).uid("1" if own else "2")
    assert hint_of(NodeUnschedulable(), "Pod", mine.info(), mine.info(), changed.info()) is hint
    assert hint_of(TaintToleration(), "Pod", mine.info(), mine.info(), changed.info()) is (QUEUE if own else SKIP)


TAINTED = node("a").taint("k")


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, FREE, QUEUE),
        (None, TAINTED, SKIP),
        (TAINTED, FREE, QUEUE),
        (TAINTED, node("a").taint("x"), SKIP),
        (FREE, node("a").taint("k", effect=PREFER), SKIP),  # was fine already
        (TAINTED, node("a").taint("k", effect=PREFER), QUEUE),
    ],
)
def test_hints_of_taints(old: NodeBuilder | None, new: NodeBuilder, hint: QueueingHint) -> None:
    assert hint_of(TaintToleration(), "Node", pod().info(), old and old.obj(), new.obj()) is hint


def disliked(name: str, *taints: tuple[str, str], effect: str = PREFER) -> NodeBuilder:
    made = node(name)
    for key, value in taints:
        made = made.taint(key, value, effect)
    return made


CPU, DISK = ("cpu-type", "arm64"), ("disk-type", "ssd")


def tolerating(*taints: tuple[str, str], effect: str = PREFER) -> PodBuilder:
    return pod(tolerations=[{"key": k, "operator": "Equal", "value": v, "effect": effect} for k, v in taints])


@pytest.mark.parametrize(
    ("asking", "nodes", "scores"),
    [
        (tolerating(("foo", "bar")), [disliked("a", ("foo", "bar")), disliked("b", ("foo", "blah"))], [100, 0]),
        (tolerating(CPU, DISK), [node("a"), disliked("b", CPU), disliked("c", CPU, DISK)], [100, 100, 100]),
        (tolerating(("foo", "x")), [node("a"), disliked("b", CPU), disliked("c", CPU, DISK)], [100, 50, 0]),
        (
            tolerating(CPU, DISK, effect="NoSchedule"),
            [node("a"), disliked("b", CPU, effect="NoSchedule"), disliked("c", CPU, DISK)],
            [100, 100, 0],
        ),
        (pod(), [node("a"), disliked("b", CPU)], [100, 0]),
    ],
)
def test_scores_of_taints(asking: PodBuilder, nodes: list[NodeBuilder], scores: list[int]) -> None:
    assert Scene(*nodes).scores(asking, "TaintToleration") == [3 * score for score in scores]


# --- node affinity ----------------------------------------------------------------------------------------------------


def preferring(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    listed = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": listed}


def together(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": [each for term in terms for each in term["matchExpressions"]]}


IS_BAR, HAS_KEY, HAS_AZ = expression("foo", "In", "bar"), expression("key", "Exists"), expression("az", "Exists")
L1, L2, L3 = {"foo": "bar"}, {"key": "v"}, {"foo": "bar", "key": "v", "az": "z"}


def with_added(added: dict[str, Any] | None, *nodes: NodeBuilder) -> Scene:
    scene = Scene()
    if added is not None:
        profile = {
            "schedulerName": "default-scheduler",
            "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}],
        }
        api = "kubescheduler.config.k8s.io/v1"
        scene.cluster = Cluster({"apiVersion": api, "kind": "KubeSchedulerConfiguration", "profiles": [profile]})
    for each in nodes:
        scene.cluster.cache.add_node(each.obj())
    return scene


@pytest.mark.parametrize(
    ("own", "added", "labels", "scores"),
    [
        (preferring((2, IS_BAR)), None, [L1, {}, L2], [100, 0, 0]),
        (
            preferring((2, IS_BAR), (4, HAS_KEY), (5, together(IS_BAR, HAS_KEY, HAS_AZ))),
            None,
            [L1, L3, L2],
            [18, 100, 36],
        ),
        (preferring((2, IS_BAR)), None, [{}, L2], [0, 0]),
        (None, preferring((2, IS_BAR)), [L1, L2], [100, 0]),
        (preferring((2, IS_BAR)), preferring((3, HAS_KEY)), [L1, L2, {**L1, **L2}], [40, 60, 100]),
    ],
)
def test_scores_of_affinity(own: Any, added: Any, labels: list[dict[str, str]], scores: list[int]) -> None:
    scene = with_added(added, *(node(f"n{i}", each) for i, each in enumerate(labels)))
    asking = pod(affinity={"nodeAffinity": own}) if own else pod()
    assert scene.scores(asking, "NodeAffinity") == [2 * score for score in scores]


def test_enforced_affinity_has_words_of_its_own() -> None:
    added = required(IS_BAR)["nodeAffinity"]
    scene = with_added(added, node("a", L1), node("b", L2))
    assert scene.says(pod(nodeSelector={"key": "v"})) == {
        "a": "node(s) didn't match Pod's node affinity/selector",
        "b": "node(s) didn't match scheduler-enforced node affinity",
    }


@pytest.mark.parametrize(
    ("added", "old", "new", "hint"),
    [
        (None, None, L1, QUEUE),
        (None, None, L2, SKIP),
        (None, L2, L1, QUEUE),
        (None, L1, L3, SKIP),  # matched already
        (None, L1, L2, SKIP),
        (HAS_KEY, None, L1, SKIP),
        (HAS_KEY, None, L3, QUEUE),
        (HAS_KEY, L1, L3, SKIP),  # what the pod asks for was there before
    ],
)
def test_hints_of_affinity(added: Any, old: Any, new: Any, hint: QueueingHint) -> None:
    scene = with_added(required(added)["nodeAffinity"] if added else None)
    plugin = next(p for p in scene.cluster.profiles["default-scheduler"].plugins if isinstance(p, NodeAffinity))
    before: Node | None = None if old is None else node("n", old).obj()
    assert hint_of(plugin, "Node", pod(affinity=required(IS_BAR)).info(), before, node("n", new).obj()) is hint


@pytest.mark.parametrize(
    ("operator", "limit", "taints", "scores"),
    [("Gt", "950", ("800", "999"), [0, 100]), ("Lt", "800", ("950", "700"), [0, 100])],
)
def test_comparisons_where_the_gate_is_on(
    operator: str, limit: str, taints: tuple[str, str], scores: list[int]
) -> None:
    gates = FeatureGates(TaintTolerationComparisonOperators=True)
    cluster = Cluster(gates=gates)
    for name, value in zip("ab", taints, strict=True):
        cluster.cache.add_node(make_node(name).taint("sla", value, PREFER).obj())
    scene = Scene()
    scene.cluster = cluster
    tolerations = [{"key": "sla", "operator": operator, "value": limit, "effect": PREFER}]
    assert scene.scores(pod(tolerations=tolerations), "TaintToleration") == [3 * s for s in scores]
