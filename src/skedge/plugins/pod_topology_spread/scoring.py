"""Soft constraints: nodes of emptier domains are liked better. Upstream: `plugins/podtopologyspread/scoring.go`."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint, Constraints, Eligibility
from skedge.snapshot.arith import Bools, Ints, round_half_away
from skedge.snapshot.counters import Counters
from skedge.snapshot.pods import PodInfo

IGNORED: Final = -1
"""Raw score of a node that lacks a key it should have: it ends up with 0, the worst."""


class SoftConstraints:
    """The constraints of one cycle with their weights, which depend on the feasible nodes."""

    def __init__(
        self,
        counters: Counters,
        pod: PodInfo,
        constraints: Constraints,
        view: Any,
        *,
        require_all: bool,
        comparison: bool,
    ) -> None:
        self._counters = counters
        self._constraints = constraints
        keys = [each.key for each in constraints]
        self._eligibility = Eligibility(pod, keys if require_all else (), comparison)
        self._require_all = require_all
        table = counters.table
        self._columns = [table.label_column(key) for key in keys]
        ignored = self._ignored(view)
        left = view.size if ignored is None else view.size - int(np.count_nonzero(ignored))
        self._weights = [
            math.log((left if each.key == HOSTNAME else self._size(i, view, ignored)) + 2)
            for i, each in enumerate(constraints)
        ]

    def _ignored(self, view: Any) -> Bools | None:
        """Rows that are left out for lack of a key; None: no row."""
        if not self._require_all:
            return None
        ignored: Any = None
        for column in self._columns:
            lacks = view.pick(column.ids) < 0
            if lacks.any():
                ignored = lacks if ignored is None else ignored | lacks
        return ignored  # type: ignore[no-any-return]

    def _size(self, i: int, view: Any, ignored: Bools | None) -> int:
        """In how many domains the rows are; rows without the key are in that of the empty value."""
        column = self._columns[i]
        ids = view.pick(column.ids)
        if ignored is not None:
            ids = ids[~ignored]
        seen = np.zeros(len(column.values) + 1, bool)
        seen[ids] = True
        empty = column.values.get("")
        return int(np.count_nonzero(seen)) - int(seen[-1] and empty >= 0 and seen[empty])

    def scores(self, view: Any) -> Ints:
        """Raw scores: the pods of each row's domains, weighted."""
        total: Any = 0.0
        for i, constraint in enumerate(self._constraints):
            total = total + (
                self._of_host(i, constraint, view)
                if constraint.key == HOSTNAME
                else self._of_domain(i, constraint, view)
            )
        raw: Ints = round_half_away(total)
        ignored = self._ignored(view)
        if ignored is not None:
            raw[ignored] = IGNORED
        return raw

    def _of_host(self, i: int, constraint: Constraint, view: Any) -> Any:
        """Pods on the node itself, whatever the inclusion policies say."""
        counts = view.pick(self._counters.pods((constraint.scope,), live=True).array())
        scores = counts * self._weights[i] + (constraint.max_skew - 1.0)
        lacks = view.pick(self._columns[i].ids) < 0
        return np.where(lacks, 0.0, scores)

    def _of_domain(self, i: int, constraint: Constraint, view: Any) -> Any:
        eligibility, column = self._eligibility, self._columns[i]
        domains = self._counters.domains(
            constraint.key,
            rule=eligibility.rule(constraint),
            fragment=eligibility.fragment(constraint),
            empty_for_missing=not self._require_all,
        )
        sums = self._counters.pods((constraint.scope,), live=True).sums(domains).by_domain
        scores = np.zeros(len(column.values) + 1)  # the last one: rows without the key
        scores[: len(sums)] = sums * self._weights[i] + (constraint.max_skew - 1.0)
        scores[len(sums) : -1] = constraint.max_skew - 1.0
        return scores[view.pick(column.ids)]


class SpreadNormalizer:
    """The emptiest domain gets 100, the fullest the least; ignored nodes 0."""

    __slots__ = ()

    def bounds(self, scores: Any) -> Hashable:
        counted = scores[scores != IGNORED]
        return (int(counted.min()), int(counted.max())) if len(counted) else (0, 0)

    def apply(self, scores: Any, bounds: Any) -> Any:
        smallest, largest = bounds
        if largest == 0:
            return np.where(scores == IGNORED, 0, MAX_NODE_SCORE)
        return np.where(scores == IGNORED, 0, MAX_NODE_SCORE * (largest + smallest - scores) // largest)

    def keeps(self, bounds: Any, score: int, added: bool) -> bool:
        return False
