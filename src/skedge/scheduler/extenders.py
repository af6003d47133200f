"""Extenders: servers that filter, score, preempt and bind beside the plugins. Upstream: `pkg/scheduler/extender.go`.

A cycle that asks extenders waits between its synchronous halves. Meanwhile it owns the state (`Scheduler.inbox` is
held): what the watches bring, and what bindings come to, happens once it has decided.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE, HalvedPostFilter
from skedge.framework.ports import Extender, ExtenderError, ExtenderVictims
from skedge.framework.status import Code, Status
from skedge.preemption.choice import Candidate
from skedge.preemption.evaluator import restrict
from skedge.profiles.sampling import heap_root
from skedge.profiles.search import CycleError, Search
from skedge.queue.hints import EXTENDER
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.cache.cache import Cache

log = get_logger(__name__)

MAX_PRIORITY: Final = 10
"""The highest score an extender should give."""


class Extenders:
    """All extenders of a scheduler; ignorable ones are asked last."""

    def __init__(self, extenders: Sequence[Extender], cache: Cache, rng: random.Random) -> None:
        self.all = sorted(extenders, key=lambda each: each.ignorable)
        self._cache = cache
        self._table: NodeTable = cache.table
        self._rng = rng

    def __bool__(self) -> bool:
        return bool(self.all)

    def of(self, pod: PodInfo) -> list[Extender]:
        """Those that want to be asked about a pod."""
        if not self.all:
            return self.all
        resources = _resources(pod)
        return [each for each in self.all if not each.managed_resources or each.managed_resources & resources]

    # --- filter -------------------------------------------------------------------------------------------------------

    async def filter(self, search: Search, nominated: bool) -> None:
        """Leaves in the search the rows that all extenders like. Raises CycleError.

        What goes wrong over the nominated node alone rejects that node, and is only logged.
        """
        try:
            await self._filter(search)
        except CycleError as error:
            if not nominated:
                raise
            log.error(error, "Evaluation failed on nominated node", pod=search.pod.key)
            search.keep(search.rows[:0])

    async def _filter(self, search: Search) -> None:
        names = self._table.names
        left = [names[row] for row in search.rows]
        before, bare = len(left), False
        for extender in self.of(search.pod):
            if not left:
                break
            if not extender.filters:
                continue
            try:
                answer = await extender.filter(search.pod, left)
            except ExtenderError as error:
                if not extender.ignorable:
                    raise CycleError(str(error)) from error
                log.warning("Skipping extender as it returned error and has ignorable flag set", extender=extender.name)
                continue
            self._note(search, answer.unresolvable, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            failed = {name: why for name, why in answer.failed.items() if name not in answer.unresolvable}
            self._note(search, failed, Code.UNSCHEDULABLE)
            left = list(answer.nodes)
            bare = bare or answer.as_objects
        if len(left) != before:
            search.diagnosis.narrowing |= {EXTENDER}
        rows = np.fromiter((self._cache.hold_row(name) for name in left), np.int64, len(left))
        search.keep(rows, bare=bare)

    def _note(self, search: Search, reasons: Mapping[str, str], code: Code) -> None:
        for name, why in reasons.items():
            row = self._table.row_of.get(name)
            if row is not None:
                search.diagnosis.explicit[row] = Status(code, why)

    # --- prioritize ---------------------------------------------------------------------------------------------------

    async def shares(self, search: Search) -> tuple[dict[str, Ints], Bools]:
        """What each extender adds to the totals of the search's rows; and which rows one of them scored."""
        asked = self.of(search.pod)
        names = [self._table.names[row] for row in search.rows]
        answers = await asyncio.gather(*(self._scores(each, search.pod, names) for each in asked))
        shares: dict[str, Ints] = {}
        touched = np.zeros(len(names), bool)
        for extender, scores in zip(asked, answers, strict=True):
            factor = extender.weight * (MAX_NODE_SCORE // MAX_PRIORITY)
            parts = np.array([_wrapped(scores.get(name, 0) * factor) for name in names], np.int64)
            touched |= np.array([name in scores for name in names], bool)
            shares[extender.name] = shares[extender.name] + parts if extender.name in shares else parts
        return shares, touched

    async def _scores(self, extender: Extender, pod: PodInfo, names: Sequence[str]) -> Mapping[str, int]:
        if not extender.prioritizes:
            return dict.fromkeys(names, 0)
        try:
            return await extender.prioritize(pod, names)
        except ExtenderError as error:
            if log.v(5):
                log.info("Failed to run extender's priority function. No score given by this extender.", err=str(error))
            return {}

    async def choose(self, search: Search) -> int:
        """The row to take: as without extenders, but among equals that one of them scored each is as likely."""
        rows = search.rows
        if len(rows) == 1:
            return int(rows[0])
        totals = search.scores()
        shares, touched = await self.shares(search)
        for share in shares.values():
            totals = totals + share
        best = np.flatnonzero(totals == totals.max())
        scored = best[touched[best]]
        if len(scored):
            best = scored
        elif search.profile.sampler is not None:
            return int(rows[heap_root(totals)])
        return int(rows[best[self._rng.randrange(len(best)) if len(best) > 1 else 0]])

    def release(self, search: Search) -> None:
        """Lets go of rows that were made for nodes we don't know."""
        if search.bare:
            for row in search.rows.tolist():
                self._cache.release_row(row)

    # --- preempt ------------------------------------------------------------------------------------------------------

    async def preempt(self, pod: PodInfo, plugin: HalvedPostFilter, outcome: Any) -> None:
        """Has each extender that preempts look at the candidates, and takes the best of those that are left."""
        asked = [each for each in self.of(pod) if each.preempts]
        if not asked or not outcome.status.ok:
            plugin.choose(outcome)
            return
        candidates: dict[str, Candidate] = dict(outcome.candidates)
        try:
            for extender in asked:
                candidates = await self._ask(extender, pod, candidates)
                if not candidates:
                    break
        except (ExtenderError, ValueError) as error:
            outcome.status = Status.from_error(error)
            return
        plugin.choose(outcome, candidates)

    async def _ask(self, extender: Extender, pod: PodInfo, candidates: dict[str, Candidate]) -> dict[str, Candidate]:
        try:
            answer = await extender.preempt(
                pod, {name: (each.victims, each.num_pdb_violations) for name, each in candidates.items()}
            )
            found = {name: self._candidate(extender, name, victims) for name, victims in answer.items()}
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            log.warning("Skipped extender as it returned error and has ignorable flag set", extender=extender.name)
            if log.v(5):
                log.info("Extender failed", err=str(error))
            return candidates
        return restrict(found, ignorable=extender.ignorable)

    def _candidate(self, extender: Extender, name: str, victims: ExtenderVictims) -> Candidate:
        row = self._table.row_of.get(name)
        if row is None or not self._table.exists[row]:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        there = self._table.pods[row]
        for uid in victims.uids:
            if uid not in there:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: {name}, but the pod is "
                    "not found on that node"
                )
        return Candidate(name, [there[uid] for uid in victims.uids], victims.num_pdb_violations)

    # --- bind ---------------------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> Status | None:
        """Has the extender bind that does so; None where none does (or one failed that may): the plugins' turn."""
        for extender in self.of(pod):
            if not extender.binds:
                continue
            try:
                await extender.bind(pod, node_name)
            except ExtenderError as error:
                if not extender.ignorable:
                    return Status.from_error(error)
                log.warning("Skipping extender in bind as it returned error and has ignorable flag set", err=str(error))
                continue
            return Status()
        return None


def _resources(pod: PodInfo) -> set[str]:
    """Resources that a container names in its requests or limits."""
    spec = pod.pod.spec
    found: set[str] = set()
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if container.resources is not None:
            found.update(container.resources.requests or ())
            found.update(container.resources.limits or ())
    return found


def _wrapped(number: int) -> int:
    """As Go's int64."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
