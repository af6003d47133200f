"""InterPodAffinity at its extension points. Upstream: `plugins/interpodaffinity/plugin.go`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skedge import names
from skedge.api.core import Node
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_FILTERED, PRE_SCORED, pre_filtered, pre_scored
from skedge.plugins.inter_pod_affinity.concerns import KnownConcerns
from skedge.plugins.inter_pod_affinity.filtering import AFFINITY, ANTI_AFFINITY, RequiredTerms
from skedge.plugins.inter_pod_affinity.scoring import MinMaxNormalizer, best_raw, raw_scores
from skedge.snapshot.affinity_terms import NO_LABELS, Scope, Term
from skedge.snapshot.counters import Counters, Kind
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity:
    name = names.INTER_POD_AFFINITY
    depends = Depends.CLUSTER
    normalizer = MinMaxNormalizer()

    def __init__(self, args: Any, handle: Any) -> None:
        self._counters: Counters = handle.counters
        self._hard_weight: int = getattr(args, "hard_pod_affinity_weight", 1)
        self._concerns = KnownConcerns(self._counters, self._hard_weight)
        self._ignore_existing: bool = getattr(args, "ignore_preferred_terms_of_existing_pods", False)

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        counters, terms = self._counters, pod.affinity_terms
        if terms.error:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"parsing pod: {terms.error}")
        if not terms.affinity and not terms.anti and not counters.held(Kind.ANTI):
            return None, SKIP
        concerns = self._concerns.of(pod)
        if not terms.affinity and not terms.anti and not concerns.existing:
            return None, SKIP
        required = RequiredTerms(counters, pod, concerns)
        if required.idle:
            return None, SKIP
        state.write(PRE_FILTERED + self.name, required)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        required: RequiredTerms = pre_filtered(state, self.name)
        return required.codes(view)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code == AFFINITY:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY)
        return Status(Code.UNSCHEDULABLE, REASON_ANTI_AFFINITY if code == ANTI_AFFINITY else REASON_EXISTING)

    # --- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        terms = pod.affinity_terms
        if self._ignore_existing and not terms.preferred:
            return SKIP
        if terms.error:
            return Status(Code.ERROR, f"failed to parse pod: {terms.error}")
        counters, weight = self._counters, self._hard_weight
        if not (terms.preferred or counters.held(Kind.PREFERRED) or (weight > 0 and counters.held(Kind.AFFINITY))):
            return SKIP
        worth = self._concerns.worth(pod)
        if not worth.anything:
            return SKIP
        state.write(PRE_SCORED + self.name, worth)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        return raw_scores(pre_scored(state, self.name, "failed to read"), view)

    def best_raw(self, state: CycleState, pod: PodInfo) -> int:
        return best_raw(pre_scored(state, self.name, "failed to read"))

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        of_pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        of_nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, of_pods), self.after_pod_change),
            ClusterEventWithHint(ClusterEvent(events.NODE, of_nodes), self.after_node_change),
        )

    def after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        if new is not None and new.uid == pod.uid:
            return QueueingHint.QUEUE
        changed = new if new is not None else old
        if not changed.node_name and not changed.nominated_node_name:
            return QueueingHint.QUEUE_SKIP
        terms = pod.affinity_terms
        if terms.error:
            return QueueingHint.QUEUE  # what was rejected can not be judged
        if old is None:
            return QueueingHint(_matches_all(terms.affinity, new))
        if new is None:
            return QueueingHint(_matches_all(terms.anti, old) or _matches_all(old.affinity_terms.anti, pod))
        came = not _matches_all(terms.affinity, old) and _matches_all(terms.affinity, new)
        went = _matches_all(terms.anti, old) and not _matches_all(terms.anti, new)
        return QueueingHint(came or went)

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        terms = pod.affinity_terms
        if terms.error:
            return QueueingHint.QUEUE
        after = new.metadata.labels or NO_LABELS
        if old is None:
            return QueueingHint(bool(terms.anti) or any(term.topology_key in after for term in terms.affinity))
        before = old.metadata.labels or NO_LABELS

        def value(term: Term) -> tuple[str | None, str | None]:
            return before.get(term.topology_key), after.get(term.topology_key)

        near = any(new_value is not None and was != new_value for was, new_value in map(value, terms.affinity))
        far = any(was is not None and was != new_value for was, new_value in map(value, terms.anti))
        return QueueingHint(near or far)

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        affinity = pod.affinity
        if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
            return {}, Status(Code.UNSCHEDULABLE, "pods with InterPodAffinity are not signable")
        return ({} if self._ignore_existing else {"v1.Pod.Labels": pod.pod.metadata.labels}), SUCCESS


def _matches_all(terms: Sequence[Term], pod: Any) -> bool:
    """Whether a pod matches every one of these terms, of which there must be one. Namespaces are taken by name, and as
    if they had no labels."""
    return bool(terms) and all(_matches(term.scope, pod) for term in terms)


def _matches(scope: Scope, pod: Any) -> bool:
    return scope.matches(pod.namespace, pod.labels, NO_LABELS)
