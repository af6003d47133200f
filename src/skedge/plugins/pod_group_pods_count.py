"""PodGroupPodsCount: the more pods of a group a placement holds, the better. Upstream: `plugins/podgrouppodscount`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skedge import names
from skedge.api.scheduling import PodGroup
from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.framework.status import PluginError
from skedge.framework.workloads import Placement
from skedge.snapshot.pods import PodInfo

NO_PODS: Final = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount:
    name = names.POD_GROUP_PODS_COUNT

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def placement_score(self, group: PodGroup, placement: Placement, proposed: Sequence[PodInfo]) -> int:
        """Pods of the group that are scheduled already, and those that would be."""
        state = self._handle.pod_groups.get(group.metadata.namespace, group.metadata.name)
        return (0 if state is None else int(state.scheduled)) + len(proposed)

    def placement_normalize(self, scores: Sequence[int]) -> list[int]:
        most = max(scores)
        if most == 0:
            raise PluginError(NO_PODS)
        return [score * MAX_NODE_SCORE // most for score in scores]
