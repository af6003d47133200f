"""Sums of counters by topology domain, gathered for one cycle."""

from __future__ import annotations

from typing import Any

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.counters import Counters
from skedge.snapshot.counters_rows import RowCounts
from skedge.snapshot.nodes import LabelColumn


class Tally:
    """Numbers by domain of one topology key; the last one, always 0, is for rows without the key."""

    __slots__ = ("_domains", "_numbers", "_owned", "anything", "column")

    def __init__(self, counters: Counters, key: str) -> None:
        self._domains = counters.domains(key)
        self.column: LabelColumn = counters.table.label_column(key)
        self._numbers: Ints | None = None
        self._owned = False  # whether nobody else has the numbers
        self.anything = False
        """Whether a counted pod was on a node with the key."""

    @property
    def by_domain(self) -> Ints:
        """Not to be written to."""
        if self._numbers is None:
            return self._own()
        return self._numbers

    def _own(self) -> Ints:
        if self._numbers is None:
            self._numbers = np.zeros(len(self.column.values) + 1, np.int64)
        elif not self._owned:
            self._numbers = self._numbers.copy()
        self._owned = True
        return self._numbers

    def add(self, counts: RowCounts, factor: int = 1) -> None:
        """Adds a counter's sums, multiplied."""
        if not counts.total:
            return
        sums = counts.sums_or_few(self._domains)
        if sums is None:
            ids, numbers = self.column.ids, self._own()
            for row, number in (counts.few or {}).items():
                ident = ids.item(row)
                if ident >= 0:
                    numbers[ident] += number * factor
                    self.anything = True
        elif sums.total:
            self.anything = True
            if self._numbers is None:
                self._numbers, self._owned = (sums.by_id, False) if factor == 1 else (sums.by_id * factor, True)
            else:
                numbers = self._own()
                numbers += sums.by_id if factor == 1 else sums.by_id * factor


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
