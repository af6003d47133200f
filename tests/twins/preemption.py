"""Preemption one node at a time: victims are really taken out of the living cluster, and put back.

Slow and plain; what `skedge.preemption` does on views of all nodes at once must come to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from skedge.api.labels import compile_selector
from skedge.profiles.search import Search
from skedge.snapshot.pods import PlacedPod
from skedge.testing.cases import Cluster

NO_VICTIMS = "No preemption victims found for incoming pod"


@contextmanager
def changed(cluster: Cluster, gone: Iterable[PlacedPod], there: Iterable[PlacedPod]) -> Any:
    """The cluster without some pods and with some others, for a while."""
    gone, there = list(gone), list(there)
    for pod in gone:
        cluster.cache.remove_pod(pod)
    for pod in there:
        cluster.cache.add_pod(pod)
    try:
        yield
    finally:
        for pod in there:
            cluster.cache.remove_pod(pod)
        for pod in gone:
            cluster.cache.add_pod(pod)


def first_reason(cluster: Cluster, original: Search, node: str, gone: Sequence[PlacedPod]) -> tuple[str, ...] | None:
    """Why the pod does not fit the node without these pods, with and without those nominated there; None: it fits.

    A plugin that had nothing to do with the pod in the original search is not asked, whatever changed.
    """
    pod = original.pod
    nominated = [
        other
        for other in cluster.nominator.nominated_pods(node)
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
    for there in (nominated, []) if nominated else ([],):
        with changed(cluster, gone, there):
            search = Search(original.profile, pod)
            search._pre_filter()
            search.skip_filter |= original.skip_filter
            search.look_at(np.array([cluster.cache.table.row_of[node]], np.int64))
            if not len(search.rows):
                return search.diagnosis.node_statuses()[node].reasons
    return None


def importance(pod: PlacedPod) -> Any:
    return (-pod.priority, pod.start_time)


def breaking(cluster: Cluster, victims: Sequence[PlacedPod]) -> list[PlacedPod]:
    """Those of the victims, in order, that break a budget."""
    budgets = list(cluster.listers.pod_disruption_budgets)
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    found = []
    for pod in victims:
        broke = False
        for i, budget in enumerate(budgets):
            selector = compile_selector(budget.spec.selector)
            if not pod.labels or budget.metadata.namespace != pod.namespace or selector.empty:
                continue
            if selector.matches(pod.labels) and pod.name not in (budget.status.disrupted_pods or {}):
                allowed[i] -= 1
                broke = broke or allowed[i] < 0
        if broke:
            found.append(pod)
    return found


def on_node(cluster: Cluster, original: Search, node: str) -> tuple[list[str], int] | tuple[str, ...]:
    """(keys of the victims, budgets broken), or reasons why preemption does not help on the node."""
    pod = original.pod
    pods = list(cluster.cache.table.pods[cluster.cache.table.row_of[node]].values())
    possible = sorted((other for other in pods if other.priority < pod.priority), key=importance)
    if not possible:
        return (NO_VICTIMS,)
    reasons = first_reason(cluster, original, node, possible)
    if reasons is not None:
        return reasons
    broken = breaking(cluster, possible)
    gone = list(possible)
    for other in [*broken, *(other for other in possible if other not in broken)]:
        tried = [each for each in gone if each is not other]
        if first_reason(cluster, original, node, tried) is None:
            gone = tried
    return [other.key for other in gone], sum(other in broken for other in gone)


def choice(candidates: dict[str, tuple[Sequence[PlacedPod], int]]) -> set[str]:
    """The nodes that tie for the pick, criterion after criterion."""

    def highest(victims: Sequence[PlacedPod]) -> int:
        return max(pod.priority for pod in victims)

    criteria = (
        lambda victims, broken: broken,
        lambda victims, broken: highest(victims),
        lambda victims, broken: sum(pod.priority + 2**31 for pod in victims),
        lambda victims, broken: len(victims),
        lambda victims, broken: -min(p.start_time for p in victims if p.priority == highest(victims)),
    )
    left = dict(candidates)
    for criterion in criteria:
        best = min(criterion(*candidate) for candidate in left.values())
        left = {node: c for node, c in left.items() if criterion(*c) == best}
    return set(left)
