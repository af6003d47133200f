"""Resource scorers as plugins of their own, for a Policy that asks for several of them at once.

Unlike the strategies of NodeResourcesFit they count a resource that the node lacks, with score 0 (or that of full use).
Upstream (v1.20): `plugins/noderesources/{least,most}_allocated.go`, `requested_to_capacity_ratio.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

import numpy as np

from skedge import names
from skedge.config.fields import ConfigError
from skedge.config.legacy.args import RequestedToCapacityRatioArgs
from skedge.framework.plugin import MAX_NODE_SCORE, Depends
from skedge.framework.state import CycleState
from skedge.plugins.helpers.allocation import container_requests, used
from skedge.plugins.helpers.shape import broken_line
from skedge.snapshot.arith import round_half_away, trunc_div, where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import CPU, MEMORY, PodInfo
from skedge.snapshot.views import View

Resources = tuple[tuple[str, int], ...]
"""(resource, weight)"""
Scorer = Callable[[Any, Any], Any]
"""`(requested, capacity) -> score` of one resource."""

CPU_AND_MEMORY: Resources = ((CPU, 1), (MEMORY, 1))


class _ResourceScorer:
    name: str
    depends = Depends.NODE
    reads = Aspect.RESOURCES | Aspect.ALLOCATABLE
    normalizer = None

    def __init__(self, resources: Resources, scorer: Scorer) -> None:
        self._resources = resources
        self._scorer = scorer

    def fragment(self, pod: PodInfo) -> Hashable:
        requests = container_requests(pod)
        return tuple(requests.get(resource, 0) for resource, _ in self._resources)

    def _scores(self, pod: PodInfo, view: View) -> Iterable[tuple[Any, int]]:
        """(score, weight) of each resource."""
        requests = container_requests(pod)
        for resource, weight in self._resources:
            requested = used(view, resource, nonzero=True) + requests.get(resource, 0)
            yield self._scorer(requested, view.allocatable(resource)), weight

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        total = view.full(0)
        for score, weight in self._scores(pod, view):
            total = total + score * weight
        return trunc_div(total, sum(weight for _, weight in self._resources))


class NodeResourcesLeastAllocated(_ResourceScorer):
    """The less is taken of cpu and memory, the better."""

    name = names.NODE_RESOURCES_LEAST_ALLOCATED

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(CPU_AND_MEMORY, _least)


class NodeResourcesMostAllocated(_ResourceScorer):
    """The more is taken of cpu and memory, the better."""

    name = names.NODE_RESOURCES_MOST_ALLOCATED

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(CPU_AND_MEMORY, _most)


class RequestedToCapacityRatio(_ResourceScorer):
    """A function of the share that is taken; resources with score 0 are left out of the mean, which is rounded."""

    name = names.REQUESTED_TO_CAPACITY_RATIO

    def __init__(self, args: RequestedToCapacityRatioArgs | None = None, handle: Any = None) -> None:
        if args is None or not args.shape:
            raise ConfigError("at least one point must be specified")
        shape = [(point.utilization, point.score * 10) for point in args.shape]
        resources = tuple((resource.name, resource.weight or 1) for resource in args.resources) or CPU_AND_MEMORY
        super().__init__(resources, partial(_by_shape, shape))

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        total, weights = view.full(0), view.full(0)
        for score, weight in self._scores(pod, view):
            total = total + where(score > 0, score * weight, 0)
            weights = weights + where(score > 0, weight, 0)
        divisor = where(weights == 0, 1, weights)
        if isinstance(total, np.ndarray):
            return round_half_away(total.astype(np.float64) / divisor.astype(np.float64))
        return round_half_away(float(total) / float(divisor))


def _exceeded(requested: Any, capacity: Any) -> Any:
    return (capacity == 0) | (requested > capacity)


def _least(requested: Any, capacity: Any) -> Any:
    share = trunc_div((capacity - requested) * MAX_NODE_SCORE, where(capacity == 0, 1, capacity))
    return where(_exceeded(requested, capacity), 0, share)


def _most(requested: Any, capacity: Any) -> Any:
    share = trunc_div(requested * MAX_NODE_SCORE, where(capacity == 0, 1, capacity))
    return where(_exceeded(requested, capacity), 0, share)


def _by_shape(shape: list[tuple[int, int]], requested: Any, capacity: Any) -> Any:
    free = trunc_div((capacity - requested) * MAX_NODE_SCORE, where(capacity == 0, 1, capacity))
    utilization = where(_exceeded(requested, capacity), MAX_NODE_SCORE, MAX_NODE_SCORE - free)
    return broken_line(shape, utilization)
