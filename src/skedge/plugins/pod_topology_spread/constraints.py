"""Topology spread constraints of a pod, its own or the default ones, ready to be counted.

Upstream: `plugins/podtopologyspread/common.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

from skedge.api.core import Toleration, TopologySpreadConstraint
from skedge.api.labels import IN, NOTHING, Requirement, Selector, compile_selector
from skedge.api.node_selectors import RequiredNodeAffinity
from skedge.api.taints import find_untolerated
from skedge.plugins.helpers.node_match import required_holds
from skedge.snapshot.affinity_terms import Scope, scope_in
from skedge.snapshot.lookup import Lookup
from skedge.snapshot.pods import PodInfo, Shared

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)

_REMEMBERED: Final = 64
"""So many kinds of pods are told apart for the same constraints."""
_shared = Shared(4096)
_encode = msgspec.json.Encoder().encode


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


class Spread:
    """Constraints that apply together, the same for all pods that have them. `require_all`: a node without one of
    their keys counts for none of them."""

    __slots__ = ("_eligibilities", "_honors_affinity", "_honors_taints", "constraints", "keys", "require_all")

    def __init__(self, constraints: tuple[Constraint, ...], *, require_all: bool = True) -> None:
        self.constraints = constraints
        self.keys = tuple(each.key for each in constraints)
        self.require_all = require_all
        self._honors_affinity = any(each.honor_affinity for each in constraints)
        self._honors_taints = any(each.honor_taints for each in constraints)
        self._eligibilities: dict[Hashable, tuple[Eligibility, ...]] = {}

    def eligibilities(self, pod: PodInfo, comparison: bool) -> tuple[Eligibility, ...]:
        """Which nodes count for this pod, for each constraint."""
        affinity = _affinity_fragment(pod) if self._honors_affinity else None
        key = (affinity, (pod.tolerations, comparison) if self._honors_taints else None)
        found = self._eligibilities.get(key)
        if found is None:
            if len(self._eligibilities) >= _REMEMBERED:
                self._eligibilities.clear()
            keys = tuple(sorted(set(self.keys))) if self.require_all else ()
            found = tuple(Eligibility(pod, each, keys, affinity, comparison) for each in self.constraints)
            self._eligibilities[key] = found
        return found


NONE: Final = Spread(())


def own_spread(pod: PodInfo, action: str) -> Spread:
    """The pod's own constraints with this `whenUnsatisfiable`, compiled once for pods with the same text.

    Raises SelectorError.
    """
    specs = pod.pod.spec.topology_spread_constraints or ()
    labels = [pod.labels.get(key) for spec in specs for key in spec.match_label_keys or ()]
    key = (action, pod.namespace, _encode(specs), tuple(labels))
    found: Spread | None = _shared.get(key)
    if found is None:
        found = Spread(
            tuple(
                Constraint(spec, _with_label_keys(spec, pod.labels), pod.namespace)
                for spec in specs
                if spec.when_unsatisfiable == action
            )
        )
        _shared.put(key, found)
    return found


def _with_label_keys(spec: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    selector = compile_selector(spec.label_selector)
    keys = [key for key in spec.match_label_keys or () if key in labels]
    return selector.plus(Requirement(key, IN, (labels[key],)) for key in keys) if keys else selector


def default_spread(defaults: Sequence[Any], selector: Selector, namespace: str, *, require_all: bool) -> Spread:
    """Default constraints for pods with this default selector."""
    return Spread(tuple(Constraint(spec, selector, namespace) for spec in defaults), require_all=require_all)


class Eligibility:
    """Which nodes count for a constraint of pods that are alike: those with all `keys` that its inclusion policies let
    in. `rule`: rows -> whether each is eligible; None where having the constraint's own key is enough. `fragment`: all
    that the answer depends on besides the node."""

    __slots__ = ("fragment", "rule")

    def __init__(
        self, pod: PodInfo, constraint: Constraint, keys: tuple[str, ...], affinity: Hashable, comparison: bool
    ) -> None:
        honored = affinity if constraint.honor_affinity else None
        tolerations = pod.tolerations if constraint.honor_taints else None
        self.fragment: Hashable = (keys, honored, None if tolerations is None else (tolerations, comparison))
        self.rule: Callable[[Any], Any] | None = None
        others = tuple(key for key in keys if key != constraint.key)
        if others or honored is not None or tolerations is not None:
            required = RequiredNodeAffinity(pod.pod) if honored is not None else None
            self.rule = _rule(others, required, tolerations, comparison)


def _rule(
    keys: tuple[str, ...],
    required: RequiredNodeAffinity | None,
    tolerations: Sequence[Toleration] | None,
    comparison: bool,
) -> Callable[[Any], Any]:
    lookup: Lookup | None = None
    if tolerations is not None:
        lookup = Lookup(lambda taints: int(find_untolerated(taints, tolerations, comparison=comparison) is None))

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
