"""Changes of pods and nodes as events."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.api.core import (
    Container,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
)
from skedge.api.meta import ObjectMeta
from skedge.framework import events
from skedge.framework.events import ActionType
from skedge.queue.object_events import node_update_events, pod_update_events
from skedge.snapshot.pods import PlacedPod, PodInfo
from unit.queue.support import pod


def asking(**requests: str) -> PodInfo:
    resources = ResourceRequirements(requests={name.replace("_", "-"): text for name, text in requests.items()})
    return PodInfo(Pod(ObjectMeta(name="p"), PodSpec(containers=(Container(name="c", resources=resources),))))


def claiming(*names: str) -> PodInfo:
    claims = tuple(PodResourceClaimStatus(name=name, resource_claim_name=name) for name in names)
    return PodInfo(Pod(ObjectMeta(name="p"), PodSpec(), PodStatus(resource_claim_statuses=claims or None)))


POD_ROWS = [
    ("nothing", pod(), pod(), "UPDATE"),
    ("annotation", pod(), pod(annotations={"a": "b"}), "UPDATE"),
    ("label", pod(), pod(labels={"a": "b"}), "UPDATE_POD_LABEL"),
    ("last gate", pod(gates=["a"]), pod(), "UPDATE_POD_SCHEDULING_GATES_ELIMINATED"),
    ("one gate of two", pod(gates=["a", "b"]), pod(gates=["a"]), "UPDATE"),
    ("gate added", pod(), pod(gates=["a"]), "UPDATE"),
    ("toleration added", pod(), pod(tolerations=1), "UPDATE_POD_TOLERATION"),
    ("less cpu", asking(cpu="2"), asking(cpu="1999m"), "UPDATE_POD_SCALE_DOWN"),
    ("no cpu any more", asking(cpu="1", memory="1"), asking(memory="1"), "UPDATE_POD_SCALE_DOWN"),
    ("more cpu", asking(cpu="1"), asking(cpu="2", memory="1"), "UPDATE"),
    ("same cpu in other words", asking(cpu="1"), asking(cpu="1000m"), "UPDATE"),
    ("claim made", claiming(), claiming("a"), "UPDATE_POD_GENERATED_RESOURCE_CLAIM"),
    (
        "several",
        pod(gates=["a"]),
        pod(labels={"a": "b"}, tolerations=2),
        "UPDATE_POD_LABEL UPDATE_POD_SCHEDULING_GATES_ELIMINATED UPDATE_POD_TOLERATION",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in POD_ROWS], ids=[row[0] for row in POD_ROWS])
def test_pod_changes(old: PodInfo, new: PodInfo, expected: str) -> None:
    actions = [ActionType[word] for word in expected.split()]
    assert pod_update_events(old, new) == [(events.UNSCHEDULABLE_POD, action, "") for action in actions]
    if "CLAIM" not in expected:
        found = pod_update_events(PlacedPod(old, "n1"), PlacedPod(new, "n1"))
        assert found == [(events.ASSIGNED_POD, action, "") for action in actions]


def node(labels: dict[str, str] | None = None, cordoned: bool = False, taints: Any = (), **status: Any) -> Node:
    return Node(ObjectMeta(name="n", labels=labels), NodeSpec(cordoned, taints), NodeStatus(**status))


TAINTED = (Taint("k", "v", "NoSchedule"),)
NODE_ROWS = [
    ("nothing", node(), node(), ""),
    ("cordoned", node(), node(cordoned=True), ""),
    ("un-cordoned", node(cordoned=True), node(), "TAINT"),
    ("un-cordoned and taints gone", node(cordoned=True, taints=TAINTED), node(), "TAINT TAINT"),
    ("allocatable", node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "2"}), "ALLOCATABLE"),
    ("allocatable in other words", node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1000m"}), ""),
    ("label", node(), node({"a": "b"}), "LABEL"),
    ("no labels, empty labels", node({}), node(None), ""),
    ("taint", node(), node(taints=TAINTED), "TAINT"),
    (
        "condition",
        node(conditions=(NodeCondition("Ready", "True"),)),
        node(conditions=(NodeCondition("Ready", "False"),)),
        "CONDITION",
    ),
    ("features", node(), node(declared_features=("f",)), "DECLARED_FEATURE"),
    ("several", node(), node({"a": "b"}, taints=TAINTED, allocatable={"cpu": "1"}), "ALLOCATABLE LABEL TAINT"),
]


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in NODE_ROWS], ids=[row[0] for row in NODE_ROWS])
def test_node_changes(old: Node, new: Node, expected: str) -> None:
    actions = [ActionType[f"UPDATE_NODE_{word}"] for word in expected.split()]
    assert node_update_events(old, new) == [(events.NODE, action, "") for action in actions]


def test_declared_features_behind_a_gate() -> None:
    assert node_update_events(node(), node(declared_features=("f",)), declared_features=False) == []


def test_claims_are_compared_between_pending_pods_only() -> None:
    old, new = claiming(), PlacedPod(claiming("a"), "n1")
    assert pod_update_events(old, new) == [(events.ASSIGNED_POD, ActionType.UPDATE, "")]
