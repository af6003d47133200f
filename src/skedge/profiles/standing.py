"""Standing totals: for pods that are alike, which nodes fit and what each scores, kept current change by change.

Pods are alike when the fragments of all NODE plugins are equal. For them the standing holds one mask and one array of
weighted totals. A change to a row touches that row; only when a normaliser's bounds move are all totals made anew. What
depends on more than the row (spreading, affinity, volumes) is added each cycle by `profiles.search`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE, NodeNames, Normalizer
from skedge.framework.state import CycleState
from skedge.framework.status import Status
from skedge.profiles.kept import Kept
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.views import Row

_FEW: Final = 64
"""So many best rows are listed one by one."""
INFEASIBLE: Final = np.iinfo(np.int64).min


_NO_BOOLS: Final = np.zeros(0, bool)
_NO_STOPS: Final = np.zeros(0, np.int8)
_NO_TOTALS: Final = np.zeros(0, np.int64)


class Weighted:
    """One score plugin's part in the totals."""

    __slots__ = ("bounds", "generation", "kept", "name", "normalizer", "weight")

    def __init__(self, plugin: Any, weight: int, kept: Kept) -> None:
        self.name: str = plugin.name
        self.weight = weight
        self.kept = kept
        self.normalizer: Normalizer | None = plugin.normalizer
        self.bounds: Any = None
        self.generation = 0  # of the kept answers that are in the totals

    def normalized(self, raw: Any) -> Any:
        return raw if self.normalizer is None else self.normalizer.apply(raw, self.bounds)


_Readers = tuple[tuple[tuple[Kept, int | None], ...], tuple[tuple[int, Kept], ...]]


