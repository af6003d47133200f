"""PodTopologySpread at its extension points. Upstream: `plugins/podtopologyspread/plugin.go`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skedge import names
from skedge.api.core import Node
from skedge.api.labels import SelectorError
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_FILTERED, PRE_SCORED, pre_filtered, pre_scored
from skedge.plugins.helpers.spread import DefaultSelectors
from skedge.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    NONE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Spread,
    default_spread,
    own_spread,
)
from skedge.plugins.pod_topology_spread.filtering import MISSING, filter_codes, hard_constraints
from skedge.plugins.pod_topology_spread.scoring import SoftConstraints, SpreadNormalizer
from skedge.snapshot.pods import PodInfo, Shared
from skedge.snapshot.views import View

REASON = "node(s) didn't match pod topology spread constraints"
REASON_MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"


class PodTopologySpread:
    name = names.POD_TOPOLOGY_SPREAD
    depends = Depends.CLUSTER
    normalizer = SpreadNormalizer()

    def __init__(self, args: Any, handle: Any) -> None:
        self._counters = handle.counters
        self._selectors = DefaultSelectors(handle.listers)
        self._comparison = handle.gates.enabled("TaintTolerationComparisonOperators")
        self._system = getattr(args, "defaulting_type", "System") == "System"
        defaults = SYSTEM_DEFAULTS if self._system else tuple(args.default_constraints)
        self._defaults = {
            action: tuple(each for each in defaults if each.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        self._by_default = Shared(4096)
        self._keys = {action: self.name + action for action in self._defaults}

    def _spread(self, pod: PodInfo, action: str) -> Spread:
        """Raises SelectorError."""
        if pod.pod.spec.topology_spread_constraints:
            key = self._keys[action]
            own: Spread | None = pod.cached(key)
            if own is None:
                own = own_spread(pod, action)
                pod.cache(key, own)
            return own
        defaults = self._defaults[action]
        if not defaults:
            return NONE
        selector = self._selectors.of(pod)
        if selector.empty:
            return NONE
        found: Spread | None = self._by_default.get((action, selector, pod.namespace))
        if found is None:
            found = default_spread(defaults, selector, pod.namespace, require_all=not self._system)
            self._by_default.put((action, selector, pod.namespace), found)
        return found

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        try:
            spread = self._spread(pod, DO_NOT_SCHEDULE)
        except SelectorError as error:
            text = f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}"
            return None, Status(Code.ERROR, text)
        if not spread.constraints:
            return None, SKIP
        state.write(PRE_FILTERED + self.name, hard_constraints(self._counters, pod, spread, self._comparison))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        return filter_codes(pre_filtered(state, self.name), view)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code == MISSING:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_MISSING)
        return Status(Code.UNSCHEDULABLE, REASON)

    # --- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        try:
            spread = self._spread(pod, SCHEDULE_ANYWAY)
        except SelectorError as error:
            text = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}"
            return Status(Code.ERROR, text)
        if not spread.constraints or not view.table.count:
            return SKIP
        soft = SoftConstraints(self._counters, pod, spread, view, comparison=self._comparison)
        state.write(PRE_SCORED + self.name, soft)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        soft: SoftConstraints = pre_scored(state, self.name)
        return soft.scores(view)

    def best_raw(self, state: CycleState, pod: PodInfo) -> int:
        soft: SoftConstraints = pre_scored(state, self.name)
        return soft.best_raw()

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        of_pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        of_nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, of_pods), self.after_pod_change),
            ClusterEventWithHint(ClusterEvent(events.NODE, of_nodes), self.after_node_change),
        )

    def after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        changed = new if new is not None else old
        if changed.namespace != pod.namespace:
            return QueueingHint.QUEUE_SKIP
        own = changed.uid == pod.uid
        if not own and not changed.node_name and not changed.nominated_node_name:
            return QueueingHint.QUEUE_SKIP
        constraints = self._spread(pod, DO_NOT_SCHEDULE).constraints
        if old is None or new is None:
            return QueueingHint(any(each.selector.matches(changed.labels) for each in constraints))
        if own and old.tolerations != new.tolerations and any(each.honor_taints for each in constraints):
            return QueueingHint.QUEUE
        return QueueingHint(
            any(each.selector.matches(old.labels) != each.selector.matches(new.labels) for each in constraints)
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        constraints = self._spread(pod, DO_NOT_SCHEDULE).constraints
        before, after = _labels(old), _labels(new)
        had = all(each.key in before for each in constraints)
        has = all(each.key in after for each in constraints)
        if old is None or new is None:
            return QueueingHint(has if old is None else had)
        if had != has:
            return QueueingHint.QUEUE
        moved = any(before.get(each.key) != after.get(each.key) for each in constraints)
        return QueueingHint(has and (moved or (old.spec.taints or ()) != (new.spec.taints or ())))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        if pod.pod.spec.topology_spread_constraints:
            return {}, Status(Code.UNSCHEDULABLE, "pods with topology constraints are not signable")
        if any(self._defaults.values()):
            return {}, Status(Code.UNSCHEDULABLE, "pods with default topology constraints are not signable")
        return {}, SUCCESS


def _labels(node: Node | None) -> Mapping[str, str]:
    return {} if node is None else node.metadata.labels or {}
