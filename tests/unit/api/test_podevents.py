"""Which changes of pods and nodes are seen."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.api.core import (
    Container,
    ContainerStatus,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
)
from skedge.api.meta import ObjectMeta
from skedge.api.podevents import Change, node_changes, pod_changes


def pod(labels: dict[str, str] | None = None, status: PodStatus | None = None, **spec: Any) -> Pod:
    return Pod(ObjectMeta(labels=labels), PodSpec(**spec), status or PodStatus())


def asking(**requests: str) -> Pod:
    amounts = {name.replace("_", "-"): amount for name, amount in requests.items()}
    return pod(containers=(Container("c", resources=ResourceRequirements(amounts)),))


def resized(spec: str, status: str) -> Pod:
    made = asking(cpu=spec)
    made.status = PodStatus(container_statuses=(ContainerStatus("c", ResourceRequirements({"cpu": status})),))
    return made


GATE = (PodSchedulingGate("g"),)
TWO_GATES = (*GATE, PodSchedulingGate("h"))
CLAIM = PodStatus(resource_claim_statuses=(PodResourceClaimStatus("c", "made"),))
EXTENDED = PodStatus(extended_resource_claim_status=PodExtendedResourceClaimStatus())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod(), pod(), (Change.UPDATE,)),
        (pod(None), pod({}), (Change.UPDATE,)),
        (pod({"a": "1"}), pod({"a": "2"}), (Change.POD_LABEL,)),
        (asking(cpu="2"), asking(cpu="1"), (Change.POD_SCALE_DOWN,)),
        (asking(cpu="1"), asking(cpu="2"), (Change.UPDATE,)),
        (asking(cpu="1"), asking(cpu="1000m"), (Change.UPDATE,)),
        (asking(cpu="1", memory="1"), asking(cpu="2"), (Change.POD_SCALE_DOWN,)),
        (asking(memory="1"), asking(memory="0.4"), (Change.POD_SCALE_DOWN,)),
        (asking(memory="0.0002"), asking(memory="0.0001"), (Change.UPDATE,)),
        (resized("1", "2"), resized("1", "1"), (Change.POD_SCALE_DOWN,)),
        (resized("2", "2"), resized("1", "2"), (Change.UPDATE,)),
        (pod(scheduling_gates=GATE), pod(), (Change.POD_SCHEDULING_GATES_ELIMINATED,)),
        (pod(scheduling_gates=TWO_GATES), pod(scheduling_gates=GATE), (Change.UPDATE,)),
        (pod(), pod(tolerations=(Toleration("a"),)), (Change.POD_TOLERATION,)),
        (pod(tolerations=(Toleration("a"),)), pod(tolerations=(Toleration("b"),)), (Change.UPDATE,)),
        (pod(tolerations=None), pod(tolerations=()), (Change.UPDATE,)),
        (pod(), pod(status=CLAIM), (Change.POD_GENERATED_RESOURCE_CLAIM,)),
        (pod(), pod(status=EXTENDED), (Change.POD_GENERATED_RESOURCE_CLAIM,)),
        (
            pod(scheduling_gates=GATE),
            pod({"a": "1"}, tolerations=(Toleration("a"),)),
            (Change.POD_LABEL, Change.POD_SCHEDULING_GATES_ELIMINATED, Change.POD_TOLERATION),
        ),
    ],
)
def test_pods(old: Pod, new: Pod, expected: tuple[Change, ...]) -> None:
    assert pod_changes(old, new) == expected


def test_claims_are_looked_at_behind_their_gate() -> None:
    assert pod_changes(pod(), pod(status=CLAIM), dynamic_resources=False) == (Change.UPDATE,)


def node(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, spec: Any = None, **status: Any
) -> Node:
    return Node(ObjectMeta(labels=labels, annotations=annotations), spec or NodeSpec(), NodeStatus(**status))


CORDONED = NodeSpec(True, (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (node(), node(), ()),
        (node(labels={}, annotations={}), node(), ()),
        (node(), node(spec=NodeSpec(unschedulable=True)), ()),
        (node(spec=NodeSpec(unschedulable=True)), node(), (Change.NODE_TAINT,)),
        (node(spec=CORDONED), node(), (Change.NODE_TAINT, Change.NODE_TAINT)),
        (node(), node(spec=NodeSpec(taints=(Taint("a"),))), (Change.NODE_TAINT,)),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1000m"}), ()),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": 1}), ()),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "2"}), (Change.NODE_ALLOCATABLE,)),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1", "x/y": "0"}), (Change.NODE_ALLOCATABLE,)),
        (node(), node(labels={"a": "1"}), (Change.NODE_LABEL,)),
        (node(), node(annotations={"a": "1"}), (Change.NODE_ANNOTATION,)),
        (node(), node(conditions=(NodeCondition("Ready", "True"),)), (Change.NODE_CONDITION,)),
        (
            node(conditions=(NodeCondition("A", "True"), NodeCondition("B", "True"))),
            node(conditions=(NodeCondition("B", "True"), NodeCondition("A", "True"))),
            (),
        ),
        (node(declared_features=("a",)), node(declared_features=("a", "b")), (Change.NODE_DECLARED_FEATURE,)),
        (node(declared_features=None), node(declared_features=()), ()),
    ],
)
def test_nodes(old: Node, new: Node, expected: tuple[Change, ...]) -> None:
    assert node_changes(old, new) == expected


def test_declared_features_are_looked_at_behind_their_gate() -> None:
    assert node_changes(node(), node(declared_features=("a",)), declared_features=False) == ()
