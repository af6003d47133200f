"""Numbers per row, and their sums per topology domain, kept current change by change.

RowCounts     a number a row: sparse while few rows have one, with a journal of what changed
Domains       the topology domain each row counts for: by a label, where a rule lets the row count at all
DomainSums    a RowCounts summed over Domains; follows the journal of the one and the version of the other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.arith import Bools, Ints, extremes
from skedge.snapshot.changes import Aspect
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.nodes import LabelColumn, NodeTable
from skedge.snapshot.views import Row, Rows

_SPARSE_SHARE: Final = 24  # a dict entry takes about the room of so many int32
_JOURNAL: Final = 512
_FEW: Final = 64  # so many rows are added one by one where nobody else will ask

Ids = NDArray[np.int32]
Rule = Callable[[Rows], Any]


class RowCounts:
    """See the module's docstring. `total` is the sum over all rows, ghosts included."""

    __slots__ = ("_asked", "_base", "_dense", "_followed", "_journal", "_kept", "_sparse", "_sums", "_table", "total")

    def __init__(self, table: NodeTable, kept: Recent[DomainSums]) -> None:
        self._table = table
        self._kept = kept
        self._sparse: dict[int, int] = {}
        self._dense: Ids | None = None
        self._journal: list[tuple[int, int]] = []
        self._base = 0
        self._followed = False  # whether somebody asked for changes, or where they stand, since the journal was cut
        self._sums: dict[Domains, DomainSums] = {}
        self._asked: Domains | None = None  # the last that were asked for in vain
        self.total = 0

    @property
    def nbytes(self) -> int:
        return 600 + (self._dense.nbytes if self._dense is not None else 100 * len(self._sparse))

    def bump(self, row: int, delta: int) -> None:
        """Adds to a row's number."""
        self.total += delta
        if self._dense is None:
            sparse = self._sparse
            number = sparse.get(row, 0) + delta
            if number:
                sparse[row] = number
            else:
                del sparse[row]
            if len(sparse) * _SPARSE_SHARE > self._table.capacity:
                self._dense = self.array()
                self._sparse = {}
        else:
            if row >= len(self._dense):
                self._dense = self._grown()
            self._dense[row] += delta
        journal = self._journal
        if journal or self._followed:
            journal.append((row, delta))
            if len(journal) > 2 * _JOURNAL:
                cut = _JOURNAL if self._followed else len(journal)  # nobody listens any more
                self._followed = False
                del journal[:cut]
                self._base += cut
        else:
            self._base += 1

    def array(self) -> Ids:
        """The numbers of all rows, shape (capacity,). Not to be written to."""
        if self._dense is not None:
            if len(self._dense) < self._table.capacity:
                self._dense = self._grown()
            return self._dense
        out = np.zeros(self._table.capacity, np.int32)
        for row, number in self._sparse.items():
            out[row] = number
        return out

    def on(self, view: Any) -> Any:
        """The numbers of a view's rows."""
        if self._dense is None and isinstance(view, Row):
            return self._sparse.get(view.row, 0)
        return view.pick(self.array())

    @property
    def fewest(self) -> int:
        """The smallest number of a row that has been in use."""
        size = self._table.size
        if self._dense is None:
            return min(self._sparse.values()) if len(self._sparse) >= size > 0 else 0
        return int(self.array()[:size].min())

    def mark(self, rows: Bools) -> None:
        """Sets the entries of rows that have a number, in an array of shape (capacity,)."""
        if self._dense is not None:
            rows |= self.array() != 0
        elif self._sparse:
            rows[list(self._sparse)] = True

    def _grown(self) -> Ids:
        assert self._dense is not None
        out = np.zeros(self._table.capacity, np.int32)
        out[: len(self._dense)] = self._dense
        return out

    @property
    def few(self) -> dict[int, int] | None:
        """The numbers by row where rather few rows have one, else None."""
        return self._sparse if self._dense is None else None

    def position(self) -> int:
        """Where the changes stand; those that follow are noted for a while."""
        self._followed = True
        return self._base + len(self._journal)

    def since(self, position: int) -> list[tuple[int, int]] | None:
        """(row, delta) of the changes after a position; None when they are not known any more."""
        self._followed = True
        return None if position < self._base else self._journal[position - self._base :]

    def sums(self, domains: Domains) -> DomainSums:
        """The sums over domains, current."""
        found = self._sums.get(domains)
        if found is None:
            found = self._sums[domains] = DomainSums(self, domains)
            found.sync()
            self._kept.put(found, found)
        else:
            self._kept.get(found)
            found.sync()
        return found

    def sums_or_few(self, domains: Domains) -> DomainSums | None:
        """`sums`; None when these are asked for the first time and few rows have a number: see `few`."""
        few = self._dense is None and len(self._sparse) <= _FEW
        if few and self._asked is not domains and domains not in self._sums:
            self._asked = domains
            return None
        return self.sums(domains)

    def forget_sums(self, domains: Domains) -> None:
        del self._sums[domains]

    def drop_sums(self) -> None:
        """Takes the sums out of what is kept, when the numbers are not needed any more."""
        for sums in self._sums.values():
            self._kept.pop(sums)
        self._sums.clear()


