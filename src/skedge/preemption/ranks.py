"""The pods of every row by importance, as columns: who would go first, and what that would free.

Only rows that somebody asks for are brought up to date, and of those only changed ones: one preemption after another
over thousands of full nodes does not look at every pod each time, and the first one not at all of them at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, Requests

NOBODY: Final = np.iinfo(np.int32).max
"""Priority of an empty place: below no pod's."""

_READS: Final = int(Aspect.RESOURCES | Aspect.PODS)


_priority, _start = attrgetter("priority"), attrgetter("start_time")


def by_importance(pods: Iterable[PlacedPod]) -> list[PlacedPod]:
    """The most important first: by priority, then by how long they run (one not started yet runs shortest)."""
    found = sorted(pods, key=_start)
    found.sort(key=_priority, reverse=True)
    return found


class Classes:
    """Small numbers for equal values; 0 is kept for "none"."""

    def __init__(self) -> None:
        self.values: list[Any] = [None]
        self._numbers: dict[Hashable, int] = {None: 0}

    def numbers(self, keys: Sequence[Hashable], values: Iterable[Any]) -> list[int]:
        """The number of each key; of a new one the value is kept."""
        known = self._numbers
        try:
            return [known[key] for key in keys]
        except KeyError:
            for key, value in zip(keys, values, strict=True):
                if key not in known:
                    known[key] = len(self.values)
                    self.values.append(value)
            return [known[key] for key in keys]

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
        self._stale: Bools = np.ones(0, bool)  # rows that changed since they were last asked for
        self.pods: list[tuple[PlacedPod, ...]] = []
        self.count: Ints = np.zeros(0, np.int64)  # pods on each row
        self.priority: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.start: NDArray[np.float64] = np.zeros((0, 0))
        self.requests: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.labels: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.request_classes = Classes()
        self.label_classes = Classes()
        self._amounts: dict[str, Ints] = {}

    def sync(self, rows: Ints) -> None:
        """Brings the columns of these rows up to date with the table; of others nothing must be read."""
        todo = rows[self.changed(rows)].tolist()
        if todo:
            self._fit(max(len(self._table.pods[row]) for row in todo))
            for row in todo:
                self._set(row)
            self._stale[todo] = False

    def changed(self, rows: Ints) -> Bools:
        """Which of these rows `sync` would have to look at."""
        table = self._table
        position = table.log.position
        if self._position != position:
            known = self._position >= 0 and not self._overgrown()
            changed = table.log.since(self._position, _READS) if known else None
            if changed is None:
                self._reset()
            self._fit(0)
            if changed:
                self._stale[list(changed)] = True
            self._position = position
        found: Bools = self._stale[rows]
        return found

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
            new = np.full((self._width, capacity), fill, array.dtype, order="F")  # a row's pods lie side by side
            new[:old, : array.shape[1]] = array
            return new

        counts, stale = np.zeros(capacity, np.int64), np.ones(capacity, bool)
        counts[: len(self.count)], stale[: len(self.count)] = self.count, self._stale
        self.count, self._stale = counts, stale
        self.priority, self.start = grown(self.priority, NOBODY), grown(self.start, inf)
        self.requests, self.labels = grown(self.requests, 0), grown(self.labels, 0)

    def _set(self, row: int) -> None:
        pods = tuple(by_importance(self._table.pods[row].values()))
        before, now = len(self.pods[row]), len(pods)
        self.pods[row] = pods
        self.count[row] = now
        if now:
            self.priority[:now, row] = [pod.priority for pod in pods]
            self.start[:now, row] = [pod.start_time for pod in pods]
            # Requests and label maps are shared, and classes keep their own alive: an id is as good as the object.
            requests = [pod.node_requests for pod in pods]
            self.requests[:now, row] = self.request_classes.numbers([*map(id, requests)], requests)
            labels = [(pod.namespace, id(pod.labels)) if pod.labels else None for pod in pods]
            self.labels[:now, row] = self.label_classes.numbers(labels, pods)
        if before > now:
            self.priority[now:before, row] = NOBODY
            self.start[now:before, row] = inf
            self.requests[now:before, row] = 0
            self.labels[now:before, row] = 0

    def classes_at(self, places: Ints, rows: Ints) -> NDArray[np.int32]:
        """Request classes of pods by place and row; `places` has a column a row."""
        found: NDArray[np.int32] = self.requests.ravel(order="F").take(places + rows * self._width)
        return found

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
