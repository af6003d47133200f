"""Hard constraints: whether a domain can take one more pod. Upstream: `plugins/podtopologyspread/filtering.go`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skedge.framework.plugin import UNRESOLVABLE
from skedge.plugins.pod_topology_spread.constraints import Constraint, Spread
from skedge.snapshot.affinity_terms import scope_in
from skedge.snapshot.arith import Ints
from skedge.snapshot.by_domain import gathered
from skedge.snapshot.counters import Counters
from skedge.snapshot.counters_rows import DomainSums
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView

SKEWED: Final = 1
MISSING: Final = UNRESOLVABLE | 2
_NO_DOMAIN: Final = (1 << 31) - 1  # the smallest count where no domain exists and none is asked for


class HardConstraint:
    """A constraint with the counts of the cycle. Codes are looked up by domain."""

    __slots__ = ("_bound", "_counters", "_few_domains", "_limit", "_sums", "constraint", "idle")

    def __init__(self, counters: Counters, constraint: Constraint, sums: DomainSums, matches_itself: bool) -> None:
        self._counters = counters
        self.constraint = constraint
        self._sums = sums
        domains = sums.domains
        self._limit = constraint.max_skew - matches_itself
        self._few_domains = domains.count < constraint.min_domains
        lowest, highest = sums.extremes
        if self._few_domains:
            lowest = 0
        elif not domains.count:
            lowest = _NO_DOMAIN
        self._bound = self._limit + lowest
        self.idle = highest <= self._bound and domains.column.covered == counters.table.count
        """Whether no node is rejected."""

    def codes(self, view: Any) -> Any:
        """Codes of the rows of a view."""
        if isinstance(view, DeltaView):
            return self._codes_in_worlds(view)
        if self.idle:
            return 0
        column = self._sums.domains.column
        codes = (self._sums.by_id > self._bound).astype(np.int64)
        codes[-1] = MISSING
        return gathered(view.by_domain(column, codes))

    def _codes_in_worlds(self, view: DeltaView) -> Ints:
        """Codes where each row's world has other pods on that row."""
        ids = view.pick(self._sums.domains.column.ids)
        delta = self._delta(view)
        own = self._sums.by_id[ids]
        codes: Ints = (own + delta > self._limit + self._minima(own, delta)).astype(np.int64)
        codes[ids < 0] = MISSING
        return codes

    def _delta(self, view: DeltaView) -> Ints:
        """How many pods each row's world has more in the row's domain. Terminating pods count here, as upstream."""
        delta = np.zeros(view.size, np.int64)
        (namespace,) = self.constraint.scope.namespaces
        selector = self.constraint.selector
        selected = self._counters.pods((scope_in(namespace, selector),)).array()
        for position, sign, pod in view.deltas(view.pick(selected) > 0):
            if pod.namespace == namespace and selector.matches(pod.labels):
                delta[position] += sign
        delta[view.pick(self._sums.domains.ids) < 0] = 0
        return delta

    def _minima(self, own: Ints, delta: Ints) -> Any:
        """The smallest count of a domain in each row's world, in which only the row's own domain differs."""
        domains = self._sums.domains
        if self._few_domains:
            return 0
        if not domains.count:
            return _NO_DOMAIN
        present = self._sums.present
        lowest = int(present.min())
        second = int(np.partition(present, 1)[1]) if len(present) > 1 else _NO_DOMAIN
        others = np.where(own == lowest, second, lowest)
        return np.where(delta != 0, np.minimum(others, own + delta), lowest)


def hard_constraints(counters: Counters, pod: PodInfo, spread: Spread, comparison: bool) -> list[HardConstraint]:
    """The constraints counted over the nodes that are eligible for the pod."""
    found = []
    for constraint, eligible in zip(spread.constraints, spread.eligibilities(pod, comparison), strict=True):
        domains = counters.domains(constraint.key, rule=eligible.rule, fragment=eligible.fragment)
        sums = counters.pods((constraint.scope,), live=True).sums(domains)
        found.append(HardConstraint(counters, constraint, sums, constraint.selector.matches(pod.labels)))
    return found


def filter_codes(constraints: list[HardConstraint], view: Any) -> Any:
    """For each row the code of the first constraint that is not satisfied."""
    codes: Any = 0
    for constraint in constraints:
        more = constraint.codes(view)
        if isinstance(codes, int) and not codes:
            codes = more
        elif not isinstance(more, int) or more:
            codes = np.where(codes != 0, codes, more)
    return codes
