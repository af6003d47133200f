"""SelectorSpread: pods of one service or controller are spread over nodes, and more so over zones.

Upstream (v1.20): `plugins/selectorspread`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skedge import names
from skedge.framework.plugin import MAX_NODE_SCORE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Status
from skedge.plugins.legacy.matching import common_selector
from skedge.snapshot.affinity_terms import scope_in
from skedge.snapshot.arith import Ints
from skedge.snapshot.counters import Counters
from skedge.snapshot.lookup import Lookup
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

ZONE_WEIGHT: Final = 2.0 / 3.0
ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ABSENT: Final = -1


class SelectorSpread:
    name = names.SELECTOR_SPREAD
    depends = Depends.CLUSTER
    normalizer = None  # zones take part, so `score` does what normalising did

    def __init__(self, args: Any, handle: Any) -> None:
        self._listers = handle.listers
        self._counters: Counters = handle.counters
        self._words: dict[str, int] = {"": 0}
        self._lookups: dict[str, Lookup] = {}

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        """Pods with constraints of their own are left to PodTopologySpread."""
        if pod.pod.spec.topology_spread_constraints:
            return SKIP
        state.write(self.name, common_selector(self._listers, pod))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        selector = state.read(self.name)
        if selector.empty:
            counts = view.full(0)
        else:
            scope = scope_in(pod.namespace, selector)
            counts = view.pick(self._counters.pods((scope,), live=True).array()).astype(np.int64)
        scores = _emptiness(counts)
        zones = self._zones(view)
        zoned = zones > 0
        if zoned.any():
            _, index = np.unique(zones[zoned], return_inverse=True)
            index = index.reshape(-1)
            sums = np.zeros(int(index.max()) + 1, np.int64)
            np.add.at(sums, index, counts[zoned])
            of_zone = _emptiness(sums)[index]
            scores[zoned] = scores[zoned] * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * of_zone
        return scores.astype(np.int64)

    def _zones(self, view: View) -> Ints:
        """A number for each row's region and zone; 0 where the node has neither."""
        region, zone = self._first(view, REGION_LABELS), self._first(view, ZONE_LABELS)
        found: Ints = region * len(self._words) + zone
        return found

    def _first(self, view: View, keys: tuple[str, str]) -> Ints:
        """The old label where a node has it, else the new one; as the number of the word."""
        old, new = (view.by_label(key, self._lookup_of(key)) for key in keys)
        found: Ints = np.maximum(np.where(old == _ABSENT, new, old), 0)
        return found

    def _lookup_of(self, key: str) -> Lookup:
        return self._lookups.setdefault(key, Lookup(self._word))

    def _word(self, value: str | None) -> int:
        return _ABSENT if value is None else self._words.setdefault(value, len(self._words))


def _emptiness(counts: Ints) -> Any:
    """100 for no pod, 0 for as many as the fullest has; float64."""
    most = int(counts.max()) if len(counts) else 0
    if not most:
        return np.full(len(counts), float(MAX_NODE_SCORE))
    return MAX_NODE_SCORE * ((most - counts) / float(most))
