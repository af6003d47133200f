"""NodePorts: host ports must be free on the node. Upstream: `plugins/nodeports`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from skedge import names
from skedge.api.ports import any_collide
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_FILTERED, pre_filtered
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import View

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    name = names.NODE_PORTS
    depends = Depends.NODE
    reads = Aspect.PODS

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.ports

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        if not pod.ports:
            return None, SKIP
        state.write(PRE_FILTERED + self.name, pod.ports)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        return view.ports_taken(pre_filtered(state, self.name))

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE, REASON)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, ActionType.DELETE), self.after_pod_delete),
            ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD)),
        )

    def after_pod_delete(self, pod: PodInfo, old: PodInfo | PlacedPod, new: Any) -> QueueingHint:
        had_room = bool(old.node_name or old.nominated_node_name)
        return QueueingHint(had_room and any_collide(pod.ports, old.ports))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        numbers = {p.host_port for c in pod.containers() for p in c.ports or () if p.host_port > 0}
        return {"v1.Pod.Spec.HostPorts()": sorted(numbers)}, SUCCESS
