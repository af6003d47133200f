"""Room for a whole pod group by evicting others. Upstream: `framework/preemption/podgrouppreemption.go`.

All units of lower priority go; if the group then fits, they come back one by one, those that would break a budget
first, then by importance, and one with which the group still fits stays. The group is tried with the same code as ever,
on the live cache, from which victims are taken off meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from skedge import names
from skedge.api.scheduling import PodGroup
from skedge.framework.status import Code, Status
from skedge.preemption.evaluator import NEVER
from skedge.preemption.workloads import NO_VICTIMS, Unit, by_importance, split_by_budgets, units
from skedge.scheduler.pod_group_status import PodGroupError
from skedge.scheduler.preemption_executor import PreemptionExecutor
from skedge.scheduler.scheduling_cycle import Scope
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.stores.store import Store

if TYPE_CHECKING:
    from skedge.api.policy import PodDisruptionBudget
    from skedge.scheduler.pod_group_verdict import Verdict
    from skedge.scheduler.pod_groups import GroupCycle
    from skedge.scheduler.scheduler import Scheduler

NOT_REGISTERED: Final = "default preemption plugin is not registered, workload aware preemption is disabled"
CONSTRAINED: Final = "workload aware preemption is not supported for pod groups with scheduling constraints"


class WorkloadPreemption:
    """What a scheduler has behind the gate WorkloadAwarePreemption."""

    def __init__(self, scheduler: Scheduler, budgets: Store[PodDisruptionBudget], executor: PreemptionExecutor) -> None:
        self._scheduler = scheduler
        self._budgets = budgets
        self._executor = executor

    async def help(self, cycle: GroupCycle, verdict: Verdict, scope: Scope) -> None:
        """Looks for victims for a group that does not fit, and notes in the verdict what came of it."""
        status = await self._preempt(cycle, scope)
        if status.ok:
            verdict.waiting = True
        elif status.code is Code.ERROR:
            verdict.status = status
        else:
            old = verdict.status
            verdict.status = Status(old.code, *old.reasons, *status.all_reasons(), error=old.error)

    async def _preempt(self, cycle: GroupCycle, scope: Scope) -> Status:
        scheduler = self._scheduler
        if not any(plugin.name == names.DEFAULT_PREEMPTION for plugin in cycle.profile.post_filter):
            return Status(Code.UNSCHEDULABLE, NOT_REGISTERED)
        member = cycle.members[0].pod
        group = scheduler.group_of(member)
        if group is None:
            why = f'podgroup.scheduling.k8s.io "{member.group}" not found'
            return Status.from_error(PodGroupError(f"failed to get pod group object: {why}"))
        if group.spec.scheduling_constraints is not None:
            return Status(Code.UNSCHEDULABLE, CONSTRAINED)
        pods = [queued.pod for queued in cycle.members]
        if any(pod.pod.spec.preemption_policy == "Never" for pod in pods):
            return Status(Code.UNSCHEDULABLE, NEVER)
        priority = group.spec.priority or 0
        lower = [unit for unit in units(self._snapshot(), self._group_of) if unit.priority < priority]
        if not lower:
            return NO_VICTIMS
        found = await self._victims(cycle, scope, by_importance(lower))
        if isinstance(found, Status):
            return found
        victims = [pod for unit in by_importance(found) for pod in unit.pods]
        self._executor.start_group(group, pods, priority, victims, names.DEFAULT_PREEMPTION)
        return Status()

    def _snapshot(self) -> list[PlacedPod]:
        table = self._scheduler.cache.table
        return [pod for row in range(table.size) if table.exists[row] for pod in table.pods[row].values()]

    def _group_of(self, pod: PlacedPod | PodInfo) -> PodGroup | None:
        return self._scheduler.group_of(pod)

    async def _victims(self, cycle: GroupCycle, scope: Scope, lower: Sequence[Unit]) -> list[Unit] | Status:
        """The units that have to go, or why that does not help."""
        cache = self._scheduler.cache
        scope = scope._replace(post_filter=False)
        away = {id(unit): unit for unit in lower}
        for unit in lower:
            cache.take_off(unit.pods)
        try:
            verdict = await cycle.attempt(scope)
            if not verdict.status.ok:
                return verdict.status
            violating, others = split_by_budgets(lower, self._budgets)
            for unit in (*violating, *others):
                cache.put_back(unit.pods)
                if (await cycle.attempt(scope)).status.ok:
                    del away[id(unit)]
                else:
                    cache.take_off(unit.pods)
            return list(away.values())
        finally:
            for unit in away.values():
                cache.put_back(unit.pods)
