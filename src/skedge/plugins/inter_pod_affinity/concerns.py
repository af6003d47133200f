"""Which counts the pod affinity of a pod looks at: of its own terms, and of terms of others that are about it."""

from __future__ import annotations

from typing import Any, Final

from skedge.plugins.inter_pod_affinity.domains import Parts, Tallies, Worth
from skedge.snapshot.counters import Counters, Kind, PodCount
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.counters_rows import RowCounts
from skedge.snapshot.pods import PodInfo, Shared

_KEPT: Final = 256
_LIMIT: Final = 48 << 20
"""Bytes of what is worth something."""


class Concerns:
    """The same for all pods with these terms, labels and namespace, while the counters' `version` stays."""

    __slots__ = ("_counters", "_hard_weight", "_worth", "affine", "all", "anti", "existing", "version")

    def __init__(self, counters: Counters, pod: PodInfo, hard_weight: int) -> None:
        terms = pod.affinity_terms
        self._counters = counters
        self._hard_weight = hard_weight
        self._worth: Parts | None = None
        matching = counters.matching(Kind.ANTI, pod.namespace, pod.labels) if counters.held(Kind.ANTI) else []
        self.existing: Parts = tuple((holders.term.topology_key, holders, 1) for holders in matching)
        """Pods that are there and hold a required anti-affinity term about the pod."""
        self.anti: tuple[tuple[str, PodCount, int], ...] = tuple(
            (term.topology_key, counters.pods((term.scope,)), 1) for term in terms.anti
        )
        self.all: PodCount | None = None
        """Pods that all required affinity terms of the pod are about."""
        self.affine: Parts = ()
        if terms.affinity:
            self.all = counters.pods(tuple(term.scope for term in terms.affinity))
            keys = dict.fromkeys(term.topology_key for term in terms.affinity)
            self.affine = tuple((key, self.all, 1) for key in keys)
        self.version = counters.version  # after asking, which may have pushed other counts out

    @property
    def known_worth(self) -> bool:
        """Whether `worth` was asked for before."""
        return self._worth is not None

    def worth(self, pod: PodInfo) -> Parts:
        """What is worth something to the pod: its own preferences, and those of pods that are there about it.

        A required affinity term of a pod that is there counts for the hard weight.
        """
        if self._worth is None:
            counters, weight = self._counters, self._hard_weight
            found: list[tuple[str, RowCounts, int]] = [
                (term.topology_key, counters.pods((term.scope,)), preferred)
                for preferred, term in pod.affinity_terms.preferred
            ]
            if counters.held(Kind.PREFERRED):
                holding = counters.matching(Kind.PREFERRED, pod.namespace, pod.labels)
                found += [(holders.term.topology_key, holders, holders.weight) for holders in holding]
            if weight > 0 and counters.held(Kind.AFFINITY):
                holding = counters.matching(Kind.AFFINITY, pod.namespace, pod.labels)
                found += [(holders.term.topology_key, holders, weight) for holders in holding]
            self._worth = tuple(found)
        return self._worth


class KnownConcerns:
    """Concerns of pods that came lately, and what pods are worth to these."""

    def __init__(self, counters: Counters, hard_weight: int) -> None:
        self._counters = counters
        self._hard_weight = hard_weight
        self._known = Shared(_KEPT)
        self._worth: Recent[Worth] = Recent(_LIMIT)  # by the concerns

    def of(self, pod: PodInfo) -> Concerns:
        """Those of a pod, current."""
        key: Any = (pod.namespace, pod.affinity_terms, tuple(pod.labels.items()))
        found: Concerns | None = self._known.get(key)
        if found is None or found.version != self._counters.version:
            if found is not None:
                self._worth.pop(found)
            found = Concerns(self._counters, pod, self._hard_weight)
            self._known.put(key, found)
        return found

    def worth(self, pod: PodInfo) -> Tallies | Worth:
        """What pods that are there are worth to a pod, current. Where it is asked for the first time, which may well be
        the last, it is added up; from then on it is kept."""
        concerns = self.of(pod)
        if not concerns.known_worth:
            return Tallies(self._counters, concerns.worth(pod))
        found = self._worth.get(concerns)
        if found is None:
            found = Worth(self._counters, concerns.worth(pod))
            self._worth.put(concerns, found)
        else:
            found.sync()
        return found
