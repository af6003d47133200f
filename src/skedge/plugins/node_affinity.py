"""NodeAffinity: node selectors, required and preferred node affinity. Upstream: `plugins/nodeaffinity`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from skedge import names
from skedge.api.core import Node, PreferredSchedulingTerm
from skedge.api.core import NodeAffinity as NodeAffinitySpec
from skedge.api.labels import SelectorError
from skedge.api.meta import NodeSelectorTerm
from skedge.api.node_selectors import NodeTerms, PreferredTerms, RequiredNodeAffinity
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.normalize import FORWARD
from skedge.framework.plugin import UNRESOLVABLE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_SCORED, pre_scored
from skedge.plugins.helpers.node_match import required_holds, term_holds, terms_hold
from skedge.snapshot.arith import where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

_NOT_MATCHED = UNRESOLVABLE | 1
_NOT_ENFORCED = UNRESOLVABLE | 2


class NodeAffinity:
    name = names.NODE_AFFINITY
    depends = Depends.NODE
    reads = Aspect.LABELS
    normalizer = FORWARD

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        added = getattr(args, "added_affinity", None)
        spec = msgspec.convert(added, NodeAffinitySpec) if added else NodeAffinitySpec()
        required = spec.required_during_scheduling_ignored_during_execution
        self._added_required = None if required is None else NodeTerms(required)
        self._added_preferred = PreferredTerms(spec.preferred_during_scheduling_ignored_during_execution)

    def fragment(self, pod: PodInfo) -> Hashable:
        spec = pod.pod.spec
        selector = None if spec.node_selector is None else tuple(sorted(spec.node_selector.items()))
        affinity = _affinity(pod)
        return (selector, affinity) if selector is not None or affinity is not None else None

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        affinity = _affinity(pod)
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        if required is None and self._added_required is None and pod.pod.spec.node_selector is None:
            return None, SKIP
        state.write(self.name, RequiredNodeAffinity(pod.pod))
        if required is None or not required.node_selector_terms:
            return None, SUCCESS
        wanted: set[str] = set()
        for term in required.node_selector_terms:
            of_term = _names_of(term)
            if of_term is None:
                return None, SUCCESS
            wanted |= of_term
        if not wanted:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_CONFLICT)
        return frozenset(wanted), SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        required = state.get(self.name) or RequiredNodeAffinity(pod.pod)
        codes = where(required_holds(view, required) == 0, _NOT_MATCHED, 0)
        if self._added_required is not None:
            codes = where(terms_hold(view, self._added_required) == 0, _NOT_ENFORCED, codes)
        return codes

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON if code == _NOT_MATCHED else REASON_ENFORCED)

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        affinity = _affinity(pod)
        preferred: tuple[PreferredSchedulingTerm, ...] = ()
        if affinity is not None:
            preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
        if not preferred and not self._added_preferred.terms:
            return SKIP
        try:
            state.write(PRE_SCORED + self.name, PreferredTerms(preferred))
        except SelectorError as error:
            return Status.from_error(error)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """Sum of the weights of the preferred terms that match, the pod's and the added ones."""
        preferred: PreferredTerms = pre_scored(state, self.name)
        total = view.full(0)
        for weight, term in (*preferred.terms, *self._added_preferred.terms):
            total = total + weight * term_holds(view, term)
        return total

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        event = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (ClusterEventWithHint(event, self.after_node_change),)

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        name, labels = new.metadata.name, new.metadata.labels
        if self._added_required is not None and not self._added_required.matches(name, labels):
            return QueueingHint.QUEUE_SKIP
        required = RequiredNodeAffinity(pod.pod)
        if not required.matches(name, labels):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint(old is None or not required.matches(old.metadata.name, old.metadata.labels))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        spec = pod.pod.spec
        affinity = _affinity(pod)
        return {
            "v1.Pod.Spec.Affinity.NodeAffinity": _canonical(msgspec.to_builtins(affinity)) if affinity else None,
            "v1.Pod.Spec.Affinity.NodeSelector": spec.node_selector,
        }, SUCCESS


def _affinity(pod: PodInfo) -> NodeAffinitySpec | None:
    affinity = pod.pod.spec.affinity
    return affinity.node_affinity if affinity is not None else None


def _names_of(term: NodeSelectorTerm) -> set[str] | None:
    """Node names a term is narrowed to by `metadata.name In`, or None when it is not."""
    found: set[str] | None = None
    for field in term.match_fields or ():
        if field.key == "metadata.name" and field.operator == "In":
            values = set(field.values or ())
            found = values if found is None else found & values
    return found


def _canonical(value: Any) -> Any:
    """The same JSON with lists in an order that does not depend on how they were written."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple):
        return sorted((_canonical(item) for item in value), key=lambda item: str(msgspec.json.encode(item)))
    return value
