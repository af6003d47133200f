"""Pods that were promised room, by row, and what they come to in columns.

Upstream: `framework/runtime/framework.go` (RunFilterPluginsWithNominatedPods).

With thousands of preemptors under way this is looked at for every pod; so it is kept, and changes node by node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod


class Crowd(Mapping[int, Sequence[PlacedPod]]):
    """Row -> the pods that were promised room there, in order of nomination; rows of existing nodes only."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._pods: dict[int, tuple[PlacedPod, ...]] = {}
        self.count: Ints = np.zeros(table.capacity, np.int64)
        self._requested: dict[str, Ints] = {}
        self._rows: Ints | None = None

    def put(self, row: int, pods: Sequence[PlacedPod]) -> None:
        """These are the row's pods from now on."""
        old = self._pods.pop(row, ())
        if pods:
            self._pods[row] = tuple(pods)
        if bool(old) != bool(pods):
            self._rows = None
        self.count[row] = len(pods)
        for sign, each in ((-1, old), (1, pods)):
            for pod in each:
                for resource, amount in pod.node_requests:
                    column = self._requested.get(resource)
                    if column is None:
                        column = self._requested[resource] = np.zeros(self._table.capacity, np.int64)
                    column[row : row + 1] += np.array([amount], np.int64) * sign  # arrays wrap without a warning

    def requested(self, resource: str) -> Ints | None:
        """What is asked of a resource, of shape (capacity,); None where nobody asks for it."""
        return self._requested.get(resource)

    def without(self, row: int, uid: str) -> Crowd:
        """The same, but for one pod."""
        found = Crowd(self._table)
        found._pods = dict(self._pods)
        found.count = self.count.copy()
        found._requested = {resource: column.copy() for resource, column in self._requested.items()}
        found.put(row, [pod for pod in self[row] if pod.uid != uid])
        return found

    @property
    def rows(self) -> Ints:
        """The rows, in order; not to be written to."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.count)
        return self._rows

    def __getitem__(self, row: int) -> Sequence[PlacedPod]:
        return self._pods[row]

    def __contains__(self, row: object) -> bool:
        return row in self._pods

    def __iter__(self) -> Iterator[int]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)


NOBODY: Final = Crowd(NodeTable(0))
"""No pods at all."""


class Promised:
    """What a crowd comes to on some rows, in their order: amounts of a DeltaView to which nothing else happened."""

    def __init__(self, crowd: Crowd, rows: Ints) -> None:
        self._crowd = crowd
        self._rows = rows
        self.count: Ints = crowd.count[rows]
        self._requested: dict[str, Ints] = {}

    def requested(self, resource: str) -> Ints:
        found = self._requested.get(resource)
        if found is None:
            column = self._crowd.requested(resource)
            found = np.zeros(len(self._rows), np.int64) if column is None else column[self._rows]
            self._requested[resource] = found
        return found
