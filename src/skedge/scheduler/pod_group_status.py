"""The condition PodGroupScheduled. Upstream: `schedule_one_podgroup.go` (updatePodGroupCondition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skedge.api.scheduling import PodGroup
from skedge.framework.ports import PodGone
from skedge.framework.status import Status
from skedge.scheduler.pod_status import timestamp
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"


class PodGroupError(Exception):
    """Why a pod group, or a member because of it, was not scheduled."""


def tell_group(scheduler: Scheduler, member: PodInfo, status: Status) -> None:
    """Patches the condition of a pod's group, unless nothing changes; once True it stays so."""
    port = scheduler.ports.pod_groups
    assert member.group is not None
    group: PodGroup | None = scheduler.group_of(member)
    if group is None or port is None:
        log.error(None, "Error updating pod group: not found", podGroup=f"{member.namespace}/{member.group}")
        return
    patch = group_patch(group, status, scheduler.clock.now())
    if patch is None:
        return

    async def job() -> None:
        try:
            await port.patch_group_status(group, patch)
        except PodGone:
            log.error(None, "Error updating pod group: not found", podGroup=group.key)
        except Exception as error:
            log.error(error, "Error updating pod group", podGroup=group.key)

    scheduler.dispatcher.call(job)


def group_patch(group: PodGroup, status: Status, now: float) -> dict[str, Any] | None:
    """The strategic merge patch that tells of an attempt, or None."""
    if status.ok:
        wanted = {"status": "True", "reason": "Scheduled", "message": ""}
    else:
        reason = "Unschedulable" if status.rejected else "SchedulerError"
        wanted = {"status": "False", "reason": reason, "message": status.message}
    conditions = group.status.conditions or ()
    old = next((each for each in conditions if each.type == POD_GROUP_SCHEDULED), None)
    body: dict[str, Any] = {"type": POD_GROUP_SCHEDULED}
    generation = group.metadata.generation
    if old is None:
        body |= {"lastTransitionTime": timestamp(now), **wanted}
        if generation:
            body["observedGeneration"] = generation
    else:
        if old.status == "True" and not status.ok:
            return None
        changed: dict[str, Any] = {field: value for field, value in wanted.items() if getattr(old, field) != value}
        if not changed:
            return None
        if "status" in changed:
            changed["lastTransitionTime"] = timestamp(now)
        if (old.observed_generation or 0) != (generation or 0):
            changed["observedGeneration"] = generation or None
        body |= changed
    result: dict[str, Any] = {"conditions": [body]}
    if conditions:
        kinds = [each.type for each in conditions] + ([POD_GROUP_SCHEDULED] if old is None else [])
        result["$setElementOrder/conditions"] = [{"type": kind} for kind in kinds]
    return {"status": result}
