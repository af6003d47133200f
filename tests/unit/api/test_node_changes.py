"""Which changes of nodes are seen."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from skedge.api.meta import ObjectMeta
from skedge.api.node_changes import Change, node_changes


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
