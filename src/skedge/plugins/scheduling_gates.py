"""SchedulingGates: a pod with gates does not enter the active queue. Upstream: `plugins/schedulinggates`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skedge import names
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.pods import PodInfo


class SchedulingGates:
    name = names.SCHEDULING_GATES

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass

    def pre_enqueue(self, pod: PodInfo) -> Status:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        listed = " ".join(gate.name for gate in gates)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"waiting for scheduling gates: [{listed}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        event = ClusterEvent(events.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (ClusterEventWithHint(event, self.after_gates_eliminated),)

    def after_gates_eliminated(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        return QueueingHint(new.uid == pod.uid)
