"""Counts of several kinds, each worth something, added up by topology domain and kept current change by change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.by_domain import Scattered
from skedge.snapshot.counters_rows import DomainNumbers, Domains, RowCounts
from skedge.snapshot.views import Rows

_RARE: Final = 4
"""One domain in so many is few."""
_ONE_BY_ONE: Final = 64
"""Up to so many rows with a count are added one by one."""


class Blend(DomainNumbers):
    """The sums of counts over domains, each multiplied by what one is worth. Current after `sync`."""

    __slots__ = ("_buffer", "_is_touched", "_parts", "_positions", "_version", "counted", "touched")

    def __init__(self, domains: Domains, parts: Sequence[tuple[RowCounts, int]]) -> None:
        super().__init__(domains)
        self._parts = tuple(parts)
        self._positions = [-1] * len(self._parts)
        self._version = -1
        self._buffer: Ints = np.zeros(0, np.int64)
        self._is_touched: Bools = np.zeros(0, bool)
        self.touched: Ints = self._buffer
        """Ids of domains, among them all whose number is not 0. Not to be written to."""
        self.counted = 0
        """What is counted in domains, whatever it is worth."""

    @property
    def nbytes(self) -> int:
        return 400 + self.by_domain.nbytes + self._buffer.nbytes + self._is_touched.nbytes

    @property
    def largest(self) -> int:
        """No node's number is above it."""
        largest = self.extremes[1]
        return largest if self._domains.everywhere else max(0, largest)  # nodes without the label have 0

    @property
    def _few(self) -> bool:
        return len(self.touched) * _RARE <= self._domains.count

    def of_view(self, view: Any) -> Any:
        """The numbers of a view's rows; as Scattered where few domains have one but 0, and each has one row."""
        domains = self._domains
        if isinstance(view, Rows) and self._few and (row_of := domains.row_of) is not None:
            return Scattered(view, domains.ids, self.by_domain, row_of.take(self.touched))
        return view.by_domain(domains.column, self.by_domain)

    def sync(self) -> None:
        domains = self._domains
        domains.sync()
        changes = []
        if self._version == domains.version and len(self.by_domain) == len(domains.column.values) + 1:
            for (counts, _), position in zip(self._parts, self._positions, strict=True):
                more = counts.since(position)
                if more is None:
                    break
                changes.append(more)
        if len(changes) < len(self._parts):
            self._add_up()
        elif any(changes):
            ids = domains.ids
            for (_, worth), some in zip(self._parts, changes, strict=True):
                for row, delta in some:
                    ident = ids.item(row)
                    if ident >= 0:
                        self._add(ident, delta * worth)
                        self.counted += delta
                        if not self._is_touched.item(ident):
                            self._touch(ident)
            self._changed()
        self._version = domains.version
        self._positions = [counts.position() for counts, _ in self._parts]

    def _add_up(self) -> None:
        domains = self._domains
        numbers = np.zeros(len(domains.column.values) + 1, np.int64)
        touched: set[int] | None = set()  # None: too many to name one by one
        self.counted = 0
        for counts, worth in self._parts:
            if not counts.total:
                continue
            few = counts.few
            if few is None or len(few) > _ONE_BY_ONE:
                sums = counts.sums(domains)
                numbers[: len(sums.by_domain)] += sums.by_domain * worth
                self.counted += sums.total
                touched = None
                continue
            for row, number in few.items():
                ident = domains.ids.item(row)
                if ident >= 0:
                    numbers[ident] += number * worth
                    self.counted += number
                    if touched is not None:
                        touched.add(ident)
        self._renew(numbers)
        self.touched = np.flatnonzero(numbers) if touched is None else np.fromiter(touched, np.int64, len(touched))
        self._buffer = self.touched
        self._is_touched = np.zeros(len(numbers), bool)
        self._is_touched[self.touched] = True
        if self._few:
            self._levels = dict(Counter(numbers.take(self.touched).tolist()))
            rest = domains.count - len(self.touched)
            if rest:
                self._levels[0] = self._levels.get(0, 0) + rest

    def _touch(self, ident: int) -> None:
        number = len(self.touched)
        if number == len(self._buffer):
            self._buffer = np.concatenate((self.touched, np.zeros(max(16, number), np.int64)))
        self._buffer[number] = ident
        self.touched = self._buffer[: number + 1]
        self._is_touched[ident] = True
