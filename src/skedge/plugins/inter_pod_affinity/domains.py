"""Sums of counters by topology domain, gathered for one cycle."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.counters import Counters
from skedge.snapshot.counters_rows import RowCounts
from skedge.snapshot.nodes import LabelColumn

_FEW: Final = 64  # so many rows are added one by one, without keeping sums


class Tally:
    """Numbers by domain of one topology key; the last one, always 0, is for rows without the key."""

    __slots__ = ("_counters", "_key", "_numbers", "anything", "column")

    def __init__(self, counters: Counters, key: str) -> None:
        self._counters = counters
        self._key = key
        self.column: LabelColumn = counters.table.label_column(key)
        self._numbers: Ints | None = None
        self.anything = False
        """Whether a counted pod was on a node with the key."""

    @property
    def by_domain(self) -> Ints:
        if self._numbers is None:
            self._numbers = np.zeros(len(self.column.values) + 1, np.int64)
        return self._numbers

    def add(self, counts: RowCounts, factor: int = 1) -> None:
        """Adds a counter's sums, multiplied."""
        if not counts.total:
            return
        few = counts.few
        if few is not None and len(few) <= _FEW:
            ids, by_domain = self.column.ids, self.by_domain
            for row, number in few.items():
                ident = ids.item(row)
                if ident >= 0:
                    by_domain[ident] += number * factor
                    self.anything = True
            return
        sums = counts.sums(self._counters.domains(self._key))
        if not sums.total:
            return
        known = sums.by_domain
        if self._numbers is None:
            self._numbers = np.empty(len(self.column.values) + 1, np.int64)
            np.multiply(known, factor, out=self._numbers[: len(known)])
            self._numbers[len(known) :] = 0
        else:
            self._numbers[: len(known)] += known if factor == 1 else known * factor
        self.anything = True


class Tallies:
    """A `Tally` for each key that is asked for."""

    __slots__ = ("_counters", "by_key")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.by_key: dict[str, Tally] = {}

    def of(self, key: str) -> Tally:
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Tally(self._counters, key)
        return found

    @property
    def anything(self) -> bool:
        return any(tally.anything for tally in self.by_key.values())

    def get(self, key: str, ids: Any) -> Any:
        """Numbers of rows with these domain ids; 0 for a key without a tally."""
        tally = self.by_key.get(key)
        return 0 if tally is None else tally.by_domain[ids]