class Standing:
    """See the module's docstring. `sync` first, then read `feasible`, `rows`, `totals`, `best`, `invalid`."""

    def __init__(
        self,
        table: NodeTable,
        state: CycleState,
        pre_filter: dict[str, tuple[NodeNames | None, Status]],
        pre_score_error: tuple[str, Status] | None,
        filters: list[tuple[Any, Kept]],
        scores: list[Weighted],
    ) -> None:
        self._table = table
        self.state = state
        self.pre_filter = pre_filter
        self.pre_score_error = pre_score_error
        self.narrowed = False
        for names, status in pre_filter.values():
            if names is not None or not (status.ok or status.skip):
                self.narrowed = True
        self.filters = filters
        self.scores = scores
        self._kept = [kept for _, kept in filters]
        self._kept += [weighted.kept for weighted in scores]
        self._reads: int = Aspect.NODE
        for kept in self._kept:
            kept.users += 1
            self._reads |= kept.reads
        self.feasible: Bools = _NO_BOOLS
        self.count = 0  # feasible rows
        self.exists = 0
        self.stopped: list[int] = []
        """How many nodes there are, and how many of them each filter is the first to reject."""
        self.measured: Any = None  # the metrics' own
        self._stops = _NO_STOPS  # the first filter that rejects a row; their number: none; -1: no node
        self.totals: Ints = _NO_TOTALS
        self.unbeaten, self.missed = True, 0
        """Whether its best rows were the best of all when that was last asked, and how often in turn none that was
        drawn was; see `scoring`."""
        self.asked = 0
        self.invalid: set[int] = set()
        """Feasible rows with a score outside 0..100: an error once such a row is looked at."""
        self._position = -1
        self._scored = False  # whether there are totals
        self._readers: dict[int, _Readers] = {}
        self._rows: Ints | None = None  # of `feasible`, when somebody asked
        self._best: list[int] | Ints = []  # rows of the highest total; empty when not known
        self._highest = INFEASIBLE
        self._in_arrays = False  # whether `_best` is asked for as an array

    @property
    def nbytes(self) -> int:
        """Its own arrays, and its share of the kept answers it rests on."""
        answers = self._table.capacity * 8
        return self._table.capacity * 18 + sum([answers // (kept.users or 1) for kept in self._kept])

    def released(self) -> None:
        """Nobody will ask any more."""
        for kept in self._kept:
            kept.users -= 1

    @property
    def rows(self) -> Ints:
        """The feasible rows in order; not to be written to."""
        if self._rows is None:
            whole = self.count == self._table.size
            self._rows = self._table.every_row if whole else np.flatnonzero(self.feasible)
        return self._rows

    def best(self) -> Sequence[int] | Ints:
        """The rows with the highest total, in order; not to be written to. There must be a feasible one."""
        if not len(self._best):
            totals = self.totals[: self._table.size]
            self._highest = int(totals.max())
            self._best = np.flatnonzero(totals == self._highest)
        return self._best

    def best_array(self) -> Ints:
        """`best` as an array; from now on it is kept as one while it is long."""
        self._in_arrays = True
        best = np.asarray(self.best(), np.int64)
        if len(best) > _FEW:
            self._best = best
        return best

    def sync(self) -> None:
        """Brings masks and totals up to date with the table; no totals at first if one row fits or none: see
        `complete`."""
        table, before = self._table, self._position
        position = table.log.position
        if before == position:
            return
        if before < 0 or not self._scored:
            for _, kept in self.filters:
                kept.sync()
            self._all_rows()
            self._position = position
            if before >= 0 or self.count > 1:
                self.complete()
            return
        changed = table.log.aspects_since(before)
        single = Row(table, table.log.last_row) if position - before == 1 else None
        growth: int | None = None if single is None or changed & Aspect.NODE else 0  # of the row's total, if it fits
        for kept, weight in self._reading(changed)[0]:  # others are as current as they were
            grown = None if single is None else kept.follow(single, position)
            if grown is None:
                kept.sync()
                growth = None
            elif grown and growth is not None:
                valid = MIN_NODE_SCORE <= kept.answers.item(table.log.last_row) <= MAX_NODE_SCORE
                growth = None if weight is None or not valid else growth + grown * weight
        renewed = False
        for weighted in self.scores:
            if weighted.generation != weighted.kept.generation:
                weighted.generation = weighted.kept.generation
                renewed = True
        rows: Collection[int] | None = None
        if len(self.feasible) == table.capacity and not renewed:
            if growth is not None and single is not None and self._grow(single.row, growth):
                rows = ()
            elif single is None:
                rows = table.log.since(before, self._reads)
            else:
                rows = (single.row,) if changed & self._reads else ()
        if rows is None or len(rows) * 8 > table.size:
            self._all_rows()
            self._all_totals()
        elif rows:
            self._some_rows(rows, changed)
        self._position = position

    def complete(self) -> None:
        """Makes the totals that `sync` left out, for whoever asks what a single row scores. Nothing to do else."""
        if not self._scored:
            for weighted in self.scores:
                weighted.kept.sync()
                weighted.generation = weighted.kept.generation
            self._all_totals()
            self._scored = True

    def _reading(self, changed: int) -> _Readers:
        """Answers that rest on any of these aspects, with their weight in the totals (None: no answer as it is), and
        those of filters among them with their place."""
        found = self._readers.get(changed)
        if found is None:
            plain = {id(each.kept): each.weight for each in self.scores if each.normalizer is None}
            found = self._readers[changed] = (
                tuple((kept, plain.get(id(kept))) for kept in self._kept if kept.reads & changed),
                tuple((i, kept) for i, (_, kept) in enumerate(self.filters) if kept.reads & changed),
            )
        return found

    def _grow(self, row: int, growth: int) -> bool:
        """Adds to the total of a row that fits if it still does; False where more has to be looked at."""
        if self.invalid:
            return False
        if not growth or not self.feasible.item(row):
            return True
        before = self.totals.item(row)
        total = before + growth
        if len(self._best):
            self._rank(row, before, total)
        self.totals[row] = total
        return True

    def _all_rows(self) -> None:
        table = self._table
        feasible = table.exists.copy()
        self.exists, self.stopped = int(np.count_nonzero(feasible)), []
        stops = np.full(table.capacity, -1, np.int8)
        stops[slice(table.size) if self.exists == table.size else feasible] = len(self.filters)
        for index, (_, kept) in enumerate(self.filters):
            if kept.clean:
                self.stopped.append(0)
                continue
            rejected = feasible & (kept.answers != 0)
            self.stopped.append(int(np.count_nonzero(rejected)))
            if self.stopped[-1]:
                stops[rejected] = index
                feasible ^= rejected
        self.feasible, self._stops = feasible, stops
        self._rows, self._best = None, []
        self.count = int(np.count_nonzero(feasible))

    def _all_totals(self) -> None:
        self.invalid = set()
        if not self.count:
            self.totals = np.full(self._table.capacity, INFEASIBLE, np.int64)
            return
        size = self._table.size
        among: Any = slice(size) if self.count == size else self.feasible  # all rows: without a look at each
        totals: Any = 0
        for weighted in self.scores:
            answers, clean = weighted.kept.answers, weighted.kept.clean
            if weighted.normalizer is not None:
                weighted.bounds = weighted.normalizer.bounds(answers[: self.count] if clean else answers[among])
            if clean and MIN_NODE_SCORE <= (score := weighted.normalized(0)) <= MAX_NODE_SCORE:
                totals = totals + score * weighted.weight  # one stands for all
                continue
            scores = weighted.normalized(answers[:size])
            if scores.astype(np.int64, copy=False).view(np.uint64).max() > MAX_NODE_SCORE:  # below 0: large there
                bad = ((scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)) & self.feasible[:size]
                self.invalid.update(np.flatnonzero(bad).tolist())
            totals = totals + (scores if weighted.weight == 1 else scores * weighted.weight)
        found = np.empty(self._table.capacity, np.int64)
        found[:size] = totals if self.count == size else np.where(self.feasible[:size], totals, INFEASIBLE)
        found[size:] = INFEASIBLE
        self.totals = found

    def _some_rows(self, rows: Collection[int], changed: int) -> None:
        feasible, stops, last = self.feasible, self._stops, len(self.filters)
        filters = self._reading(changed)[1]
        moved: list[tuple[int, bool]] = []
        for row in rows:
            before = stops.item(row)
            stop = self._first_stop(row) if before != last else self._first_of(filters, row)
            if stop == before:
                continue
            stops[row] = stop
            self._count_stop(before, -1)
            self._count_stop(stop, 1)
            if last in (stop, before):
                fits = stop == last
                feasible[row] = fits
                self._rows = None
                self.count += 1 if fits else -1
                moved.append((row, fits))
        if self._bounds_moved(moved, changed):
            self._all_rows()
            self._all_totals()
            return
        totals = self.totals
        for row in rows:
            total = self._total(row) if feasible.item(row) else INFEASIBLE
            if total != totals.item(row):
                if len(self._best):
                    self._rank(row, totals.item(row), total)
                totals[row] = total

    def _rank(self, row: int, before: int, total: int) -> None:
        """Keeps `best` right while a row's total changes."""
        best: Any = self._best
        if isinstance(best, np.ndarray) and (len(best) <= _FEW or not self._in_arrays):
            best = best.tolist()
        if before == self._highest:
            if isinstance(best, list):
                del best[bisect_left(best, row)]
            else:
                at = best.searchsorted(row)
                best[at:-1] = best[at + 1 :]
                best = best[:-1]
        if total > self._highest:
            self._highest, best = total, [row]
        elif total == self._highest:
            if isinstance(best, list):
                insort(best, row)
            else:
                best = np.insert(best, best.searchsorted(row), row)
        self._best = best

    def _first_stop(self, row: int) -> int:
        if not self._table.exists.item(row):
            return -1
        for index, (_, kept) in enumerate(self.filters):
            if kept.answers.item(row):
                return index
        return len(self.filters)

    def _first_of(self, filters: Iterable[tuple[int, Kept]], row: int) -> int:
        """`_first_stop` of a row that fitted, where no answers but these have changed."""
        if not self._table.exists.item(row):
            return -1
        for index, kept in filters:
            if kept.answers.item(row):
                return index
        return len(self.filters)

    def _count_stop(self, stop: int, change: int) -> None:
        if stop >= 0:
            self.exists += change
            if stop < len(self.stopped):
                self.stopped[stop] += change

    def _bounds_moved(self, moved: list[tuple[int, bool]], changed: int) -> bool:
        """Whether some normaliser's bounds may have changed: by rows that came or went, or by raw scores."""
        if moved and self.count <= len(moved):
            return True  # few rows are feasible: bounds may rest on those that moved
        for weighted in self.scores:
            normalizer = weighted.normalizer
            if normalizer is None:
                continue
            answers = weighted.kept.answers
            if any(not normalizer.keeps(weighted.bounds, answers.item(row), added) for row, added in moved):
                return True
            if changed & weighted.kept.reads:
                return True
        return False

    def _total(self, row: int) -> int:
        total = 0
        self.invalid.discard(row)
        for weighted in self.scores:
            score = weighted.normalized(weighted.kept.answers.item(row))
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                self.invalid.add(row)
            total += score * weighted.weight
        return total
