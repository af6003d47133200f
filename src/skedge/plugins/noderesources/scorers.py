"""Scoring strategies of NodeResourcesFit. Upstream: `least_allocated.go`, `most_allocated.go`,
`requested_to_capacity_ratio.go`.

Each gives 0..100 for one resource of a node; resources a node does not have take no part, not even with their weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.plugins.helpers.shape import broken_line
from skedge.snapshot.arith import Ints, everywhere, percent, positive, round_half_away, small_div, trunc_div, where
from skedge.snapshot.stacks import Floats, Stack

Scorer = Callable[[Any, Any, Any], Any]
"""`(requested, allocatable, divisor) -> score`; the divisor is the view's. What it makes of rows that are overcommitted
does not count: with narrow amounts all others are small enough for it."""
StackScorer = Callable[[Stack, Sequence[int]], Floats]
"""The same for what a pod asks of each resource of a stack; shape (resources, rows)."""


def least_allocated(requested: Any, allocatable: Any, divisor: Any) -> Any:
    return percent(positive(allocatable - requested), divisor)


def least_allocated_of_stack(stack: Stack, amounts: Sequence[int]) -> Floats:
    left = stack.free_nonzero - np.array(amounts, np.float64)[:, None]
    if not stack.fits(amounts, nonzero=True):
        np.maximum(left, 0.0, out=left)
    share: Floats = percent(left, stack.allocatable)
    return share


def most_allocated(requested: Any, allocatable: Any, divisor: Any) -> Any:
    capped = where(requested > allocatable, allocatable, requested)
    return percent(capped, divisor)


def most_allocated_of_stack(stack: Stack, amounts: Sequence[int]) -> Floats:
    left = stack.free_nonzero - np.array(amounts, np.float64)[:, None]
    np.maximum(left, 0.0, out=left)
    share: Floats = percent(np.subtract(stack.allocatable, left, out=left), stack.allocatable)
    return share


def ratio(shape: Sequence[tuple[int, int]]) -> Scorer:
    """RequestedToCapacityRatio; `shape` is (utilization, score x 10) by rising utilization."""

    def score(requested: Any, allocatable: Any, divisor: Any) -> Any:
        utilization = percent(requested, divisor)
        utilization = where((allocatable == 0) | (requested > allocatable), MAX_NODE_SCORE, utilization)
        return broken_line(shape, utilization)

    return score


def average(scores: Sequence[tuple[Any, Any, int]], zero: Any) -> Any:
    """Weighted mean of (score, present, weight), truncating; 0 where nothing is present."""
    if scores and all(everywhere(present) for _, present, _ in scores):  # the same, without a look at each row
        total, _, weights = scores[0]
        if weights != 1:
            total = total * weights
        for score, _, weight in scores[1:]:
            total = total + (score if weight == 1 else score * weight)
            weights += weight
        return small_div(total, weights or 1)
    total, weights = zero, zero
    for score, present, weight in scores:
        total = total + where(present, score * weight, 0)
        weights = weights + where(present, weight, 0)
    return where(weights == 0, 0, trunc_div(total, where(weights == 0, 1, weights)))


def average_of_stack(scores: Floats, weights: Sequence[int]) -> Ints:
    """`average` of scores that lie side by side, all of them present; shape (resources, rows) -> (rows,)."""
    total: Floats = scores[0] if weights[0] == 1 else scores[0] * weights[0]
    for score, weight in zip(scores[1:], weights[1:], strict=True):
        total += score if weight == 1 else score * weight
    total /= sum(weights)
    return total.astype(np.int64)


def rounded_average(scores: Sequence[tuple[Any, Any, int]], zero: Any) -> Any:
    """As `average`, over the resources with a score above 0 and rounded (half away from zero), in float64."""
    total, weights = zero, zero
    for score, present, weight in scores:
        counted = present & (score > 0)
        total = total + where(counted, score * weight, 0)
        weights = weights + where(counted, weight, 0)
    divisor = where(weights == 0, 1, weights)
    if isinstance(total, np.ndarray):
        return round_half_away(total.astype(np.float64) / divisor.astype(np.float64))
    return round_half_away(float(total) / float(divisor))
