"""TaintToleration: taints keep pods away or make nodes less liked. Upstream: `plugins/tainttoleration`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from skedge import names
from skedge.api.core import Node, Taint, Toleration
from skedge.api.taints import tolerates
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.normalize import REVERSE
from skedge.framework.plugin import UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_SCORED, pre_scored
from skedge.plugins.helpers.signing import sorted_tolerations
from skedge.snapshot.changes import Aspect
from skedge.snapshot.lookup import Lookup
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON = "node(s) had untolerated taint(s)"
REPELLING = frozenset({"NoSchedule", "NoExecute"})
PREFER_NO_SCHEDULE = "PreferNoSchedule"

Taints = tuple[Taint, ...]


class TaintToleration:
    name = names.TAINT_TOLERATION
    depends = Depends.NODE
    reads = Aspect.TAINTS
    normalizer = REVERSE

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        self._comparison = handle is not None and handle.gates.enabled("TaintTolerationComparisonOperators")
        self._repelled: dict[tuple[Toleration, ...], Lookup] = {}
        self._disliked: dict[tuple[Toleration, ...], Lookup] = {}

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.tolerations

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        tolerations = pod.tolerations
        lookup = _lookup(
            self._repelled, tolerations, lambda taints: UNRESOLVABLE if self._repels(taints, tolerations) else 0
        )
        return view.by_taints(lookup)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON)

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        preferring = tuple(t for t in pod.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        state.write(PRE_SCORED + self.name, preferring)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """Number of PreferNoSchedule taints the pod does not tolerate."""
        tolerations: tuple[Toleration, ...] = pre_scored(state, self.name)
        lookup = _lookup(self._disliked, tolerations, lambda taints: self._count_disliked(taints, tolerations))
        return view.by_taints(lookup)

    def _tolerated(self, taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
        return any(tolerates(t, taint, comparison=self._comparison) for t in tolerations)

    def _repels(self, taints: Taints | None, tolerations: tuple[Toleration, ...]) -> bool:
        return any(t.effect in REPELLING and not self._tolerated(t, tolerations) for t in taints or ())

    def _count_disliked(self, taints: Taints | None, tolerations: tuple[Toleration, ...]) -> int:
        return sum(t.effect == PREFER_NO_SCHEDULE and not self._tolerated(t, tolerations) for t in taints or ())

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
        repelled_before = old is None or self._repels(old.spec.taints, pod.tolerations)
        return QueueingHint(repelled_before and not self._repels(new.spec.taints, pod.tolerations))

    def after_pod_toleration_change(self, pod: PodInfo, old: Any, new: PodInfo) -> QueueingHint:
        return QueueingHint(new.uid == pod.uid)

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.Tolerations": sorted_tolerations(pod)}, SUCCESS


_LOOKUPS = 256


def _lookup(kept: dict[tuple[Toleration, ...], Lookup], key: tuple[Toleration, ...], rule: Any) -> Lookup:
    """The lookup kept for these tolerations: taint sets are few, so each is judged once."""
    found = kept.get(key)
    if found is None:
        if len(kept) >= _LOOKUPS:
            del kept[next(iter(kept))]
        found = kept[key] = Lookup(rule)
    return found
