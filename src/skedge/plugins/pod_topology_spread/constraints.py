"""Topology spread constraints of a pod, its own or the default ones, ready to be counted.

Upstream: `plugins/podtopologyspread/common.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from skedge.api.core import TopologySpreadConstraint
from skedge.api.labels import IN, NOTHING, Requirement, Selector, compile_selector
from skedge.api.node_selectors import RequiredNodeAffinity
from skedge.api.taints import find_untolerated
from skedge.plugins.helpers.node_match import required_holds
from skedge.snapshot.affinity_terms import Scope, scope_in
from skedge.snapshot.lookup import Lookup
from skedge.snapshot.pods import PodInfo

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


class Constraint:
    """One constraint with its selector compiled. `scope`: the pods it counts."""

    __slots__ = ("honor_affinity", "honor_taints", "key", "max_skew", "min_domains", "scope", "selector")

    def __init__(self, spec: Any, selector: Selector, namespace: str) -> None:
        self.key: str = spec.topology_key
        self.max_skew: int = spec.max_skew
        self.min_domains: int = 1 if spec.min_domains is None else spec.min_domains
        self.honor_affinity = (spec.node_affinity_policy or HONOR) == HONOR
        self.honor_taints = spec.node_taints_policy == HONOR
        self.selector = selector
        # A selector of everything counts no pod at all, though the pod itself matches it.
        self.scope: Scope = scope_in(namespace, NOTHING if selector.empty else selector)


Constraints = tuple[Constraint, ...]


def own_constraints(pod: PodInfo, action: str) -> Constraints:
    """The pod's own constraints with this `whenUnsatisfiable`. Raises SelectorError."""
    return tuple(
        Constraint(spec, _with_label_keys(spec, pod.labels), pod.namespace)
        for spec in pod.pod.spec.topology_spread_constraints or ()
        if spec.when_unsatisfiable == action
    )


def _with_label_keys(spec: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    selector = compile_selector(spec.label_selector)
    keys = [key for key in spec.match_label_keys or () if key in labels]
    return selector.plus(Requirement(key, IN, (labels[key],)) for key in keys) if keys else selector


def default_constraints(defaults: Sequence[Any], selector: Selector, namespace: str) -> Constraints:
    """Default constraints for a pod with this default selector; none if that says nothing."""
    return () if selector.empty else tuple(Constraint(spec, selector, namespace) for spec in defaults)


class Eligibility:
    """Which nodes count for the constraints of a pod: those with all keys that its inclusion policies let in."""

    __slots__ = ("_affinity", "_comparison", "_pod", "_tolerations", "keys")

    def __init__(self, pod: PodInfo, keys: Iterable[str], comparison: bool) -> None:
        self._pod = pod
        self._comparison = comparison
        self._affinity = _affinity_fragment(pod)
        self._tolerations = pod.tolerations
        self.keys = tuple(sorted(set(keys)))

    def fragment(self, constraint: Constraint) -> Hashable:
        """All the answer for a constraint depends on besides the node."""
        return (
            self.keys,
            self._affinity if constraint.honor_affinity else None,
            (self._tolerations, self._comparison) if constraint.honor_taints else None,
        )

    def rule(self, constraint: Constraint) -> Callable[[Any], Any] | None:
        """Rows -> whether each is eligible; None where having the constraint's own key is enough."""
        keys = tuple(key for key in self.keys if key != constraint.key)
        required: RequiredNodeAffinity | None = None
        if constraint.honor_affinity and self._affinity is not None:
            required = RequiredNodeAffinity(self._pod.pod)
        lookup: Lookup | None = None
        if constraint.honor_taints:
            tolerations, comparison = self._tolerations, self._comparison
            lookup = Lookup(lambda taints: int(find_untolerated(taints, tolerations, comparison=comparison) is None))
        if not keys and required is None and lookup is None:
            return None

        def eligible(view: Any) -> Any:
            answer = view.full(1)
            for key in keys:
                answer = answer & (view.pick(view.table.label_column(key).ids) >= 0)
            if required is not None:
                answer = answer & required_holds(view, required)
            if lookup is not None:
                answer = answer & view.by_taints(lookup)
            return answer

        return eligible


def _affinity_fragment(pod: PodInfo) -> Hashable:
    """Node selector and required node affinity of a pod, or None without them."""
    spec = pod.pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None and not spec.node_selector:
        return None
    return (tuple(sorted((spec.node_selector or {}).items())), required)