class Domains:
    """The domain (id of the label's value) each row counts for, -1 where it counts for none.

    A row counts when it has the label and `rule` (codes, not 0: yes) lets it. With `empty_for_missing` nodes without
    the label count for the domain of the empty value, if some node has that.
    """

    __slots__ = (
        "_columns_built",
        "_empty",
        "_empty_for_missing",
        "_key",
        "_position",
        "_row_of",
        "_rule",
        "_table",
        "column",
        "count",
        "covered",
        "fewest",
        "ids",
        "members",
        "version",
    )

    READS: Final = int(Aspect.LABELS | Aspect.TAINTS | Aspect.NODE)

    def __init__(self, table: NodeTable, key: str, rule: Rule | None = None, empty_for_missing: bool = False) -> None:
        self._table = table
        self._key = key
        self._rule = rule
        self._empty_for_missing = empty_for_missing
        self._empty = -1
        self._position = -1
        self._columns_built = -1
        self._row_of: Ints | None = None
        self.column: LabelColumn = table.label_column(key)
        self.ids: Ids = np.empty(0, np.int32)
        self.members: Ints = np.empty(0, np.int64)
        """How many rows count for each domain."""
        self.count = 0
        """How many domains have a row that counts for them."""
        self.covered = 0
        """How many rows count for a domain."""
        self.fewest = 0
        """How many rows count for the smallest domain that has some."""
        self.version = 0
        self.sync()

    @property
    def nbytes(self) -> int:
        return 600 + self.ids.nbytes + 2 * self.members.nbytes

    @property
    def everywhere(self) -> bool:
        """Whether every node counts for a domain."""
        return self.covered >= self._table.count

    @property
    def row_of(self) -> Ints | None:
        """The row of each domain, -1 for ids without rows; None where a domain has several. Not to be written to."""
        if self._row_of is None and self.covered == self.count:
            rows = np.flatnonzero(self.ids >= 0)
            self._row_of = np.full(len(self.members), -1, np.int64)
            self._row_of[self.ids[rows]] = rows
        return self._row_of

    def sync(self) -> None:
        """Brings ids and members up to date with the table; `version` grows if they changed."""
        table, log = self._table, self._table.log
        position = log.position
        fresh = table.columns_built == self._columns_built and len(self.ids) == table.capacity
        if fresh and self._position >= log.nodes_position:
            self._position = position  # pods alone came and went
            return
        column = table.label_column(self._key)
        self._columns_built = table.columns_built
        whole = column is not self.column or len(self.ids) != table.capacity
        if self._empty_for_missing and column.values.get("") != self._empty:
            whole = True
        rows = None if whole or self._position < 0 else table.log.since(self._position, self.READS)
        self._position = position
        self.column = column
        if rows is None:
            self._all_rows()
        elif rows:
            self._some_rows(rows)

    def _ids_of(self, view: Rows, index: Any) -> Any:
        ids = self.column.ids[index]
        if self._empty_for_missing and self._empty >= 0:
            ids = np.where((ids < 0) & self._table.exists[index], np.int32(self._empty), ids)
        if self._rule is not None:
            ids = np.where(np.asarray(self._rule(view)) != 0, ids, np.int32(-1))
        return ids

    def _all_rows(self) -> None:
        table = self._table
        self._empty = self.column.values.get("") if self._empty_for_missing else -1
        self.ids = np.full(table.capacity, -1, np.int32)
        self.ids[: table.size] = self._ids_of(Rows(table), slice(0, table.size))
        self._count_members()

    def _some_rows(self, rows: set[int]) -> None:
        index = np.fromiter(rows, np.int64, len(rows))
        ids = self._ids_of(Rows(self._table, index), index)
        if not np.array_equal(ids, self.ids[index]):
            self.ids[index] = ids
            self._count_members()

    def _count_members(self) -> None:
        self.members = np.bincount(self.ids + 1, minlength=len(self.column.values) + 1)[1:]
        self.count = int(np.count_nonzero(self.members))
        self.covered = int(self.members.sum())
        self.fewest = int(self.members[self.members > 0].min()) if self.count else 0
        self._row_of = None
        self.version += 1


