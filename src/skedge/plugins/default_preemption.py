"""DefaultPreemption: makes room by evicting pods of lower priority. Upstream: `plugins/defaultpreemption`.

The decision is `skedge.preemption`; carrying it out is the Handle's `preemptor`, beside the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from skedge import names
from skedge.config.plugin_args import DefaultPreemptionArgs
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import PostFilterResult
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.preemption.choice import Candidate
from skedge.preemption.evaluator import Evaluator, Outcome, Sample
from skedge.snapshot.pods import PodInfo

RUNNING: Final = "waiting for the preemption for this pod to be finished"
GROUP_RUNNING: Final = "waiting for the preemption for this pod group to be finished"
GROUP_NOT_FOUND: Final = "pod group for pod not found"
GROUP_PLACEMENT: Final = "not eligible due to placement-based pod group scheduling limitation"
GROUP_WORKLOAD: Final = "not eligible due to workload aware preemption enabled"


class DefaultPreemption:
    """With arguments the search for candidates ends early, as upstream; without, every node that may help is tried."""

    name = names.DEFAULT_PREEMPTION

    def __init__(self, args: DefaultPreemptionArgs | None, handle: Any) -> None:
        self._handle = handle
        gates = handle.gates
        self._async = gates.enabled("SchedulerAsyncPreemption")
        self._group_placements = gates.enabled("TopologyAwareWorkloadScheduling")
        self._whole_groups = gates.enabled("WorkloadAwarePreemption")
        sample = None
        if args is not None and not args.everywhere:
            sample = Sample(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        self.evaluator = Evaluator(handle.table, handle.listers.pod_disruption_budgets, handle.rng, sample)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        reason = self._gates(pod)
        return SUCCESS if reason is None else Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)

    def _gates(self, pod: PodInfo) -> str | None:
        """Why the pod has to wait for its own preemption, if it has to."""
        preemptor = self._handle.preemptor
        if not self._async or preemptor is None:
            return None
        if preemptor.running(pod):
            return RUNNING
        if self._whole_groups and pod.group is not None:
            group = self._handle.listers.pod_groups.get(pod.group, pod.namespace)
            if group is not None and preemptor.running_for(group.metadata.uid):
                return GROUP_RUNNING
        return None

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[PostFilterResult | None, Status]:
        outcome = self.find(pod, diagnosis)
        self.choose(outcome)
        return self.conclude(state, pod, outcome)

    # --- the two halves, between which extenders may be asked ---------------------------------------------------------

    def find(self, pod: PodInfo, diagnosis: Any) -> Outcome:
        """The candidates, or why there are none."""
        self._handle.hooks.preemption_attempt()
        reason = self._refuses_group(pod)
        if reason is not None:
            outcome = Outcome(diagnosis)
            outcome.status = Status(Code.UNSCHEDULABLE, reason)
            return outcome
        return self.evaluator.find(diagnosis)

    def choose(self, outcome: Outcome, candidates: Mapping[str, Candidate] | None = None) -> None:
        """Takes the best candidate of all, or of those that extenders left, if there was any."""
        if not outcome.status.ok:
            return
        if candidates is None:
            self.evaluator.choose(outcome)
        else:
            self.evaluator.choose_among(outcome, candidates)

    def conclude(self, state: CycleState, pod: PodInfo, outcome: Outcome) -> tuple[PostFilterResult | None, Status]:
        """Has the chosen victims evicted; what PostFilter answers."""
        status, chosen = outcome.status, outcome.chosen
        if not status.ok or chosen is None:
            result = PostFilterResult("") if outcome.clears else None
            return result, Status(status.code, f"preemption: {status.message}")
        if self._handle.preemptor is not None:
            self._handle.preemptor.start(pod, chosen.node, chosen.victims, self.name)
        return PostFilterResult(chosen.node), SUCCESS

    def _refuses_group(self, pod: PodInfo) -> str | None:
        if pod.group is None:
            return None
        if self._group_placements:
            group = self._handle.listers.pod_groups.get(pod.group, pod.namespace)
            if group is None:
                return GROUP_NOT_FOUND
            if group.spec.scheduling_constraints is not None:
                return GROUP_PLACEMENT
        return GROUP_WORKLOAD if self._whole_groups else None

    # --- waking pods --------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """So that a gated preemptor is looked at again when a pod goes."""
        if not self._async:
            return ()
        return (ClusterEventWithHint(ClusterEvent(events.POD, ActionType.DELETE), self.after_pod_delete),)

    def after_pod_delete(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        """Asked about pods this plugin gated. Once the preemption is over they are tried whoever turned them down: for
        each of the victims that may have been another plugin, and only one of them is the last to go."""
        return QueueingHint.QUEUE_SKIP if self._gates(pod) else QueueingHint.QUEUE
