"""NodeResourcesBalancedAllocation: nodes whose resources stay evenly used. Upstream: `balanced_allocation.go`.

The score is 50 plus half of (50 + how much more even the node would be with the pod than it is now).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge import names
from skedge.api.requests import pod_requests
from skedge.config.plugin_args import NodeResourcesBalancedAllocationArgs
from skedge.framework.events import ClusterEventWithHint
from skedge.framework.plugin import MAX_NODE_SCORE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Status
from skedge.plugins.helpers.allocation import counts
from skedge.snapshot.arith import Ints, everywhere, truncate
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Row, Rows, View

_ONE_BY_ONE: Final = 8
"""Up to so many changed rows are looked at one by one."""
_HIGHEST: Final = MAX_NODE_SCORE + MAX_NODE_SCORE // 2
_REQUESTS = "noderesources/balanced-requests"


class _Kept(NamedTuple):
    """`_room` of all rows, as of a position in the table's log."""

    table: NodeTable
    position: int
    answers: Ints


class NodeResourcesBalancedAllocation:
    name = names.NODE_RESOURCES_BALANCED_ALLOCATION
    depends = Depends.NODE
    reads = Aspect.RESOURCES | Aspect.ALLOCATABLE
    by_resources = True
    normalizer = None

    def __init__(self, args: Any, handle: Any) -> None:
        args = args or NodeResourcesBalancedAllocationArgs.default()
        self._resources = [r.name for r in args.resources or ()]
        self._memo = f"{_REQUESTS}/{','.join(self._resources)}"
        self._kept: dict[tuple[str, ...], _Kept] = {}  # by resources that count: scalar ones may be left out

    def fragment(self, pod: PodInfo) -> Hashable:
        return self._request(pod)

    def _request(self, pod: PodInfo) -> tuple[int, ...]:
        """What the pod asks of each listed resource (plain requests: pod-level and status count, defaults do not)."""
        memo = pod.shape.memo
        found: tuple[int, ...] | None = memo.get(self._memo)
        if found is None:
            # node_requests drops resources the scheduler does not track; a listed one may be among those.
            tracked = dict(pod.node_requests)
            if any(name not in tracked for name in self._resources):
                tracked = pod_requests(pod.pod, use_status=True)
            found = memo[self._memo] = tuple([tracked.get(name, 0) for name in self._resources])
        return found

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        return SUCCESS if any(self._request(pod)) else SKIP

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        request = self._request(pod)
        if not any(request):
            return view.full(0)
        counted = tuple([each for each in zip(self._resources, request, strict=True) if counts(*each)])
        return _filled(view, counted) + self._room(view, tuple([name for name, _ in counted])) >> 1

    def _room(self, view: View, resources: tuple[str, ...]) -> Any:
        """150 less how even nodes are before a pod comes: the pod's half of 50 + (50 + with - without) / 2 is missing.

        For all rows it is kept, and brought up to date where they changed.
        """
        nothing = tuple([(name, 0) for name in resources])
        table = view.table
        if type(view) is not Rows or not view.whole:
            return _HIGHEST - _filled(view, nothing)
        kept, rows = self._kept.get(resources), None
        if kept is not None and kept.table is table and len(kept.answers) == table.size:
            rows = table.log.since(kept.position, self.reads | Aspect.NODE)
        if kept is None or rows is None or len(rows) * 8 > table.size:
            answers = _HIGHEST - _filled(view, nothing)
        else:
            answers = kept.answers
            if len(rows) > _ONE_BY_ONE or table.wide:
                index = np.fromiter(rows, np.int64, len(rows))
                answers[index] = _HIGHEST - _filled(Rows(table, index), nothing)
            else:
                for row in rows:
                    answers[row] = _HIGHEST - _filled(Row(table, row), nothing)
        self._kept[resources] = _Kept(table, table.log.position, answers)
        return answers

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.ContainerRequestsAndOverheads()": dict(pod.requests)}, SUCCESS


def _filled(view: View, requests: Sequence[tuple[str, int]]) -> Any:
    """How evenly resources are used with these requests on top of what is there."""
    stack = view.stack(tuple([resource for resource, _ in requests])) if requests else None
    if stack is not None and stack.everywhere:
        amounts = [amount for _, amount in requests]
        shares = stack.used + np.array(amounts, np.float64)[:, None]
        shares /= stack.allocatable
        if not stack.fits(amounts):
            np.minimum(shares, 1.0, out=shares)
        return _evenness_of_rows([(each, True) for each in shares], view)
    fractions = []
    for resource, amount in requests:
        divisor, present = view.divisor(resource)
        used = view.requested(resource)
        fractions.append((_fraction(used + amount if amount else used, divisor), present))
    return _evenness(fractions, view)


def _fraction(used: Any, allocatable: Any) -> Any:
    if isinstance(used, np.ndarray):
        fraction = used / allocatable
        return np.minimum(fraction, 1.0) if fraction.size and fraction.max() > 1.0 else fraction
    return min(used / allocatable, 1.0)


def _evenness(fractions: Sequence[tuple[Any, Any]], view: View) -> Any:
    """(1 - standard deviation of the fractions) x 100, truncated; 100 with fewer than two resources."""
    if isinstance(view, Row):
        present = [fraction for fraction, is_present in fractions if is_present]
        return int((1 - _deviation(present)) * MAX_NODE_SCORE)
    return _evenness_of_rows(fractions, view)


def _deviation(fractions: Sequence[float]) -> float:
    if len(fractions) < 2:
        return 0.0
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = 0.0
    for fraction in fractions:
        mean += fraction
    mean /= len(fractions)
    squares = 0.0
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / len(fractions))


def _evenness_of_rows(fractions: Sequence[tuple[Any, Any]], view: View) -> Any:
    """The same, for rows that may lack different resources. Sums run in the order of the list, as on single rows."""
    size = view.size
    if len(fractions) < 2:
        return np.full(size, MAX_NODE_SCORE, np.int64)
    if len(fractions) == 2:
        (first, has_first), (second, has_second) = fractions
        evenness = first - second
        np.abs(evenness, out=evenness)
        evenness /= 2
        if not (everywhere(has_first) and everywhere(has_second)):
            evenness[~(has_first & has_second)] = 0.0
        np.subtract(1, evenness, out=evenness)
        evenness *= MAX_NODE_SCORE
        return truncate(evenness)
    number = np.zeros(size, np.int64)
    mean = np.zeros(size)
    for fraction, present in fractions:
        number += present
        mean += np.where(present, fraction, 0.0)
    divisor = np.maximum(number, 1)
    mean = mean / divisor
    squares = np.zeros(size)
    for fraction, present in fractions:
        squares += np.where(present, (fraction - mean) * (fraction - mean), 0.0)
    deviation = np.sqrt(squares / divisor)
    two = number == 2
    if two.any():  # the reference halves the distance of two, which may differ in the last bit
        total = np.zeros(size)
        sign = np.ones(size)
        for fraction, present in fractions:
            total += np.where(present, sign * fraction, 0.0)
            sign = np.where(present, -sign, sign)
        deviation = np.where(two, np.abs(total) / 2, deviation)
    deviation = np.where(number < 2, 0.0, deviation)
    return truncate((1 - deviation) * MAX_NODE_SCORE)
