"""May this pod preempt, where would it help, and which node is taken. Upstream: `framework/preemption/preemption.go`.

eligible ─▶ find (dry runs) ─▶ [extenders: restrict] ─▶ choose
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from skedge.framework.status import SUCCESS, Code, Status, fit_message
from skedge.preemption.budgets import Budgets
from skedge.preemption.choice import Candidate, Measures, measure
from skedge.preemption.cycle import Cycle
from skedge.preemption.dry_run import DryRun, Rejection, no_victim
from skedge.preemption.ranks import PodRanks
from skedge.snapshot.arith import Ints
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod
from skedge.stores.store import Store

NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
NO_NODES: Final = "no nodes available"
NO_CANDIDATE: Final = "no candidate node for preemption"
NOT_HELPFUL: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "Preemption is not helpful for scheduling")
CHANGED_AT_ONCE: Final = 500
"""So many nodes whose pods changed since the last preemption are looked at in one go: with the pods of thousands the
loop would stand still for too long. Upstream looks at a tenth of the nodes, whatever happened."""
DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"


class Sample(NamedTuple):
    """How many candidates are enough: a share of the potential nodes in percent, but at least so many."""

    percentage: int
    absolute: int

    def wanted(self, nodes: int) -> int:
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


class Outcome:
    """What an attempt came to. `status` is OK when a node was chosen: `chosen` then, else None."""

    def __init__(self, cycle: Cycle, runs: Sequence[DryRun] = ()) -> None:
        self._cycle = cycle
        self._runs = runs
        self.status = SUCCESS
        self.chosen: Candidate | None = None
        self.clears = False
        """Preemption helps nowhere: the pod loses its nominated node."""

    @property
    def nominated(self) -> str | None:
        return None if self.chosen is None else self.chosen.node

    def __len__(self) -> int:
        """Number of candidates."""
        return sum(len(run.rows) for run in self._runs)

    def measures(self) -> Measures:
        return Measures(*(np.concatenate(parts) for parts in zip(*(run.measures for run in self._runs), strict=True)))

    def candidate(self, index: int) -> Candidate:
        for run in self._runs:
            if index < len(run.rows):
                return run.candidate(index)
            index -= len(run.rows)
        raise IndexError("candidate")

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """All candidates by node. Made when read: there may be thousands."""
        return {c.node: c for c in map(self.candidate, range(len(self)))}

    def rejections(self) -> Iterator[Rejection]:
        return (rejection for run in self._runs for rejection in run.rejections())

    @cached_property
    def rejected(self) -> dict[str, Status]:
        """Potential nodes where preemption does not help."""
        names = self._cycle.table.names
        return {names[row]: each.status for each in self.rejections() for row in each.rows.tolist()}


class Evaluator:
    """Decides; evicts nothing. `sample` None: all potential nodes are looked at, but see `changed_at_once`."""

    def __init__(self, table: NodeTable, budgets: Store[Any], rng: random.Random, sample: Sample | None = None) -> None:
        self._table = table
        self._rng = rng
        self._sample = sample
        self.changed_at_once = CHANGED_AT_ONCE
        self._ranks = PodRanks(table)
        self._budgets = Budgets(budgets, self._ranks)

    def preempt(self, cycle: Cycle) -> Outcome:
        """All steps, for profiles without extenders that preempt."""
        outcome = self.find(cycle)
        if outcome.status.ok:
            self.choose(outcome)
        return outcome

    def find(self, cycle: Cycle) -> Outcome:
        """Candidates, or a status that says why there are none."""
        outcome = Outcome(cycle)
        reason = self._ineligible(cycle)
        if reason is not None:
            outcome.status = Status(Code.UNSCHEDULABLE, reason)
            return outcome
        if not cycle.total:
            outcome.status = Status(Code.ERROR, NO_NODES)
            return outcome
        potential = cycle.potential()
        outcome = Outcome(cycle, self._dry_run(cycle, potential) if len(potential) else ())
        if not len(outcome):
            self._say_why(cycle, outcome)
        return outcome

    def _ineligible(self, cycle: Cycle) -> str | None:
        pod = cycle.pod
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        row = self._table.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
        if row is None or not self._table.exists[row]:
            return None
        if cycle.status_of(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None
        leaving = any(
            other.terminating and other.priority < pod.priority and _preempted(other)
            for other in self._table.pods[row].values()
        )
        return TERMINATING if leaving else None

    def _say_why(self, cycle: Cycle, outcome: Outcome) -> None:
        rejections = list(outcome.rejections())
        errors = dict.fromkeys(r.status.message for r in rejections if r.status.code is Code.ERROR)
        if errors:
            text = next(iter(errors)) if len(errors) == 1 else f"[{', '.join(errors)}]"
            outcome.status = Status(Code.ERROR, text)
            return
        outcome.clears = True
        message = fit_message(cycle.total, ((r.status, len(r.rows)) for r in rejections), NOT_HELPFUL)
        outcome.status = Status(Code.UNSCHEDULABLE, message)

    # --- dry runs -----------------------------------------------------------------------------------------------------

    def _dry_run(self, cycle: Cycle, potential: Ints) -> list[DryRun]:
        if self._sample is None:
            return self._unsampled(cycle, potential)
        return self._sampled(cycle, potential, self._sample.wanted(len(potential)))

    def _unsampled(self, cycle: Cycle, potential: Ints) -> list[DryRun]:
        """Looks at all nodes; where the pods of too many have changed, at those that have not and at some others, until
        one candidate breaks no budget."""
        runs: list[DryRun] = []
        rows, rest = potential, potential[:0]
        changed = self._ranks.changed(potential)
        if np.count_nonzero(changed) > self.changed_at_once:
            rest = potential[changed]
            rest = np.roll(rest, -self._rng.randrange(len(rest)))
            some, rest = rest[: self.changed_at_once], rest[self.changed_at_once :]
            rows = np.sort(np.concatenate((potential[~changed], some)))
        while True:
            self._ranks.sync(rows)
            runs.append(DryRun(cycle, self._ranks, self._budgets, rows))
            if not len(rest) or (runs[-1].measures.violations == 0).any():
                return runs
            rows, rest = np.sort(rest[: self.changed_at_once]), rest[self.changed_at_once :]

    def _sampled(self, cycle: Cycle, potential: Ints, wanted: int) -> list[DryRun]:
        """Looks at nodes from a random one on, until so many candidates are found and one of them breaks no budget."""
        potential = np.roll(potential, -self._rng.randrange(len(potential)))
        runs: list[DryRun] = []
        harmless = harmful = 0
        step = max(wanted, 1)
        for at in range(0, len(potential), step):
            rows = potential[at : at + step]
            self._ranks.sync(rows)
            run = DryRun(cycle, self._ranks, self._budgets, rows)
            runs.append(run)
            visited = {row: i for i, row in enumerate(rows.tolist())}
            taken = []
            for i in sorted(range(len(run.rows)), key=lambda i: visited[int(run.rows[i])]):
                if run.measures.violations[i] == 0:
                    harmless += 1
                elif harmful == wanted:
                    continue
                else:
                    harmful += 1
                taken.append(i)
                if harmless and harmless + harmful >= wanted:
                    break
            run.select(np.array(taken, np.int64))
            if harmless and harmless + harmful >= wanted:
                break
        return runs

    # --- the choice ---------------------------------------------------------------------------------------------------

    def choose(self, outcome: Outcome) -> None:
        """Takes the best candidate; among equals each is as likely."""
        best = outcome.measures().best()
        outcome.chosen = outcome.candidate(self._pick(best))

    def choose_among(self, outcome: Outcome, candidates: Mapping[str, Candidate]) -> None:
        """Takes the best of those that extenders left."""
        if not candidates:
            outcome.status = Status(Code.UNSCHEDULABLE, NO_CANDIDATE)
            return
        listed = list(candidates.values())
        outcome.chosen = listed[self._pick(measure(listed).best())]

    def _pick(self, best: Ints) -> int:
        return int(best[self._rng.randrange(len(best)) if len(best) > 1 else 0])


def restrict(returned: Mapping[str, Candidate], *, ignorable: bool) -> dict[str, Candidate]:
    """What an extender's reply leaves of the candidates. A node without victims is dropped, or (not ignorable) refused
    with a ValueError."""
    left = {}
    for node, candidate in returned.items():
        if candidate.victims:
            left[node] = candidate
        elif not ignorable:
            raise ValueError(no_victim(node))
    return left


def _preempted(pod: PlacedPod) -> bool:
    condition = next((c for c in pod.conditions if c.type == DISRUPTION_TARGET), None)
    return condition is not None and condition.status == "True" and condition.reason == BY_SCHEDULER
