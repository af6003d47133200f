"""Counts of several kinds, each worth something, added up by topology domain and kept current change by change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.counters_rows import DomainNumbers, Domains, RowCounts


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
            sums = counts.sums_or_few(domains)
            if sums is not None:
                numbers[: len(sums.by_domain)] += sums.by_domain * worth
                self.counted += sums.total
                touched = None
                continue
            for row, number in (counts.few or {}).items():
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

    def _touch(self, ident: int) -> None:
        number = len(self.touched)
        if number == len(self._buffer):
            self._buffer = np.concatenate((self.touched, np.zeros(max(16, number), np.int64)))
        self._buffer[number] = ident
        self.touched = self._buffer[: number + 1]
        self._is_touched[ident] = True
