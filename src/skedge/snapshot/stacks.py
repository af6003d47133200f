"""Resources of all rows side by side in float64, for arithmetic over the whole table in few calls.

Used while amounts are narrow (see `arith.WIDE`): then sums and differences of them are exact in float64, which is
added, compared and divided several times as fast as int64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import ge
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.changes import Aspect

if TYPE_CHECKING:
    from skedge.snapshot.nodes import NodeTable

_FEW: Final = 32
"""So many changed rows are brought up to date one by one."""

_NO_NODE: Final = float(1 << 52)

Floats = NDArray[np.float64]


class Stack:
    """Arrays of shape (number of resources, table.size), current after `sync`; not to be written to."""

    __slots__ = (
        "_exact",
        "_least",
        "_position",
        "_resources",
        "_table",
        "allocatable",
        "everywhere",
        "free",
        "free_nonzero",
        "used",
    )

    def __init__(self, table: NodeTable, resources: tuple[str, ...]) -> None:
        self._table = table
        self._resources = resources
        self._position = -1
        self.allocatable: Floats = np.empty((0, 0))
        """More than any node has where there is none."""
        self.everywhere = False
        """Whether no node offers 0 of one of the resources, so that what is allocatable can be divided by."""
        self.used: Floats = self.allocatable
        self.free: Floats = self.allocatable
        """Allocatable less used, and in one more row how many pods the node still takes."""
        self.free_nonzero: Floats = self.allocatable
        """Allocatable less used, counting cpu and memory as if no container asked for none."""
        self._least: list[list[float]] = []
        self._exact = False

    def fits(self, amounts: Sequence[float], *, nonzero: bool = False) -> bool:
        """Whether there is room for these amounts on every node (with one more than there are resources: for a pod).

        With `nonzero` beside what is used in that way of counting.
        """
        for _ in range(2):
            if all(map(ge, self._least[nonzero], amounts)):
                return True
            if self._exact:
                break
            self._find_least()
        return False

    def _find_least(self) -> None:
        """Between two looks at all rows `_least` only sinks: it is no more than what is free anywhere."""
        self._least = [free.min(axis=1, initial=np.inf).tolist() for free in (self.free, self.free_nonzero)]
        self._exact = True

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
        self.allocatable, self.used, nonzero = (np.zeros((number, size)) for _ in range(3))
        for i, resource in enumerate(self._resources):
            for column, out in (
                (table.allocatable.get(resource), self.allocatable),
                (table.requested.get(resource), self.used),
                (table.used_nonzero(resource), nonzero),
            ):
                if column is not None:
                    out[i] = column[:size]
        self.everywhere = bool((self.allocatable[:, exists] != 0).all())
        self.free = np.empty((number + 1, size))
        np.subtract(self.allocatable, self.used, out=self.free[:-1])
        np.subtract(table.allowed_pods[:size], table.pod_count[:size], out=self.free[-1])
        self.free_nonzero = self.allocatable - nonzero
        if table.count < size:
            for each in (self.allocatable, self.free, self.free_nonzero):
                each[:, ~exists] = _NO_NODE
        self._find_least()

    def _some_rows(self, rows: Iterable[int]) -> None:
        table, used, free, free_nonzero = self._table, self.used, self.free, self.free_nonzero
        least, least_nonzero = self._least
        pods = len(self._resources)
        for row in rows:
            if not table.exists.item(row):
                continue
            for i, resource in enumerate(self._resources):
                column, column_nonzero = table.requested.get(resource), table.used_nonzero(resource)
                allocatable = self.allocatable.item(i, row)
                if column is not None:
                    amount = column.item(row)
                    used[i, row], free[i, row] = amount, allocatable - amount
                    least[i] = min(least[i], allocatable - amount)
                if column_nonzero is not None:
                    left = allocatable - column_nonzero.item(row)
                    free_nonzero[i, row] = left
                    least_nonzero[i] = min(least_nonzero[i], left)
            left = table.allowed_pods.item(row) - table.pod_count.item(row)
            free[pods, row] = left
            least[pods] = min(least[pods], left)
        self._exact = False
