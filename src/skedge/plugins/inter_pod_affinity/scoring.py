"""Preferred terms, of the pod and of pods that are there. Upstream: `plugins/interpodaffinity/scoring.go`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.plugins.inter_pod_affinity.domains import Tallies, Worth
from skedge.snapshot.arith import truncate
from skedge.snapshot.by_domain import gathered


def raw_scores(worth: Tallies | Worth, view: Any) -> Any:
    """Sums over the domains of each row; may be negative."""
    total: Any = None
    for numbers in worth.by_key.values():
        part = numbers.of_view(view)
        total = part if total is None else gathered(total) + gathered(part)
    return total


def best_raw(worth: Tallies | Worth) -> int:
    """No row's sum is above it."""
    return sum(numbers.largest for numbers in worth.by_key.values())


class MinMaxNormalizer:
    """The smallest score becomes 0, the largest 100; all equal: 0."""

    __slots__ = ()

    def bounds(self, scores: Any) -> Hashable:
        return int(scores.min()), int(scores.max())

    def apply(self, scores: Any, bounds: Any) -> Any:
        smallest, largest = bounds
        if smallest == largest:
            return np.zeros_like(scores)
        return truncate(float(MAX_NODE_SCORE) * ((scores - smallest) / float(largest - smallest)))

    def top(self, bounds: Any) -> int:
        """The raw score that becomes 100 where not all are equal."""
        return int(bounds[1])

    def span(self, bounds: Any) -> tuple[int, int]:
        """The smallest and the largest raw score."""
        smallest, largest = bounds
        return smallest, largest

    def keeps(self, bounds: Any, score: int, added: bool) -> bool:
        return False
