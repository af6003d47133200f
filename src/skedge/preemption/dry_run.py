"""Which pods must go on each of many nodes, all nodes at once. Upstream: `SelectVictimsOnNode`, `DryRunPreemption`.

On every node all pods of lower priority go first. Where the pod then fits, victims come back one by one, those that
would break a budget first, then by importance; one with which the pod still fits stays. Round k brings the k-th victim
of every node back, so there are as many rounds as the fullest node has victims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import numpy as np

from skedge.framework.status import Code, Status
from skedge.preemption.budgets import Budgets
from skedge.preemption.choice import Candidate, Measures
from skedge.preemption.cycle import Cycle, PluginCodes
from skedge.preemption.ranks import NOBODY, PodRanks
from skedge.preemption.worlds import Freed, Removed, Worlds
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.crowd import Promised
from skedge.snapshot.views import DeltaView

NOBODY_LEFT: Final = np.iinfo(np.int64).min
NO_VICTIMS: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "No preemption victims found for incoming pod")


def no_victim(node: str) -> str:
    return f'expected at least one victim pod on node "{node}"'


class Rejection:
    """Rows that one status is about."""

    __slots__ = ("rows", "status")

    def __init__(self, status: Status, rows: Ints) -> None:
        self.status = status
        self.rows = rows


class DryRun:
    """The result: `rows` where preemption helps, their `measures`, and why the others are no help."""

    def __init__(self, cycle: Cycle, ranks: PodRanks, budgets: Budgets, rows: Ints) -> None:
        self._cycle = cycle
        self._budgets = budgets
        self._failed: list[Rejection] = []
        self._tested: list[tuple[Ints, Sequence[PluginCodes]]] = []
        priority = cycle.pod.priority
        lowest = ranks.priority[:, rows].min(axis=0, initial=NOBODY)
        without = rows[lowest >= priority]
        if len(without):
            self._failed.append(Rejection(NO_VICTIMS, without))
        self._worlds = Worlds(ranks, rows[lowest < priority], priority)
        self._added = cycle.trials.nominated()
        self._place_promises()
        self._remove_all()
        self._bring_back()

    def _place_promises(self) -> None:
        """Finds the lines of pods that were promised room; again whenever lines have moved."""
        rows, added = self._worlds.rows, self._added
        self._crowded_lines: Ints = np.zeros(0, np.int64)
        self._promised: Promised | None = None
        if added:
            self._crowded_lines = np.flatnonzero(added.count[rows])
            self._promised = Promised(added, rows)

    # --- the two steps ------------------------------------------------------------------------------------------------

    def _remove_all(self) -> None:
        worlds = self._worlds
        fits = np.ones(worlds.lines, bool)
        crowded = self._crowded(worlds.lines)
        if len(crowded):
            fits[crowded] &= self._test(crowded, added=True)
        fits &= self._test(np.arange(worlds.lines))
        if not fits.all():
            worlds.keep(fits)
            self._place_promises()

    def _test(self, lines: Ints, added: bool = False) -> Bools:
        """Runs all filters on worlds without any victim; the codes are kept for words about those that do not fit."""
        codes = self._cycle.trials.codes(self._view(lines, -1, added))
        self._tested.append((self._worlds.rows[lines], codes))
        return _all_pass(codes, len(lines))

    def _bring_back(self) -> None:
        worlds = self._worlds
        broken = self._budgets.violated(worlds.labels(), worlds.pod_at) if self._budgets and worlds.lines else None
        order = worlds.reorder(broken) if broken is not None else None
        for k in range(len(worlds.gone)):
            count = worlds.taking_back(k)
            lines = np.arange(count)
            fits = _all_pass(self._cycle.trials.codes_of_moving(self._view(lines, k)), count)
            crowded = self._crowded(count)
            if len(crowded):
                fits[crowded] &= _all_pass(
                    self._cycle.trials.codes_of_moving(self._view(crowded, k, added=True)), len(crowded)
                )
            worlds.take_back(k, fits)
        self._measure(broken, order)

    def _view(self, lines: Ints, k: int, added: bool = False) -> DeltaView:
        """The worlds of these lines, with the k-th victim back (-1: none)."""
        worlds = self._worlds
        rows = worlds.rows[lines]
        removed = Removed(worlds, lines, k)
        if not added:
            return DeltaView(self._cycle.table, rows, None, removed, Freed(worlds, slice(0, len(lines)), k))
        return DeltaView(self._cycle.table, rows, self._added, removed, Freed(worlds, lines, k, self._promised))

    def _crowded(self, lines: int) -> Ints:
        """Those of the first lines whose rows have pods that were promised room."""
        return self._crowded_lines[: int(np.searchsorted(self._crowded_lines, lines))]

    # --- what came out ------------------------------------------------------------------------------------------------

    def _measure(self, broken: Bools | None, order: Ints | None) -> None:
        worlds = self._worlds
        gone, rows, places = worlds.gone, worlds.rows, worlds.places
        violations: Ints = np.zeros(worlds.lines, np.int64)
        if broken is not None and order is not None:
            violations = (np.take_along_axis(broken, order, 0) & gone).sum(axis=0)
        kth, lines = gone.nonzero()  # few are gone of all that were looked at
        at = places[kth, lines], rows[lines]
        priority = worlds.ranks.priority[at].astype(np.int64)
        first: Ints = np.full(worlds.lines, NOBODY_LEFT)
        np.maximum.at(first, lines, priority)
        cost: Ints = np.zeros(worlds.lines, np.int64)
        np.add.at(cost, lines, priority + (1 << 31))
        start = np.full(worlds.lines, inf)
        among = priority == first[lines]
        np.minimum.at(start, lines[among], worlds.ranks.start[at][among])
        self.rows: Ints = rows
        self.measures = Measures(violations, first, cost, gone.sum(axis=0), start)
        self._lines: Ints = np.arange(worlds.lines)
        helped = self.measures.victims > 0
        for row in rows[~helped].tolist():
            error = ValueError(no_victim(self._cycle.table.names[row]))
            self._failed.append(Rejection(Status.from_error(error), np.array([row], np.int64)))
        if not helped.all():
            self.select(np.flatnonzero(helped))

    def select(self, index: Ints) -> None:
        """Keeps these of the candidates, in this order."""
        self.rows = self.rows[index]
        self.measures = Measures(*(each[index] for each in self.measures))
        self._lines = self._lines[index]

    def candidate(self, index: int) -> Candidate:
        """`rows[index]` as a node with its victims, most important first."""
        worlds, line = self._worlds, int(self._lines[index])
        row = int(worlds.rows[line])
        pods = worlds.ranks.pods[row]
        victims = [pods[place] for place in sorted(worlds.places[:, line][worlds.gone[:, line]].tolist())]
        return Candidate(self._cycle.table.names[row], victims, int(self.measures.violations[index]))

    def rejections(self) -> Iterator[Rejection]:
        """Why rows are no candidates; each row once."""
        yield from self._failed
        closed: Ints = np.zeros(0, np.int64)
        for rows, filters in self._tested:
            open_ = ~np.isin(rows, closed)
            for plugin, codes in ((each.plugin, each.codes) for each in filters):
                rejected = open_ & (codes != 0)
                if not rejected.any():
                    continue
                open_ &= ~rejected
                for code in np.unique(codes[rejected]).tolist():
                    status = plugin.filter_status(self._cycle.state, self._cycle.pod, code).by(plugin.name)
                    yield Rejection(status, rows[rejected & (codes == code)])
            closed = np.concatenate((closed, rows[~open_]))


def _all_pass(codes: Sequence[PluginCodes], size: int) -> Bools:
    fits = np.ones(size, bool)
    for each in codes:
        fits &= each.codes == 0
    return fits
