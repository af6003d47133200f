"""Which victims would break a PodDisruptionBudget. Upstream: `filterPodsWithPDBViolation`.

Victims use up the budgets of their node's world in order of importance. Every budget that selects a victim is charged,
also by one that broke another; a victim breaks the rule when a budget of it falls below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from skedge.api.labels import Selector, SelectorError, compile_selector
from skedge.api.policy import PodDisruptionBudget
from skedge.preemption.ranks import Classes, PodRanks
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.pods import PlacedPod
from skedge.stores.store import Store


class _Budget:
    __slots__ = ("allowed", "excused", "selector")

    def __init__(self, budget: PodDisruptionBudget, selector: Selector) -> None:
        self.selector = selector
        self.allowed = budget.status.disruptions_allowed
        self.excused = frozenset(budget.status.disrupted_pods or ())
        """Names of pods that were granted an eviction already: they are not charged again."""


class Budgets:
    """The budgets of a cluster, and which classes of pods (see PodRanks) each selects."""

    def __init__(self, store: Store[Any], ranks: PodRanks) -> None:
        self._store = store
        self._ranks = ranks
        self._version = -1
        self._classes: Classes | None = None  # what `_starts` and `_charged` are about
        self._budgets: list[_Budget] = []
        self._by_namespace: dict[str, list[int]] = {}
        self._starts: Ints = np.zeros(1, np.int64)
        self._charged: Ints = np.zeros(0, np.int64)

    def _sync(self) -> None:
        classes = self._ranks.label_classes
        if self._version != self._store.version:
            self._version, self._classes = self._store.version, None
            self._budgets, self._by_namespace = [], {}
            for budget in self._store:
                self._add(budget)
        if self._classes is not classes:
            self._classes = classes
            self._starts, self._charged = np.zeros(1, np.int64), np.zeros(0, np.int64)
        known = len(self._starts) - 1
        if known < len(classes):
            charged = [() if pod is None else self._of(pod) for pod in classes.values[known:]]
            ends = np.cumsum([len(each) for each in charged]) + self._starts[-1]
            self._starts = np.concatenate((self._starts, ends))
            self._charged = np.concatenate((self._charged, np.array([i for each in charged for i in each], np.int64)))

    def _add(self, budget: PodDisruptionBudget) -> None:
        try:
            selector = compile_selector(budget.spec.selector)
        except SelectorError:
            return
        if not selector.nothing and not selector.empty:
            self._by_namespace.setdefault(budget.metadata.namespace, []).append(len(self._budgets))
            self._budgets.append(_Budget(budget, selector))

    def _of(self, pod: PlacedPod) -> tuple[int, ...]:
        return tuple(
            i for i in self._by_namespace.get(pod.namespace, ()) if self._budgets[i].selector.matches(pod.labels)
        )

    def __bool__(self) -> bool:
        return len(self._store) > 0

    def violated(self, labels: Ints, pod_at: Callable[[int, int], PlacedPod]) -> Bools | None:
        """Which victims break a budget, or None when none does.

        `labels`: their label classes, one column a world in order of importance, 0 where there is no victim. `pod_at`
        finds the victim of a column and a place.
        """
        self._sync()
        if not len(self._charged):
            return None
        flat = labels.ravel()
        charges = self._starts[flat + 1] - self._starts[flat]
        charged = np.flatnonzero(charges)
        if not len(charged):
            return None
        victims = np.repeat(charged, charges[charged])
        first = np.repeat(np.cumsum(charges[charged]) - charges[charged], charges[charged])
        budgets = self._charged[self._starts[flat[victims]] + np.arange(len(victims)) - first]
        worlds = labels.shape[1]
        counted = self._not_excused(victims, budgets, worlds, pod_at)
        victims, budgets = victims[counted], budgets[counted]
        if not len(victims):
            return None
        keys = victims % worlds * len(self._budgets) + budgets
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        opens = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        charge = np.arange(len(keys)) - np.repeat(opens, np.diff([*opens.tolist(), len(keys)])) + 1
        allowed = np.array([budget.allowed for budget in self._budgets], np.int64)
        broken = victims[order][charge > allowed[budgets[order]]]
        if not len(broken):
            return None
        found: Bools = np.zeros(labels.shape, bool)
        found.ravel()[broken] = True
        return found

    def _not_excused(self, victims: Ints, budgets: Ints, worlds: int, pod_at: Callable[[int, int], PlacedPod]) -> Bools:
        counted = np.ones(len(victims), bool)
        for i in self._excusing():
            for at in np.flatnonzero(budgets == i).tolist():
                place, world = divmod(int(victims[at]), worlds)
                counted[at] = pod_at(world, place).name not in self._budgets[i].excused
        return counted

    def _excusing(self) -> Iterable[int]:
        return [i for i, budget in enumerate(self._budgets) if budget.excused]
