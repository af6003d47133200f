"""Which pods must go on each of many nodes, all nodes at once. Upstream: `SelectVictimsOnNode`, `DryRunPreemption`.

On every node all pods of lower priority go first. Where the pod then fits, victims come back one by one, those that
would break a budget first, then by importance; one with which the pod still fits stays. Each round brings a victim of
every node back. Where only amounts matter, victims in turn that ask for the same are one round: how many of them can
stay is found by halves.
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
from skedge.preemption.ranks import PodRanks
from skedge.preemption.worlds import Back, Freed, Removed, Worlds
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
        lower = np.count_nonzero(ranks.priority[:, rows] < priority, axis=0)
        if not lower.all():
            self._failed.append(Rejection(NO_VICTIMS, rows[lower == 0]))
            rows, lower = rows[lower > 0], lower[lower > 0]
        self._worlds = Worlds(ranks, rows, lower)
        self._added = added = cycle.trials.nominated()
        self._is_crowded: Bools = added.count[rows] > 0 if added else np.zeros(len(rows), bool)
        self._promised = Promised(added, rows) if added else None
        self._remove_all()
        self._bring_back()

    # --- the two steps ------------------------------------------------------------------------------------------------

    def _remove_all(self) -> None:
        worlds, alive = self._worlds, self._worlds.alive
        crowded = np.flatnonzero(self._is_crowded)
        if len(crowded):
            alive[crowded] &= self._test(crowded, added=True)
        alive &= self._test(np.arange(len(alive)))
        worlds.gone &= alive  # of the others nobody is counted

    def _test(self, lines: Ints, added: bool = False) -> Bools:
        """Runs all filters on worlds without any victim; the codes are kept for words about those that do not fit."""
        nobody = np.zeros(len(lines), np.int64)
        codes = self._cycle.trials.codes(self._view(Back(lines, nobody, nobody), added))
        self._tested.append((self._worlds.rows[lines], codes))
        return _all_pass(codes, len(lines))

    def _bring_back(self) -> None:
        worlds, trials = self._worlds, self._cycle.trials
        broken = self._budgets.violated(worlds.labels(), worlds.pod_at) if self._budgets and worlds.lines else None
        order = worlds.reorder(broken) if broken is not None else None
        runs = worlds.runs() if trials.only_amounts else None
        reached: Ints = np.zeros(worlds.lines, np.int64)  # the next victim of each line
        lines = np.flatnonzero(worlds.alive)
        while len(lines := lines[reached[lines] < worlds.victims[lines]]):
            first = reached[lines]
            back = Back(lines, first, np.ones_like(lines) if runs is None else runs[first, lines])
            stay = self._fits(back).astype(np.int64) if runs is None else self._most(back)
            worlds.take_back(back._replace(number=stay))
            reached[lines] += back.number
        self._measure(broken, order)

    def _most(self, back: Back) -> Ints:
        """How many of each run can stay, from its first one on."""
        lines, first, number = back
        fit = np.where(self._fits(back, counted=False), number, 0)
        too_many = np.where(fit == 0, number, number + 1)
        middle = fit + 1  # often none can stay
        while len(open_ := np.flatnonzero(too_many - fit > 1)):
            tried = middle[open_]
            fits = self._fits(Back(lines[open_], first[open_], tried), counted=False)
            fit[open_] = np.where(fits, tried, fit[open_])
            too_many[open_] = np.where(fits, too_many[open_], tried)
            middle = (fit + too_many) // 2
        # One after another, each would be tried with those that were promised room, and then without them.
        again = int(fit[self._is_crowded[lines]].sum())
        self._cycle.trials.count_tried(int(number.sum()) + again, int(fit.sum()) + again)
        return fit

    def _fits(self, back: Back, counted: bool = True) -> Bools:
        """Whether the pod still fits with these victims back."""
        codes_of = self._cycle.trials.codes_of_moving
        fits = _all_pass(codes_of(self._view(back), counted), len(back.lines))
        crowded = np.flatnonzero(self._is_crowded[back.lines])
        if len(crowded):
            some = Back(*(each[crowded] for each in back))
            fits[crowded] &= _all_pass(codes_of(self._view(some, added=True), counted), len(crowded))
        return fits

    def _view(self, back: Back, added: bool = False) -> DeltaView:
        """The worlds of some lines, with some victims back."""
        worlds = self._worlds
        rows, removed = worlds.rows[back.lines], Removed(worlds, back)
        if not added:
            return DeltaView(self._cycle.table, rows, None, removed, Freed(worlds, back))
        return DeltaView(self._cycle.table, rows, self._added, removed, Freed(worlds, back, self._promised))

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
        for row in rows[worlds.alive & ~helped].tolist():
            error = ValueError(no_victim(self._cycle.table.names[row]))
            self._failed.append(Rejection(Status.from_error(error), np.array([row], np.int64)))
        helped &= worlds.alive
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
