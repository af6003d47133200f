"""Which candidate is taken. Upstream: `pickOneNodeForPreemption`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod


class Candidate(NamedTuple):
    """A node and the pods that must go for the preemptor, most important first."""

    node: str
    victims: Sequence[PlacedPod]
    num_pdb_violations: int


class Measures(NamedTuple):
    """What candidates are compared by, an array each.

    In this order: fewest victims that break a budget, lowest priority of the most important victim, lowest sum of
    priority + 2^31 over all victims, fewest victims, latest start of the longest running one of the most important.
    """

    violations: Ints
    first: Ints
    cost: Ints
    victims: Ints
    start: Any  # float64, seconds since the epoch; infinite for a pod that has not started

    def best(self) -> Ints:
        """Indexes of the candidates that no other beats; at least one unless there are none."""
        left = np.arange(len(self.violations))
        for measure in (self.violations, self.first, self.cost, self.victims, -self.start):
            values = measure[left]
            if len(left) > 1:
                left = left[values == values.min()]
        return left


def measure(candidates: Sequence[Candidate]) -> Measures:
    """The measures of candidates given as pods (those that extenders sent back)."""
    first = [max(pod.priority for pod in c.victims) for c in candidates]
    start = [
        min(pod.start_time for pod in c.victims if pod.priority == top)
        for c, top in zip(candidates, first, strict=True)
    ]
    return Measures(
        np.array([c.num_pdb_violations for c in candidates], np.int64),
        np.array(first, np.int64),
        np.array([sum(pod.priority + (1 << 31) for pod in c.victims) for c in candidates], np.int64),
        np.array([len(c.victims) for c in candidates], np.int64),
        np.array(start, np.float64),
    )
