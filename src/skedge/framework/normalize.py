"""Normalisers that several plugins use. Upstream: `plugins/helper/normalize_score.go`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE


class DefaultNormalizer:
    """Scales the highest score to 100 (or, reversed, to 0). All zero stays zero (reversed: becomes 100)."""

    __slots__ = ("_reverse",)

    def __init__(self, *, reverse: bool = False) -> None:
        self._reverse = reverse

    def bounds(self, scores: Any) -> int:
        return int(scores.max())

    def apply(self, scores: Any, bounds: int) -> Any:
        if bounds == 0:
            if not self._reverse:
                return scores
            return np.full_like(scores, MAX_NODE_SCORE) if isinstance(scores, np.ndarray) else MAX_NODE_SCORE
        scaled = scores * MAX_NODE_SCORE // bounds
        return MAX_NODE_SCORE - scaled if self._reverse else scaled

    def keeps(self, bounds: int, score: int, added: bool) -> bool:
        return score <= bounds if added else score < bounds or bounds == 0


FORWARD: Final = DefaultNormalizer()
REVERSE: Final = DefaultNormalizer(reverse=True)
