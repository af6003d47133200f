"""Required terms, of the pod and of pods that are there. Upstream: `plugins/interpodaffinity/filtering.go`."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any, Final

import numpy as np

from skedge.framework.plugin import UNRESOLVABLE
from skedge.plugins.inter_pod_affinity.concerns import Concerns
from skedge.plugins.inter_pod_affinity.domains import Tallies
from skedge.snapshot.arith import Bools, Ints, extremes
from skedge.snapshot.by_domain import gathered
from skedge.snapshot.counters import Counters
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView

EXISTING_ANTI_AFFINITY: Final = 1
ANTI_AFFINITY: Final = 2
AFFINITY: Final = UNRESOLVABLE | 1
"""Codes; the larger one is what the reference looks at first."""

Deltas = defaultdict[str, Ints]


class RequiredTerms:
    """What one pod's required terms and those that match it come to in each domain.

    Filter looks up codes by domain, a table for each topology key.
    """

    def __init__(self, counters: Counters, pod: PodInfo, concerns: Concerns) -> None:
        self._counters = counters
        self._pod = pod
        self._concerns = concerns
        self._all = concerns.all
        self._existing = Tallies(counters, concerns.existing)
        self._anti = Tallies(counters, concerns.anti)
        self._affine = Tallies(counters, concerns.affine)
        columns = counters.table.label_column
        self._tables = [(columns(key), codes) for key in self._keys() if (codes := self._by_domain(key)) is not None]

    def _keys(self) -> dict[str, Any]:
        return {**self._affine.by_key, **self._anti.by_key, **self._existing.by_key}

    @cached_property
    def _matches_itself(self) -> bool:
        return self._all is not None and bool(self._all.has(self._pod))

    @property
    def idle(self) -> bool:
        """Whether nothing here can reject a node."""
        return self._all is None and not self._concerns.anti and not self._existing.anything

    def _by_domain(self, key: str) -> Any:
        """The code of each domain of a key, by id; None where no node is rejected."""
        codes: Any = None
        existing, anti, affine = (each.by_key.get(key) for each in (self._existing, self._anti, self._affine))
        if existing is not None and existing.anything:
            codes = existing.positive  # EXISTING_ANTI_AFFINITY is 1
        if anti is not None and anti.anything:
            more = anti.positive * ANTI_AFFINITY
            codes = more if codes is None else np.maximum(codes, more, out=more)
        if affine is not None:
            lacking = affine.column.covered < self._counters.table.count
            for_first = not self._affine.anything and self._matches_itself  # the first pod of its kind may go anywhere
            empty = not for_first and extremes(affine.by_domain[:-1])[0] <= 0
            if codes is not None:
                codes = codes.copy()
            elif lacking or empty:
                codes = np.zeros(len(affine.by_domain), np.int64)
            if empty:
                codes[affine.by_domain <= 0] = AFFINITY
            if codes is not None:
                codes[-1] = AFFINITY
        return codes

    def codes(self, view: Any) -> Any:
        """Codes of the rows of a view."""
        if isinstance(view, DeltaView):
            return self._codes_in_worlds(view)
        found: Any = 0
        for column, codes in self._tables:
            more = gathered(view.by_domain(column, codes))
            found = np.maximum(found, more) if isinstance(found, np.ndarray) or found else more
        return found

    def _codes_in_worlds(self, view: DeltaView) -> Any:
        """Codes where each row's world has other pods on that row."""
        affine, anti, existing = self._deltas(view)
        codes = np.zeros(view.size, np.int64)
        keys = dict.fromkeys((*self._keys(), *existing))
        counted = np.full(view.size, sum(int(t.by_domain.sum()) for t in self._affine.by_key.values()), np.int64)
        lacking = np.zeros(view.size, bool)  # a key of a required affinity term
        failing = np.zeros(view.size, bool)  # a required affinity term
        for key in keys:
            ids = view.pick(view.table.label_column(key).ids)
            has = ids >= 0
            if key in self._affine.by_key:
                lacking |= ~has
                failing |= ~has | (self._affine.get(key, ids) + affine <= 0)
                counted += np.where(has, affine, 0)
            if key in self._anti.by_key:
                codes[has & (self._anti.get(key, ids) + anti[key] > 0)] = ANTI_AFFINITY
            repelling = has & (self._existing.get(key, ids) + existing[key] > 0) & (codes == 0)
            codes[repelling] = EXISTING_ANTI_AFFINITY
        if self._matches_itself:
            failing &= lacking | (counted != 0)
        codes[failing] = AFFINITY
        return codes

    @cached_property
    def _of_interest(self) -> Bools:
        """Rows with a pod that some term is about, or that holds one about this pod."""
        rows = np.zeros(self._counters.table.capacity, bool)
        for _, counts, _ in (*self._concerns.existing, *self._concerns.anti, *self._concerns.affine):
            counts.mark(rows)
        return rows

    def _deltas(self, view: DeltaView) -> tuple[Ints, Deltas, Deltas]:
        """For each row, how many more pods match all affinity terms, match anti-affinity terms, and hold such terms
        that match the pod; the latter two by topology key."""
        affine = np.zeros(view.size, np.int64)
        anti: Deltas = defaultdict(lambda: np.zeros(view.size, np.int64))
        existing: Deltas = defaultdict(lambda: np.zeros(view.size, np.int64))
        pod = self._pod
        of_namespace = self._counters.namespace_labels(pod.namespace)
        for position, sign, other in view.deltas(view.pick(self._of_interest)):
            if self._all is not None and self._all.has(other):
                affine[position] += sign
            for key, count, _ in self._concerns.anti:
                if count.has(other):
                    anti[key][position] += sign
            for term in other.affinity_terms.anti:
                if term.scope.matches(pod.namespace, pod.labels, of_namespace):
                    existing[term.topology_key][position] += sign
        return affine, anti, existing
