"""What an update changed, as far as it may let rejected pods fit.

Pure functions of the old and the new object; a change's value is the word of the reference's action type. Updates of
other kinds are always the generic `UPDATE`.

Upstream: `pkg/scheduler/framework/events.go` (`PodSchedulingPropertiesChange`, `NodeSchedulingPropertiesChange`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from skedge.api.core import Node, Pod, ResourceList
from skedge.api.quantity import quantity
from skedge.api.requests import requests_fell


class Change(StrEnum):
    """Kinds of update events."""

    NODE_ALLOCATABLE = "UpdateNodeAllocatable"
    NODE_LABEL = "UpdateNodeLabel"
    NODE_TAINT = "UpdateNodeTaint"
    NODE_CONDITION = "UpdateNodeCondition"
    NODE_ANNOTATION = "UpdateNodeAnnotation"
    NODE_DECLARED_FEATURE = "UpdateNodeDeclaredFeature"
    POD_LABEL = "UpdatePodLabel"
    POD_SCALE_DOWN = "UpdatePodScaleDown"
    POD_TOLERATION = "UpdatePodToleration"
    POD_SCHEDULING_GATES_ELIMINATED = "UpdatePodSchedulingGatesEliminated"
    POD_GENERATED_RESOURCE_CLAIM = "UpdatePodGeneratedResourceClaim"
    UPDATE = "Update"


def pod_changes(old: Pod, new: Pod, *, dynamic_resources: bool = True) -> tuple[Change, ...]:
    """What changed between two versions of a pod, in the reference's order; `UPDATE` alone when nothing of note did.

    `dynamic_resources`: whether claims made for the pod are looked at (feature gate DynamicResourceAllocation).
    Raises QuantityError for a pod with an unreadable amount.
    """
    found: list[Change] = []
    if _pairs(old.metadata.labels) != _pairs(new.metadata.labels):
        found.append(Change.POD_LABEL)
    if requests_fell(old, new):
        found.append(Change.POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        found.append(Change.POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        found.append(Change.POD_TOLERATION)
    if dynamic_resources and _claims(old) != _claims(new):
        found.append(Change.POD_GENERATED_RESOURCE_CLAIM)
    return tuple(found) or (Change.UPDATE,)


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


def _claims(pod: Pod) -> tuple[object, object]:
    return pod.status.resource_claim_statuses or (), pod.status.extended_resource_claim_status


def _conditions(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions or ()}


def _same_amounts(old: ResourceList | None, new: ResourceList | None) -> bool:
    """Whether the lists are the same as quantities: `1` and `1000m` are."""
    old, new = old or {}, new or {}
    if old == new:
        return True
    return old.keys() == new.keys() and all(quantity(old[name]) == quantity(new[name]) for name in old)