class DomainNumbers:
    """`by_domain[id]`: a number for each domain; 0 for ids without rows that count, and once more at the end, where
    rows that count for no domain look."""

    __slots__ = ("_domains", "_extremes", "_levels", "by_domain")

    def __init__(self, domains: Domains) -> None:
        self._domains = domains
        self._extremes: tuple[int, int] | None = None
        self._levels: dict[int, int] | None = None
        """Number -> how many domains have it; kept where extremes were asked for twice."""
        self.by_domain: Ints = np.zeros(1, np.int64)

    @property
    def domains(self) -> Domains:
        return self._domains

    @property
    def present(self) -> Ints:
        """The numbers of domains that have rows."""
        domains, numbers = self._domains, self.by_domain[:-1]
        return numbers if domains.count == len(numbers) else numbers[domains.members > 0]

    @property
    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest number of a domain that has rows; 0 where there is none."""
        if self._extremes is None:
            levels = self._levels
            self._extremes = (min(levels), max(levels)) if levels else extremes(self.present)
        return self._extremes

    def _renew(self, numbers: Ints) -> None:
        self.by_domain = numbers
        self._extremes = self._levels = None

    def _add(self, ident: int, delta: int) -> int:
        """Adds to a domain's number; the new one. `_changed` once all were added."""
        before = self.by_domain.item(ident)
        after = before + delta
        self.by_domain[ident] = after
        if self._levels is not None:
            _move(self._levels, before, after)
        return after

    def _changed(self) -> None:
        if self._levels is None and self._extremes is not None and len(self.by_domain) > _FEW:
            self._levels = dict(Counter(self.present.tolist()))
        self._extremes = None


class DomainSums(DomainNumbers):
    """The sums over the rows that count for a domain."""

    __slots__ = ("_counts", "_position", "_positive", "_version", "total")

    def __init__(self, counts: RowCounts, domains: Domains) -> None:
        super().__init__(domains)
        self._counts = counts
        self._version = -1
        self._position = -1
        self._positive: Ints | None = None
        self.total = 0

    @property
    def nbytes(self) -> int:
        return 400 + 2 * self.by_domain.nbytes

    def drop(self) -> None:
        """Nobody asks for these sums any more."""
        self._counts.forget_sums(self._domains)

    def sync(self) -> None:
        counts, domains = self._counts, self._domains
        domains.sync()
        changes = counts.since(self._position) if self._version == domains.version else None
        if changes is None:
            self._sum_up()
        elif changes:
            ids = domains.ids
            for row, delta in changes:
                ident = ids.item(row)
                if ident >= 0:
                    after = self._add(ident, delta)
                    self.total += delta
                    if self._positive is not None:
                        self._positive[ident] = after > 0
            self._changed()
        self._version = domains.version
        self._position = counts.position()

    def _sum_up(self) -> None:
        counts, ids = self._counts, self._domains.ids
        size = len(self._domains.members)
        few = counts.few
        sums = np.zeros(size + 1, np.int64)
        if few is None:
            sums[:-1] = np.bincount(ids + 1, weights=counts.array(), minlength=size + 1)[1:]
        else:
            for row, number in few.items():
                if ids[row] >= 0:
                    sums[ids[row]] += number
        self._renew(sums)
        self._positive = None
        self.total = int(sums.sum())

    @property
    def by_id(self) -> Ints:
        """`by_domain` for all ids that the label has now. Not to be written to."""
        missing = len(self._domains.column.values) + 1 - len(self.by_domain)
        return np.append(self.by_domain, np.zeros(missing, np.int64)) if missing else self.by_domain

    @property
    def positive(self) -> Ints:
        """1 where `by_id` is above 0, else 0. Not to be written to."""
        found = self._positive
        if found is None or len(found) <= len(self._domains.column.values):
            found = self._positive = (self.by_id > 0).astype(np.int64)
        return found


def _move(levels: dict[int, int], before: int, after: int) -> None:
    levels[after] = levels.get(after, 0) + 1
    left = levels[before] - 1
    if left:
        levels[before] = left
    else:
        del levels[before]
