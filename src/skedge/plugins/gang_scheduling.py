"""GangScheduling: enough pods of a gang start together, or none. Upstream: `plugins/gangscheduling`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skedge import names
from skedge.api.scheduling import PodGroup
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.framework.workloads import PodGroupState
from skedge.snapshot.pods import PlacedPod, PodInfo

NOT_APPEARED: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"
PERMIT_SECONDS: Final = 5 * 60.0


def group_not_appeared(name: str) -> str:
    return f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'


def no_state(pod: PodInfo) -> str:
    return f"pod group state not found for pod group {pod.namespace}/{pod.group}"


class GangScheduling:
    """A gang's pods wait outside the queue until enough are there, and at Permit until enough have a node."""

    name = names.GANG_SCHEDULING

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle
        self._groups = handle.listers.pod_groups

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if pod.group is None:
            return SUCCESS
        group: PodGroup | None = self._groups.get(pod.group, pod.namespace)
        if group is None:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, group_not_appeared(pod.group))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        state = self._state(pod)
        if state is None:
            return Status(Code.ERROR, no_state(pod))
        if len(state) < gang.min_count:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NOT_APPEARED)
        return SUCCESS

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Below `minCount` pods with a node the pod waits, and those without one are looked at again."""
        if pod.group is None:
            return SUCCESS, 0.0
        group: PodGroup | None = self._groups.get(pod.group, pod.namespace)
        if group is None:
            why = f'podgroup.scheduling.k8s.io "{pod.group}" not found'
            return Status(Code.ERROR, f"failed to get podGroup {pod.namespace}/{pod.group}: {why}"), 0.0
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS, 0.0
        members = self._state(pod)
        if members is None:
            return Status(Code.ERROR, no_state(pod)), 0.0
        if members.scheduled < gang.min_count:
            self._handle.activate(list(members.unscheduled.values()))
            return Status(Code.WAIT, NOT_SCHEDULED), PERMIT_SECONDS
        for uid in list(members.assumed):
            self._handle.waiting_pods.allow(uid, self.name)
        return SUCCESS, 0.0

    def _state(self, pod: PodInfo) -> PodGroupState | None:
        found: PodGroupState | None = self._handle.pod_groups.of(pod)
        return found

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, ActionType.ADD), self.after_pod_add),
            ClusterEventWithHint(ClusterEvent(events.POD_GROUP, ActionType.ADD), self.after_group_add),
        )

    def after_pod_add(self, pod: PodInfo, old: Any, new: PodInfo | PlacedPod) -> QueueingHint:
        return QueueingHint(new.namespace == pod.namespace and new.group == pod.group)

    def after_group_add(self, pod: PodInfo, old: Any, new: PodGroup) -> QueueingHint:
        return QueueingHint(new.metadata.namespace == pod.namespace and new.metadata.name == pod.group)
