"""Views: how rules read the columns. Many rows give arrays, one row gives plain numbers, by the same method names.

A rule is one expression over what a view returns; `snapshot.arith` has the few operations that need care. A view may
stand for hypothetical worlds: `DeltaView` adds and removes pods on single rows, each row being its own world.

    Rows      a range or a selection of rows    arrays of shape (size,)
    Row       one row                           int, bool
    DeltaView a selection of rows, with pods added or removed on them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.lookup import Lookup
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod

Rowids = NDArray[np.int64]


class View(Protocol):
    """What a rule may ask. Numbers are int64 arrays of shape (size,), or plain integers when the view is one row."""

    table: NodeTable

    @property
    def size(self) -> int: ...

    @property
    def rows(self) -> Sequence[int] | Rowids:
        """Row numbers, in the order of the answers."""

    def allocatable(self, resource: str) -> Any:
        """What the node offers of a resource, in its unit (cpu: milli); 0 where it names none."""

    def requested(self, resource: str) -> Any:
        """Sum of the effective requests of the row's pods."""

    @property
    def allowed_pods(self) -> Any: ...

    @property
    def pod_count(self) -> Any: ...

    @property
    def nonzero_cpu(self) -> Any:
        """Requested milli cpu, counting 100m for containers that ask for none."""

    @property
    def nonzero_memory(self) -> Any: ...

    @property
    def unschedulable(self) -> Any: ...

    def by_taints(self, lookup: Lookup) -> Any:
        """The lookup's answer for each row's taints (a tuple of Taint)."""

    def by_label(self, key: str, lookup: Lookup) -> Any:
        """The lookup's answer for each row's value of a label (None: absent)."""

    def named(self, names: Iterable[str]) -> Any:
        """Whether the node's name is one of these."""

    def pods(self, row: int) -> Iterable[PlacedPod]:
        """Pods on a row, in order of arrival."""

    def full(self, number: int) -> Any:
        """The number for each row."""


class Rows:
    """All rows of a table (ghosts included: callers mask by `table.exists`), or a selection."""

    __slots__ = ("_index", "_size", "table")

    def __init__(self, table: NodeTable, rows: Rowids | None = None) -> None:
        self.table = table
        self._index: Any = slice(0, table.size) if rows is None else rows
        self._size = table.size if rows is None else len(rows)

    @property
    def size(self) -> int:
        return self._size

    @property
    def rows(self) -> Rowids:
        return np.arange(self._size) if isinstance(self._index, slice) else self._index

    def allocatable(self, resource: str) -> Any:
        column = self.table.allocatable.get(resource)
        return np.zeros(self._size, np.int64) if column is None else column[self._index]

    def requested(self, resource: str) -> Any:
        column = self.table.requested.get(resource)
        return np.zeros(self._size, np.int64) if column is None else column[self._index]

    @property
    def allowed_pods(self) -> Any:
        return self.table.allowed_pods[self._index]

    @property
    def pod_count(self) -> Any:
        return self.table.pod_count[self._index]

    @property
    def nonzero_cpu(self) -> Any:
        return self.table.nonzero_cpu[self._index]

    @property
    def nonzero_memory(self) -> Any:
        return self.table.nonzero_memory[self._index]

    @property
    def unschedulable(self) -> Any:
        return self.table.unschedulable[self._index]

    def by_taints(self, lookup: Lookup) -> Any:
        return lookup.answers(self.table.taint_sets)[self.table.taint_ids[self._index]]

    def by_label(self, key: str, lookup: Lookup) -> Any:
        column = self.table.label_column(key)
        return lookup.answers(column.values)[column.ids[self._index]]

    def named(self, names: Iterable[str]) -> Any:
        rows = [row for name in names if (row := self.table.row_of.get(name)) is not None]
        if isinstance(self._index, slice):
            mask = np.zeros(self._size, bool)
            mask[rows] = True
            return mask
        return np.isin(self._index, rows)

    def pods(self, row: int) -> Iterable[PlacedPod]:
        return self.table.pods[row].values()

    def full(self, number: int) -> Any:
        return np.full(self._size, number, np.int64)


class Row:
    """One row, in plain numbers: an array call for one row costs as much as for a thousand."""

    __slots__ = ("row", "table")

    def __init__(self, table: NodeTable, row: int = 0) -> None:
        self.table = table
        self.row = row

    @property
    def size(self) -> int:
        return 1

    @property
    def rows(self) -> Sequence[int]:
        return (self.row,)

    def allocatable(self, resource: str) -> Any:
        column = self.table.allocatable.get(resource)
        return 0 if column is None else column.item(self.row)

    def requested(self, resource: str) -> Any:
        column = self.table.requested.get(resource)
        return 0 if column is None else column.item(self.row)

    @property
    def allowed_pods(self) -> Any:
        return self.table.allowed_pods.item(self.row)

    @property
    def pod_count(self) -> Any:
        return self.table.pod_count.item(self.row)

    @property
    def nonzero_cpu(self) -> Any:
        return self.table.nonzero_cpu.item(self.row)

    @property
    def nonzero_memory(self) -> Any:
        return self.table.nonzero_memory.item(self.row)

    @property
    def unschedulable(self) -> Any:
        return self.table.unschedulable.item(self.row)

    def by_taints(self, lookup: Lookup) -> Any:
        ident = self.table.taint_ids.item(self.row)
        return lookup.rule(None if ident < 0 else self.table.taint_sets.values[ident])

    def by_label(self, key: str, lookup: Lookup) -> Any:
        node = self.table.nodes[self.row]
        return lookup.rule(None if node is None or not node.metadata.labels else node.metadata.labels.get(key))

    def named(self, names: Iterable[str]) -> Any:
        return self.table.names[self.row] in names

    def pods(self, row: int) -> Iterable[PlacedPod]:
        return self.table.pods[row].values()

    def full(self, number: int) -> Any:
        return number


class DeltaView(Rows):
    """A selection of rows in which pods were added to or removed from single rows, each row its own world."""

    __slots__ = ("_position", "added", "removed")

    def __init__(
        self,
        table: NodeTable,
        rows: Rowids,
        added: Mapping[int, Sequence[PlacedPod]] | None = None,
        removed: Mapping[int, Sequence[PlacedPod]] | None = None,
    ) -> None:
        super().__init__(table, rows)
        self.added = added or {}
        self.removed = removed or {}
        self._position = {int(row): i for i, row in enumerate(rows)}

    def _deltas(self) -> Iterable[tuple[int, int, PlacedPod]]:
        for sign, pods_of_row in ((1, self.added), (-1, self.removed)):
            for row, pods in pods_of_row.items():
                position = self._position.get(row)
                if position is not None:
                    for pod in pods:
                        yield position, sign, pod

    def requested(self, resource: str) -> Any:
        amounts = super().requested(resource).copy()
        for position, sign, pod in self._deltas():
            for name, amount in pod.node_requests:
                if name == resource:
                    amounts[position : position + 1] += np.array([amount], np.int64) * sign
        return amounts

    @property
    def pod_count(self) -> Any:
        counts = super().pod_count.copy()
        for position, sign, _ in self._deltas():
            counts[position] += sign
        return counts

    def pods(self, row: int) -> Iterable[PlacedPod]:
        gone = {pod.uid for pod in self.removed.get(row, ())}
        return [*(pod for pod in self.table.pods[row].values() if pod.uid not in gone), *self.added.get(row, ())]
