"""What changed in a pod or a node, as events that plugins listen to. Upstream: `pkg/scheduler/framework/events.go`."""

from __future__ import annotations

from typing import Any, Final

from skedge.api.core import Node
from skedge.api.node_changes import Change, node_changes
from skedge.framework.events import ASSIGNED_POD, NODE, UNSCHEDULABLE_POD, ActionType, ClusterEvent
from skedge.snapshot.pods import PlacedPod, PodInfo

_NODE_EVENTS: Final = {
    change: ClusterEvent(NODE, ActionType[f"UPDATE_{change.name}"])
    for change in Change
    if change.name.startswith("NODE_")
}


def pod_update_events(old: PodInfo | PlacedPod, new: PodInfo | PlacedPod) -> list[ClusterEvent]:
    """At least one event, in the reference's order; the generic Update when nothing it knows by name has changed."""
    actions = []
    if old.labels != new.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if _scaled_down(old, new):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if _gated(old) and not _gated(new):
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.tolerations) != len(new.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if isinstance(old, PodInfo) and isinstance(new, PodInfo) and _claims(old) != _claims(new):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = ASSIGNED_POD if new.node_name else UNSCHEDULABLE_POD
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE]]


def _scaled_down(old: PodInfo | PlacedPod, new: PodInfo | PlacedPod) -> bool:
    """A resource is asked for less than before, or no more; what a resize in place reports counts."""
    if old.node_requests == new.node_requests:
        return False
    wanted = dict(new.node_requests)
    return any(name not in wanted or wanted[name] < amount for name, amount in old.node_requests)


def _gated(pod: PodInfo | PlacedPod) -> bool:
    return pod.gated if isinstance(pod, PlacedPod) else bool(pod.pod.spec.scheduling_gates)


def _claims(pod: PodInfo) -> Any:
    """Claims made for the pod. (A placed pod's record does not keep them: nobody waits for those of a bound pod.)"""
    status = pod.pod.status
    return status.resource_claim_statuses or (), status.extended_resource_claim_status


def node_update_events(old: Node, new: Node, *, declared_features: bool = True) -> list[ClusterEvent]:
    """The events in the reference's order, none when nothing of interest changed (a heartbeat, an image).

    `declared_features`: the gate NodeDeclaredFeatures.
    """
    return [_NODE_EVENTS[change] for change in node_changes(old, new, declared_features=declared_features)]
