"""Soft constraints: nodes of emptier domains are liked better. Upstream: `plugins/podtopologyspread/scoring.go`."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint, Spread
from skedge.snapshot.arith import extremes, where
from skedge.snapshot.by_domain import gathered
from skedge.snapshot.counters import Counters
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Bare

IGNORED: Final = -1
"""Raw score of a node that lacks a key it should have: it ends up with 0, the worst."""


class SoftConstraints:
    """The constraints of one cycle with their weights, which depend on the feasible nodes."""

    __slots__ = (
        "_constraints",
        "_counters",
        "_eligibilities",
        "_ids",
        "_ignored",
        "_plain",
        "_require_all",
        "_scores",
        "_view",
        "_weights",
    )

    def __init__(self, counters: Counters, pod: PodInfo, spread: Spread, view: Any, *, comparison: bool) -> None:
        self._counters = counters
        self._constraints = constraints = spread.constraints
        self._eligibilities = spread.eligibilities(pod, comparison)
        self._require_all = spread.require_all
        self._plain = [counters.domains(key) for key in spread.keys]
        for domains in self._plain:
            domains.sync()
        self._scores: dict[int, Any] = {}
        self._look_at(view)
        left = view.size if self._ignored is None else view.size - int(np.count_nonzero(self._ignored))
        self._weights = [
            math.log((left if each.key == HOSTNAME else self._size(i, left)) + 2) for i, each in enumerate(constraints)
        ]

    def _look_at(self, view: Any) -> None:
        """Turns to the rows of a view: which are left out for lack of a key (None: no row)."""
        self._view = view
        self._ids: dict[int, Any] = {}
        self._ignored: Any = None
        for i, domains in enumerate(self._plain) if self._require_all else ():
            if domains.covered < view.table.count or isinstance(view, Bare):
                lacks = self._domain_ids(i) < 0
                self._ignored = lacks if self._ignored is None else self._ignored | lacks

    def _domain_ids(self, i: int) -> Any:
        found = self._ids.get(i)
        if found is None:
            found = self._ids[i] = self._view.pick(self._plain[i].column.ids)
        return found

    def _size(self, i: int, left: int) -> int:
        """In how many domains the `left` rows are; rows without the key are in that of the empty value."""
        domains, count = self._plain[i], self._counters.table.count
        known = not isinstance(self._view, Bare) and (self._require_all or domains.covered == count)
        if known and count - left < domains.fewest:
            return domains.count  # too few rows are missing for a domain to be
        ids, values = self._domain_ids(i), domains.column.values
        if self._ignored is not None:
            ids = ids[~self._ignored]
        seen = np.zeros(len(values) + 1, bool)
        seen[ids] = True
        empty = values.get("")
        return int(np.count_nonzero(seen)) - int(seen[-1] and empty >= 0 and seen[empty])

    def scores(self, view: Any) -> Any:
        """Raw scores: the pods of each row's domains, weighted."""
        if view is not self._view:
            self._look_at(view)
        if len(self._constraints) == 1 and self._constraints[0].key != HOSTNAME and self._ignored is None:
            return view.by_domain(self._plain[0].column, _rounded(self._by_domain(0)))
        total: Any = 0.0
        for i, constraint in enumerate(self._constraints):
            if constraint.key == HOSTNAME:
                total = total + self._of_host(i, constraint)
            else:
                total = total + gathered(view.by_domain(self._plain[i].column, self._by_domain(i)))
        raw = _rounded(total)
        return raw if self._ignored is None else where(self._ignored, IGNORED, raw)

    def best_raw(self) -> int:
        """No node's raw score is below it, but for nodes that are left out for lack of a key."""
        count = self._counters.table.count
        total = 0.0
        for i, constraint in enumerate(self._constraints):
            if self._plain[i].covered < count:
                continue
            if constraint.key == HOSTNAME:
                fewest = self._counters.pods((constraint.scope,), live=True).fewest
                total += fewest * self._weights[i] + (constraint.max_skew - 1.0)
            else:
                total += extremes(self._by_domain(i)[:-1])[0]
        return int(total + 0.5)

    def _of_host(self, i: int, constraint: Constraint) -> Any:
        """Pods on the node itself, whatever the inclusion policies say."""
        bare = isinstance(self._view, Bare)
        counts = self._view.full(0) if bare else self._counters.pods((constraint.scope,), live=True).on(self._view)
        scores = counts * self._weights[i] + (constraint.max_skew - 1.0)
        if not bare and self._plain[i].covered == self._counters.table.count:
            return scores
        return where(self._domain_ids(i) < 0, 0.0, scores)

    def _by_domain(self, i: int) -> Any:
        """Scores by domain; the last one for rows without the key."""
        found = self._scores.get(i)
        if found is None:
            found = self._scores[i] = self._count_domains(i)
        return found

    def _count_domains(self, i: int) -> Any:
        constraint, eligible = self._constraints[i], self._eligibilities[i]
        domains = self._counters.domains(
            constraint.key, rule=eligible.rule, fragment=eligible.fragment, empty_for_missing=not self._require_all
        )
        sums = self._counters.pods((constraint.scope,), live=True).sums(domains)
        scores = sums.by_id * self._weights[i] + (constraint.max_skew - 1.0)
        scores[-1] = 0.0
        return scores


def _rounded(scores: Any) -> Any:
    """Half up, for nothing is negative here."""
    return int(scores + 0.5) if isinstance(scores, float) else (scores + 0.5).astype(np.int64)


class SpreadNormalizer:
    """The emptiest domain gets 100, the fullest the least; ignored nodes 0."""

    __slots__ = ()

    def bounds(self, scores: Any) -> Hashable:
        """(smallest, largest, whether there are ignored rows)"""
        smallest = int(scores.min())
        if smallest != IGNORED:
            return smallest, int(scores.max()), False
        counted = scores[scores != IGNORED]
        return (int(counted.min()), int(counted.max()), True) if len(counted) else (0, 0, True)

    def apply(self, scores: Any, bounds: Any) -> Any:
        smallest, largest, ignoring = bounds
        if largest == 0:
            scaled = np.full_like(scores, MAX_NODE_SCORE)
        else:
            scaled = MAX_NODE_SCORE * (largest + smallest - scores) // largest
        return np.where(scores == IGNORED, 0, scaled) if ignoring else scaled

    def top(self, bounds: Any) -> int:
        """The raw score that becomes 100."""
        return int(bounds[0])

    def span(self, bounds: Any) -> tuple[int, int]:
        """The smallest and the largest raw score."""
        smallest, largest, ignoring = bounds
        return (IGNORED if ignoring else smallest), largest

    def keeps(self, bounds: Any, score: int, added: bool) -> bool:
        return False
