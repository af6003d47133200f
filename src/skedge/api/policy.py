"""policy/v1: budgets that preemption respects."""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import LabelSelector, Object, ObjectMeta


class PodDisruptionBudgetSpec(Object):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Object):
    """`disrupted_pods`: pods that an eviction was granted for and that are still there, by name, with its time."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)
