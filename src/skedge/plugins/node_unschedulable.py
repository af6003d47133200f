"""NodeUnschedulable: cordoned nodes take only pods that tolerate it. Upstream: `plugins/nodeunschedulable`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

from skedge import names
from skedge.api.core import Node, Taint, Toleration
from skedge.api.taints import tolerates
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.plugins.helpers.signing import sorted_tolerations
from skedge.snapshot.arith import where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON = "node(s) were unschedulable"
TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    name = names.NODE_UNSCHEDULABLE
    depends = Depends.NODE
    reads = Aspect.TAINTS

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        self._comparison = handle is not None and handle.gates.enabled("TaintTolerationComparisonOperators")

    def fragment(self, pod: PodInfo) -> Hashable:
        return self._tolerated(pod)

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        if self._tolerated(pod):
            return 0
        return where(view.unschedulable, UNRESOLVABLE, 0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON)

    def _tolerated(self, pod: PodInfo) -> bool:
        return _tolerated(pod.tolerations, self._comparison)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(
                ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self.after_node_change
            ),
            ClusterEventWithHint(
                ClusterEvent(events.POD, ActionType.UPDATE_POD_TOLERATION), self.after_pod_toleration_change
            ),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        became_schedulable = (old is None or old.spec.unschedulable) and not new.spec.unschedulable
        return QueueingHint(became_schedulable)

    def after_pod_toleration_change(self, pod: PodInfo, old: Any, new: PodInfo) -> QueueingHint:
        return QueueingHint(new.uid == pod.uid and self._tolerated(new))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.Tolerations": sorted_tolerations(pod)}, SUCCESS


@lru_cache(maxsize=1024)
def _tolerated(tolerations: tuple[Toleration, ...], comparison: bool) -> bool:
    return any(tolerates(each, TAINT, comparison=comparison) for each in tolerations)
