"""Shapes: scores as a broken line over utilization. Upstream: `plugins/helper/shape_score.go`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from skedge.snapshot.arith import trunc_div, where


def broken_line(shape: Sequence[tuple[int, int]], at: Any) -> Any:
    """Piecewise linear function through the points of `shape`, flat outside; division truncates toward zero."""
    value = where(at <= shape[0][0], shape[0][1], shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        value = where((at > x0) & (at <= x1), y0 + trunc_div((y1 - y0) * (at - x0), x1 - x0), value)
    return value
