"""How well a node's storage would be used. Upstream: `plugins/volumebinding/scorer.go`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.plugins.helpers.shape import broken_line
from skedge.plugins.helpers.volumes import capacity, class_of, requested
from skedge.plugins.volume_binding.capacities import UNKNOWN, Capacities
from skedge.plugins.volume_binding.filtering import Found
from skedge.plugins.volume_binding.offers import Offer
from skedge.plugins.volume_binding.pools import NONE
from skedge.snapshot.arith import Ints, round_half_away, trunc_div


class StorageUse:
    """Requested and available bytes of each class, by row; a class counts on the rows where something was added."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes: dict[str, tuple[Ints, Ints, Any]] = {}

    def _of(self, name: str) -> tuple[Ints, Ints, Any]:
        if name not in self._classes:
            zeros = np.zeros(self._size, np.int64)
            self._classes[name] = (zeros, zeros.copy(), np.zeros(self._size, bool))
        return self._classes[name]

    def add(self, name: str, amount: int, available: Any, rows: Any, *, instead: bool = False) -> None:
        """`instead`: what is available replaces what was said before."""
        total, most, counts = self._of(name)
        total += np.where(rows, amount, 0)
        most[:] = np.where(rows, available if instead else most + available, most)
        counts |= rows

    def scores(self, shape: Sequence[tuple[int, int]]) -> Ints:
        """Mean over the classes of each row, 0 where there are none. `shape`: (utilization, score) by utilization."""
        total = np.zeros(self._size, np.int64)
        number = np.zeros(self._size, np.int64)
        for amount, available, counts in self._classes.values():
            full = (available == 0) | (amount > available)
            used = trunc_div(amount * MAX_NODE_SCORE, np.where(available == 0, 1, available))
            score = broken_line(shape, np.where(full, MAX_NODE_SCORE, used))
            total += np.where(counts, score, 0)
            number += counts
        return np.where(number == 0, 0, round_half_away(total / np.where(number == 0, 1, number)))


def storage_use(found: Found, offers: dict[int, Offer], capacities: Capacities, view: Any) -> StorageUse:
    """Of the free volumes the claims would get, or, on rows without any, of the storage they would be made from."""
    use = StorageUse(view.size)
    static = np.zeros(view.size, bool)
    for claim, numbers in found.matches:
        rows = numbers != NONE
        static |= rows
        available = np.zeros(view.size, np.int64)
        for number in np.unique(numbers[rows]).tolist():
            size = capacity(offers[number].volume)
            available[numbers == number] = 0 if size is None else size.value()
        amount = requested(claim)
        use.add(class_of(claim), 0 if amount is None else amount.value(), available, rows)
    for what, rows in found.provisions:
        reached = capacities.reached(what.storage_class, what.size, view)
        counted = rows & ~static & (reached != UNKNOWN)
        use.add(what.claim.spec.storage_class_name or "", what.size or 0, reached, counted, instead=True)
    return use
