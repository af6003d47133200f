"""NodeDeclaredFeatures: a pod that needs a feature goes where the kubelet declares it.

Upstream: `plugins/nodedeclaredfeatures`, `component-helpers/nodedeclaredfeatures`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from skedge import names
from skedge.api.core import Node
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import UNRESOLVABLE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_FILTERED, pre_filtered
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import Row, View

REASON = "node(s) didn't match Pod's required features"
RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


def required_features(pod: PodInfo) -> tuple[str, ...]:
    """The features a node must declare to run the pod, sorted."""
    rules = [rule for container in pod.containers() for rule in container.restart_policy_rules or ()]
    found = [RESTART_ALL_CONTAINERS] if "RestartAllContainers" in [rule.action for rule in rules] else []
    if pod.pod.spec.host_network and pod.pod.spec.host_users is False:
        found.append(USER_NAMESPACES_HOST_NETWORK)
    return tuple(found)


class NodeDeclaredFeatures:
    name = names.NODE_DECLARED_FEATURES
    depends = Depends.NODE
    reads = Aspect.NODE

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        self._enabled = handle is None or handle.gates.enabled("NodeDeclaredFeatures")

    def fragment(self, pod: PodInfo) -> Hashable:
        return required_features(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        required = required_features(pod)
        if not self._enabled or not required:
            return None, SKIP
        state.write(PRE_FILTERED + self.name, frozenset(required))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        required: frozenset[str] = pre_filtered(state, self.name)
        codes = [UNRESOLVABLE if lacks(view.table.nodes[row], required) else 0 for row in view.rows]
        return codes[0] if isinstance(view, Row) else np.array(codes, np.int64)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._enabled:
            return ()
        return (
            ClusterEventWithHint(
                ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE),
                self.after_node_change,
            ),
            ClusterEventWithHint(ClusterEvent(events.POD, ActionType.UPDATE), self.after_pod_change),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        before = None if old is None else old.status.declared_features or ()
        return QueueingHint(before != (new.status.declared_features or ()))

    def after_pod_change(self, pod: PodInfo, old: PodInfo | PlacedPod | None, new: PodInfo | PlacedPod) -> QueueingHint:
        if new.uid != pod.uid or not isinstance(new, PodInfo) or not isinstance(old, PodInfo):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint(required_features(old) != required_features(new))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.RequiredFeatures()": list(required_features(pod))}, SUCCESS


def lacks(node: Node | None, required: frozenset[str]) -> bool:
    return node is None or not required.issubset(node.status.declared_features or ())
