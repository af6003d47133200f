"""Victims of a whole pod group: units that go together, their order, and which of them break a budget.

Upstream: `framework/preemption/podgrouppreemption.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from skedge.api.labels import SelectorError, compile_selector
from skedge.api.policy import PodDisruptionBudget
from skedge.api.scheduling import PodGroup
from skedge.framework.status import Code, Status
from skedge.snapshot.pods import PlacedPod

NO_VICTIMS: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "No preemption victims found for incoming preemptor")
WHOLE_GROUP: Final = "PodGroup"


class Unit(NamedTuple):
    """Pods that are evicted together or not at all."""

    priority: int
    pods: tuple[PlacedPod, ...]


def units(pods: Iterable[PlacedPod], group_of: Callable[[PlacedPod], PodGroup | None]) -> list[Unit]:
    """All pods as units: those of a group that is disrupted as a whole are one, with the group's priority."""
    single: list[Unit] = []
    groups: dict[str, tuple[int, list[PlacedPod]]] = {}
    for pod in pods:
        group = group_of(pod) if pod.group is not None else None
        if group is not None and group.spec.disruption_mode == WHOLE_GROUP:
            groups.setdefault(group.key, (group.spec.priority or 0, []))[1].append(pod)
        else:
            single.append(Unit(pod.priority, (pod,)))
    return [*single, *(Unit(priority, tuple(members)) for priority, members in groups.values())]


def by_importance(found: Iterable[Unit]) -> list[Unit]:
    """The most important first: by priority; then members of groups before plain pods; then larger units; then those
    that started earlier."""

    def key(unit: Unit) -> tuple[int, int, int, float]:
        first = unit.pods[0]
        return -unit.priority, first.group is None, -len(unit.pods), first.start_time

    return sorted(found, key=key)


def split_by_budgets(ordered: Sequence[Unit], budgets: Iterable[PodDisruptionBudget]) -> tuple[list[Unit], list[Unit]]:
    """Units that would break a budget, and the others; each in the order given."""
    ledger = _Ledger(budgets)
    violating: list[Unit] = []
    others: list[Unit] = []
    for unit in ordered:
        broken = [ledger.breaks(pod) for pod in unit.pods]
        (violating if any(broken) else others).append(unit)
    return violating, others


class _Ledger:
    """What is left of each budget."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = []
        for budget in budgets:
            try:
                selector = compile_selector(budget.spec.selector)
            except SelectorError:
                continue
            if not selector.nothing and not selector.empty:
                self._budgets.append((budget, selector))
        self._left = [budget.status.disruptions_allowed for budget, _ in self._budgets]

    def breaks(self, pod: PlacedPod) -> bool:
        """Charges the budgets that protect a pod, up to the first that cannot bear it."""
        for i, (budget, selector) in enumerate(self._budgets):
            if budget.metadata.namespace != pod.namespace or not selector.matches(pod.labels):
                continue
            if pod.name in (budget.status.disrupted_pods or ()):
                continue
            self._left[i] -= 1
            if self._left[i] < 0:
                return True
        return False
