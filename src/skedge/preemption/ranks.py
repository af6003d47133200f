"""The pods of every row by importance, as columns: who would go first, and what that would free.

Brought up to date by changed rows only, so that one preemption after another over thousands of full nodes does not look
at every pod each time.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.arith import Ints
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, Requests

NOBODY: Final = np.iinfo(np.int32).max
"""Priority of an empty place: below no pod's."""

_READS: Final = int(Aspect.RESOURCES | Aspect.PODS)


def importance(pod: PlacedPod) -> tuple[int, float]:
    """Sorts pods, most important first: by priority, then by how long they run (one not started yet runs shortest)."""
    return -pod.priority, inf if pod.start_time is None else pod.start_time


class Classes:
    """Small numbers for equal values; 0 is kept for "none"."""

    def __init__(self) -> None:
        self.values: list[Any] = [None]
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, value: Any) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(value)
        return found

    def __len__(self) -> int:
        return len(self.values)


class PodRanks:
    """One column a row, most important pod first. Arrays have the shape (width, capacity); free places are at the end.

    `requests` and `labels` hold numbers of `Classes`: pods of one owner ask for the same and are labelled alike.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._position = -1
        self._reset()

    def _reset(self) -> None:
        self._width = 0
        self.pods: list[tuple[PlacedPod, ...]] = []
        self.count: Ints = np.zeros(0, np.int64)  # pods on each row
        self.priority: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.start: NDArray[np.float64] = np.zeros((0, 0))
        self.requests: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.labels: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.request_classes = Classes()
        self.label_classes = Classes()
        self._amounts: dict[str, Ints] = {}

    def sync(self) -> None:
        """Brings the columns up to date with the table."""
        table = self._table
        position = table.log.position
        if self._position == position:
            return
        rows = None
        if self._position >= 0 and not self._overgrown():
            rows = table.log.since(self._position, _READS)
        if rows is None:
            self._reset()
            rows = set(range(table.size))
        self._fit(max((len(table.pods[row]) for row in rows), default=0))
        for row in rows:
            self._set(row)
        self._position = position

    def _overgrown(self) -> bool:
        """Whether most of the classes belong to pods that are gone."""
        return max(len(self.request_classes), len(self.label_classes)) > 1024 + 2 * int(self._table.pod_count.sum())

    def _fit(self, width: int) -> None:
        """Makes room for the table's rows and for so many pods on each."""
        capacity = self._table.capacity
        self.pods += [()] * (self._table.size - len(self.pods))
        if capacity == len(self.count) and width <= self._width:
            return
        old = self._width
        self._width = max(self._width, -(-width // 8) * 8)

        def grown(array: Any, fill: float) -> Any:
            new = np.full((self._width, capacity), fill, array.dtype)
            new[:old, : array.shape[1]] = array
            return new

        counts = np.zeros(capacity, np.int64)
        counts[: len(self.count)] = self.count
        self.count = counts
        self.priority, self.start = grown(self.priority, NOBODY), grown(self.start, inf)
        self.requests, self.labels = grown(self.requests, 0), grown(self.labels, 0)

    def _set(self, row: int) -> None:
        pods = tuple(sorted(self._table.pods[row].values(), key=importance))
        before, now = len(self.pods[row]), len(pods)
        self.pods[row] = pods
        self.count[row] = now
        if now:
            number, group = self.request_classes.number, self.label_classes.number
            self.priority[:now, row] = [pod.priority for pod in pods]
            self.start[:now, row] = [inf if pod.start_time is None else pod.start_time for pod in pods]
            self.requests[:now, row] = [number(pod.node_requests, pod.node_requests) for pod in pods]
            # Label maps are shared, and the class keeps its own alive: an id is as good as the map.
            self.labels[:now, row] = [group((pod.namespace, id(pod.labels)), pod) if pod.labels else 0 for pod in pods]
        if before > now:
            self.priority[now:before, row] = NOBODY
            self.start[now:before, row] = inf
            self.requests[now:before, row] = 0
            self.labels[now:before, row] = 0

    def amounts(self, resource: str) -> Ints:
        """What each class of requests asks of a resource, int64 of shape (number of classes,)."""
        known = self._amounts.get(resource)
        classes = self.request_classes
        if known is None or len(known) < len(classes):
            start = 0 if known is None else len(known)
            more = [_amount(requests, resource) for requests in classes.values[start:]]
            known = np.concatenate((np.zeros(0, np.int64) if known is None else known, np.array(more, np.int64)))
            self._amounts[resource] = known
        return known


def _amount(requests: Requests | None, resource: str) -> int:
    return next((amount for name, amount in requests or () if name == resource), 0)
