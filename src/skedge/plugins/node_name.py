"""NodeName: a pod that names its node fits that node only. Upstream: `plugins/nodename`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skedge import names
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from skedge.framework.plugin import UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.arith import where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON = "node(s) didn't match the requested node name"


class NodeName:
    name = names.NODE_NAME
    depends = Depends.NODE
    reads = Aspect.NODE

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass

    def fragment(self, pod: PodInfo) -> str:
        return pod.node_name

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        wanted = pod.node_name
        return where(view.named((wanted,)), 0, UNRESOLVABLE) if wanted else view.full(0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD)),)

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.NodeName": pod.node_name}, SUCCESS
