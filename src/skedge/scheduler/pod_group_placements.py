"""A pod group tried on several parts of the cluster, of which the best is taken.

Upstream: `schedule_one_podgroup.go` (podGroupSchedulingPlacementAlgorithm), `framework/runtime/framework.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from skedge.api.scheduling import PodGroup
from skedge.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from skedge.framework.status import Code, PluginError, Status
from skedge.framework.workloads import Placement, PlacementNormalizer
from skedge.profiles.search import CycleError
from skedge.scheduler.pod_group_status import PodGroupError
from skedge.scheduler.pod_group_verdict import Fate, Verdict
from skedge.scheduler.scheduling_cycle import EVERYWHERE, Scope

if TYPE_CHECKING:
    from skedge.scheduler.pod_groups import GroupCycle

NO_PLACEMENTS: Final = "no feasible placements found"


async def best_placement(cycle: GroupCycle) -> Verdict:
    """What trying came to on the placement that suits the group best."""
    pod, scheduler = cycle.members[0].pod, cycle.scheduler
    group: PodGroup | None = scheduler.group_of(pod)
    if group is None:
        text = f'failed to get pod group object: podgroup.scheduling.k8s.io "{pod.group}" not found'
        return Verdict(Status.from_error(PodGroupError(text)))
    everything = Placement("", np.flatnonzero(scheduler.cache.table.exists))
    (generator,) = cycle.profile.placement_generate
    try:
        placements = generator.placement_generate(group, everything)
    except PluginError as error:
        return Verdict(Status.from_error(PodGroupError(str(error))))
    if not placements:
        return Verdict(Status(Code.UNSCHEDULABLE, NO_PLACEMENTS))
    verdicts = []
    for placement in placements:
        whole = len(placement.rows) == len(everything.rows)
        verdict = await cycle.try_on(EVERYWHERE if whole else Scope(placement.rows))
        if verdict.result == "error":
            return verdict
        verdicts.append(verdict)
    usable = [i for i, verdict in enumerate(verdicts) if verdict.usable]
    if not usable:
        return _none(verdicts)
    if len(usable) == 1:
        return verdicts[usable[0]]
    try:
        scores = _scores(cycle, group, [placements[i] for i in usable], [verdicts[i] for i in usable])
    except CycleError as error:
        return Verdict(Status.from_error(error))
    best = [i for i, score in zip(usable, scores, strict=True) if score == max(scores)]
    return verdicts[best[scheduler.rng.randrange(len(best)) if len(best) > 1 else 0]]


def _none(verdicts: Sequence[Verdict]) -> Verdict:
    if len(verdicts) == 1:
        return verdicts[0]
    first = verdicts[0]
    text = f"0/{len(verdicts)} placements are available, first placement status: {first.status.message}"
    return Verdict(Status(Code.UNSCHEDULABLE, error=PodGroupError(text)), first.trials)


def _scores(
    cycle: GroupCycle, group: PodGroup, placements: Sequence[Placement], verdicts: Sequence[Verdict]
) -> list[int]:
    """Weighted sums of what the PlacementScore plugins say. Raises CycleError."""
    proposed = [
        [trial.queued.pod for trial in verdict.trials if trial.fate in (Fate.FITS, Fate.PREEMPTS)]
        for verdict in verdicts
    ]
    totals = [0] * len(placements)
    for plugin, weight in cycle.profile.placement_score:
        try:
            scores = [
                plugin.placement_score(group, placement, pods)
                for placement, pods in zip(placements, proposed, strict=True)
            ]
        except PluginError as error:
            raise CycleError(f'running PlacementScore plugins: plugin "{plugin.name}" failed with: {error}') from error
        if isinstance(plugin, PlacementNormalizer):
            try:
                scores = plugin.placement_normalize(scores)
            except PluginError as error:
                raise CycleError(
                    "running NormalizePlacementScore on PlacementScore plugins: "
                    f'plugin "{plugin.name}" failed with: {error}'
                ) from error
        for i, score in enumerate(scores):
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise CycleError(
                    f'applying score defaultWeights on PlacementScore plugins: plugin "{plugin.name}" returns an '
                    f"invalid score {score}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after "
                    "normalizing"
                )
            totals[i] += score * weight
    return totals
