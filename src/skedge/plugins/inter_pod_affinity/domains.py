"""Sums of counters by topology domain, gathered for one cycle."""

from __future__ import annotations

from typing import Any

import numpy as np

from skedge.snapshot.arith import Ints, extremes
from skedge.snapshot.blends import Blend
from skedge.snapshot.counters import Counters
from skedge.snapshot.counters_rows import DomainSums, RowCounts
from skedge.snapshot.nodes import LabelColumn

Parts = tuple[tuple[str, RowCounts, int], ...]
"""(topology key, counts, what each counted pod is worth)"""


class Tally:
    """Numbers by domain of one topology key; the last one, always 0, is for rows without the key."""

    __slots__ = ("_by_domain", "_domains", "_few", "_sums", "anything", "column")

    def __init__(self, counters: Counters, key: str) -> None:
        self._domains = counters.domains(key)
        self.column: LabelColumn = counters.table.label_column(key)
        self._sums: list[tuple[DomainSums, int]] = []
        self._few: list[tuple[int, int]] = []  # (domain, number)
        self._by_domain: Ints | None = None
        self.anything = False
        """Whether a counted pod was on a node with the key."""

    def add(self, counts: RowCounts, factor: int) -> None:
        """Adds a counter's sums, multiplied."""
        if not counts.total:
            return
        sums = counts.sums_or_few(self._domains)
        if sums is not None:
            if sums.total:
                self._sums.append((sums, factor))
                self.anything = True
            return
        ids = self.column.ids
        for row, number in (counts.few or {}).items():
            ident = ids.item(row)
            if ident >= 0:
                self._few.append((ident, number * factor))
                self.anything = True

    @property
    def by_domain(self) -> Ints:
        """Not to be written to."""
        found = self._by_domain
        if found is None:
            found = self._by_domain = self._added_up()
        return found

    def _added_up(self) -> Ints:
        total: Ints | None = None
        for sums, factor in self._sums:
            more = sums.by_id if factor == 1 else sums.by_id * factor
            total = more if total is None else total + more
        if total is None:
            total = np.zeros(len(self.column.values) + 1, np.int64)
        elif self._few:
            total = total.copy()
        for ident, number in self._few:
            total[ident] += number
        return total

    @property
    def positive(self) -> Ints:
        """Where `by_domain` is above 0, as numbers 0 and 1, if nothing that was added is below it. Not to be written
        to."""
        found: Ints | None = None
        for sums, _ in self._sums:
            found = sums.positive if found is None else np.maximum(found, sums.positive)
        if found is None:
            found = np.zeros(len(self.column.values) + 1, np.int64)
        elif self._few:
            found = found.copy()
        for ident, _ in self._few:
            found[ident] = 1
        return found

    @property
    def largest(self) -> int:
        """No node's number is above it."""
        return int(extremes(self.by_domain)[1])

    def of_view(self, view: Any) -> Any:
        """The numbers of a view's rows."""
        return view.by_domain(self.column, self.by_domain)


class Tallies:
    """What some counts come to, a `Tally` for each of their keys."""

    __slots__ = ("by_key",)

    def __init__(self, counters: Counters, parts: Parts) -> None:
        self.by_key: dict[str, Tally] = {}
        for key, counts, factor in parts:
            tally = self.by_key.get(key)
            if tally is None:
                tally = self.by_key[key] = Tally(counters, key)
            tally.add(counts, factor)

    @property
    def anything(self) -> bool:
        return any(tally.anything for tally in self.by_key.values())

    def get(self, key: str, ids: Any) -> Any:
        """Numbers of rows with these domain ids; 0 for a key without a tally."""
        tally = self.by_key.get(key)
        return 0 if tally is None else tally.by_domain[ids]


class Worth:
    """What the pods in each domain are worth to a pod and to those like it, a `Blend` for each key; kept current."""

    __slots__ = ("by_key",)

    def __init__(self, counters: Counters, parts: Parts) -> None:
        of_key: dict[str, list[tuple[RowCounts, int]]] = {}
        for key, counts, factor in parts:
            of_key.setdefault(key, []).append((counts, factor))
        self.by_key = {key: Blend(counters.domains(key), some) for key, some in of_key.items()}
        self.sync()

    @property
    def nbytes(self) -> int:
        return 1000 + sum([blend.nbytes for blend in self.by_key.values()])

    @property
    def anything(self) -> bool:
        """Whether a counted pod is on a node with its key."""
        return any(blend.counted for blend in self.by_key.values())

    def sync(self) -> None:
        for blend in self.by_key.values():
            blend.sync()
