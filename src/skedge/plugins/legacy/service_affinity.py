"""ServiceAffinity: pods of a service share the values of some node labels, and are spread over those of others.

The first pod is free; the others follow the labels of its node. Upstream (v1.20): `plugins/serviceaffinity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from skedge import names
from skedge.api.labels import from_set
from skedge.config.legacy.args import ServiceAffinityArgs
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from skedge.framework.plugin import MAX_NODE_SCORE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.cycle import PRE_FILTERED, pre_filtered
from skedge.plugins.helpers.node_match import selector_holds
from skedge.plugins.legacy.matching import services_of
from skedge.snapshot.affinity_terms import Scope, scope_in
from skedge.snapshot.arith import Ints, where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.counters import Counters
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView, Rows, View

REASON: Final = "node(s) didn't match service affinity"
_NOT_MATCHED: Final = 1


class Followed:
    """What one pod must follow: labels it names itself, and pods like it (None: there is nothing to learn from)."""

    def __init__(self, wanted: Mapping[str, str], missing: Sequence[str], scope: Scope | None) -> None:
        self.wanted = dict(wanted)
        self.missing = missing
        self.scope = scope


class ServiceAffinity:
    name = names.SERVICE_AFFINITY
    depends = Depends.CLUSTER
    reads = Aspect.PODS | Aspect.LABELS
    normalizer = None  # labels take part, so `score` does what normalising did

    def __init__(self, args: Any, handle: Any) -> None:
        given: ServiceAffinityArgs = args or ServiceAffinityArgs()
        self._labels = tuple(dict.fromkeys(given.affinity_labels))
        self._spread_over = tuple(given.anti_affinity_labels_preference)
        self._services = handle.listers.services
        self._counters: Counters = handle.counters
        self._table: NodeTable = handle.table

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        if not self._labels:
            return None, SKIP
        selector = pod.pod.spec.node_selector or {}
        wanted = {label: selector[label] for label in self._labels if label in selector}
        missing = [label for label in self._labels if label not in wanted]
        scope = None
        if missing and any(True for _ in services_of(self._services, pod)):
            scope = scope_in(pod.namespace, from_set(pod.labels))
        state.write(PRE_FILTERED + self.name, Followed(wanted, missing, scope))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        followed: Followed = pre_filtered(state, self.name)
        first = None if followed.scope is None else next(self._pods(followed.scope), None)
        codes = self._codes(followed, None if first is None else first.node_name, view)
        if followed.scope is not None and isinstance(view, DeltaView):
            for row in {*view.added, *view.removed}:
                at = np.flatnonzero(view.rows == row)
                if not len(at):
                    continue
                other = self._first_in_world(followed.scope, row, view)
                if other is not first:
                    example = None if other is None else other.node_name
                    codes[at] = self._codes(followed, example, Rows(view.table, view.rows[at]))
        return codes

    def _codes(self, followed: Followed, example: str | None, view: View) -> Any:
        """Codes of a view where the pod follows the node called `example`, or none."""
        wanted = dict(followed.wanted)
        node = None if example is None else self._table.node(example)
        labels = (node.metadata.labels or {}) if node is not None else {}
        wanted.update({label: labels[label] for label in followed.missing if label in labels})
        return where(selector_holds(view, from_set(wanted)) == 0, _NOT_MATCHED, view.full(0))

    def _pods(self, scope: Scope) -> Iterator[PlacedPod]:
        """Placed pods of the scope on nodes that exist, by row and arrival."""
        table = self._table
        counted = self._counters.pods((scope,))
        for row in np.flatnonzero((counted.array() > 0) & table.exists).tolist():
            yield from (pod for pod in table.pods[row].values() if counted.counts(pod))

    def _first_in_world(self, scope: Scope, row: int, view: DeltaView) -> PlacedPod | None:
        """The first pod of the scope where pods were added to or removed from this row: added ones come last."""
        gone = {pod.uid for pod in view.removed.get(row, ())}
        found = next((pod for pod in self._pods(scope) if pod.uid not in gone), None)
        if found is not None:
            return found
        counted = self._counters.pods((scope,))
        return next((pod for pod in view.added.get(row, ()) if counted.counts(pod)), None)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE, REASON)

    # --- score --------------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """The mean, over the labels, of how few of the first service's pods are where the node's value is."""
        if not self._spread_over:
            return view.full(0)
        counts = self._service_pods(pod, view)
        total = int(counts.sum())
        parts = np.zeros(view.size)
        for label in self._spread_over:
            ids = view.pick(view.table.label_column(label).ids)
            has = ids >= 0
            if not total:
                parts[has] += MAX_NODE_SCORE
            elif has.any():
                sums = np.zeros(int(ids.max()) + 1, np.int64)
                np.add.at(sums, ids[has], counts[has])
                parts[has] += MAX_NODE_SCORE * ((total - sums[ids[has]]) / float(total))
        return (parts / len(self._spread_over)).astype(np.int64)

    def _service_pods(self, pod: PodInfo, view: View) -> Ints:
        """Pods of the first service that selects the pod, on each row; those being deleted do not count."""
        service = next(services_of(self._services, pod), None)
        if service is None or not service.spec.selector:
            none: Ints = view.full(0)
            return none
        scope = scope_in(pod.namespace, from_set(service.spec.selector))
        found: Ints = view.pick(self._counters.pods((scope,), live=True).array()).astype(np.int64)
        return found

    # --- waking pods --------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        of_pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, of_pods)),
            ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent("Service", ActionType.ALL)),
        )
