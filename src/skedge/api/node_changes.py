"""What an update of a node changed, as far as it may let rejected pods fit.

A change's value is the word of the reference's action type. Upstream: `pkg/scheduler/framework/events.go`
(`NodeSchedulingPropertiesChange`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from skedge.api.core import Node, ResourceList
from skedge.api.quantity import quantity


class Change(StrEnum):
    """Kinds of update events."""

    NODE_ALLOCATABLE = "UpdateNodeAllocatable"
    NODE_LABEL = "UpdateNodeLabel"
    NODE_TAINT = "UpdateNodeTaint"
    NODE_CONDITION = "UpdateNodeCondition"
    NODE_ANNOTATION = "UpdateNodeAnnotation"
    NODE_DECLARED_FEATURE = "UpdateNodeDeclaredFeature"


def node_changes(old: Node, new: Node, *, declared_features: bool = True) -> tuple[Change, ...]:
    """What changed between two versions of a node, in the reference's order; a change may be named twice, or none be.

    `declared_features`: whether these are looked at (feature gate NodeDeclaredFeatures).
    Raises QuantityError for a node with an unreadable amount.
    """
    found: list[Change] = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        found.append(Change.NODE_TAINT)
    if not _same_amounts(old.status.allocatable, new.status.allocatable):
        found.append(Change.NODE_ALLOCATABLE)
    if _pairs(old.metadata.labels) != _pairs(new.metadata.labels):
        found.append(Change.NODE_LABEL)
    if (old.spec.taints or ()) != (new.spec.taints or ()):
        found.append(Change.NODE_TAINT)
    if _conditions(old) != _conditions(new):
        found.append(Change.NODE_CONDITION)
    if _pairs(old.metadata.annotations) != _pairs(new.metadata.annotations):
        found.append(Change.NODE_ANNOTATION)
    if declared_features and (old.status.declared_features or ()) != (new.status.declared_features or ()):
        found.append(Change.NODE_DECLARED_FEATURE)
    return tuple(found)


def _pairs(pairs: Mapping[str, str] | None) -> Mapping[str, str]:
    return pairs or {}


def _conditions(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions or ()}


def _same_amounts(old: ResourceList | None, new: ResourceList | None) -> bool:
    """Whether the lists are the same as quantities: `1` and `1000m` are."""
    old, new = old or {}, new or {}
    if old == new:
        return True
    return old.keys() == new.keys() and all(quantity(old[name]) == quantity(new[name]) for name in old)
