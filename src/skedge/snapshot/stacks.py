"""Resources of all rows side by side in float64, for arithmetic over the whole table in few calls.

Used while amounts are narrow (see `arith.WIDE`): then sums and differences of them are exact in float64, which is added,
compared and divided several times as fast as int64.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.changes import Aspect

if TYPE_CHECKING:
    from skedge.snapshot.arith import Ints
    from skedge.snapshot.nodes import NodeTable

_FEW: Final = 32
"""So many changed rows are brought up to date one by one."""

Floats = NDArray[np.float64]


class Stack:
    """Arrays of shape (number of resources, table.size), current after `sync`; not to be written to."""

    __slots__ = ("_position", "_resources", "_table", "allocatable", "everywhere", "free", "nonzero", "used")

    def __init__(self, table: NodeTable, resources: tuple[str, ...]) -> None:
        self._table = table
        self._resources = resources
        self._position = -1
        self.allocatable: Floats = np.empty((0, 0))
        """1 where there is no node."""
        self.everywhere = False
        """Whether no node offers 0 of one of the resources, so that what is allocatable can be divided by."""
        self.used: Floats = self.allocatable
        self.nonzero: Floats = self.allocatable
        """Used, counting cpu and memory as if no container asked for none."""
        self.free: Floats = self.allocatable
        """Allocatable less used, and in one more row how many pods the node still takes; infinite without a node."""

    def sync(self) -> None:
        table = self._table
        before, position = self._position, table.log.position
        whole = before < 0 or self.used.shape[1] != table.size
        if before == position and not whole:
            return
        changed = Aspect.ALL if whole else table.log.aspects_since(before)
        if changed & (Aspect.NODE | Aspect.ALLOCATABLE):
            self._all_rows()
        elif changed & Aspect.RESOURCES:
            rows = table.log.since(before, Aspect.RESOURCES)
            if rows is None or len(rows) > _FEW:
                self._all_rows()
            else:
                self._some_rows(rows)
        self._position = position

    def _all_rows(self) -> None:
        table, number, size = self._table, len(self._resources), self._table.size
        exists = table.exists[:size]
        self.allocatable, self.used = np.zeros((number, size)), np.zeros((number, size))
        self.nonzero, self.free = np.zeros((number, size)), np.empty((number + 1, size))
        for i, resource in enumerate(self._resources):
            for column, out in (
                (table.allocatable.get(resource), self.allocatable),
                (table.requested.get(resource), self.used),
                (table.used_nonzero(resource), self.nonzero),
            ):
                if column is not None:
                    out[i] = column[:size]
        self.everywhere = bool((self.allocatable[:, exists] != 0).all())
        np.subtract(self.allocatable, self.used, out=self.free[:-1])
        np.subtract(table.allowed_pods[:size], table.pod_count[:size], out=self.free[-1])
        if table.count < size:
            self.allocatable[:, ~exists] = 1.0
            self.free[:, ~exists] = np.inf

    def _some_rows(self, rows: Iterable[int]) -> None:
        table = self._table
        used, nonzero, free, allocatable = self.used, self.nonzero, self.free, self.allocatable
        columns: list[tuple[int, Ints | None, Ints | None]] = [
            (i, table.requested.get(resource), table.used_nonzero(resource))
            for i, resource in enumerate(self._resources)
        ]
        for row in rows:
            exists = table.exists.item(row)
            for i, column, nonzero_column in columns:
                if column is not None:
                    used[i, row] = amount = column.item(row)
                    if exists:
                        free[i, row] = allocatable.item(i, row) - amount
                if nonzero_column is not None:
                    nonzero[i, row] = nonzero_column.item(row)
            if exists:
                free[-1, row] = table.allowed_pods.item(row) - table.pod_count.item(row)
