"""Looking at a part of the nodes only, where `percentageOfNodesToScore` asks for it, as the reference does.

Upstream: `schedule_one.go` (numFeasibleNodesToFind, findNodesThatPassFilters, selectHost). Where every profile looks at
all nodes there is no Sampler, and nothing here runs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.order import NodeOrder

MIN_NODES: Final = 100
"""Of fewer nodes all are looked at, and of more at least so many feasible ones are looked for."""
_MIN_PERCENTAGE: Final = 5
_START_PERCENTAGE: Final = 50
_NODES_PER_PERCENT: Final = 125


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough; a percentage of 0 stands for one that falls with the number of nodes."""
    if nodes < MIN_NODES:
        return nodes
    share = percentage or max(_MIN_PERCENTAGE, _START_PERCENTAGE - nodes // _NODES_PER_PERCENT)
    return max(nodes * share // 100, MIN_NODES)


class Sampler:
    """Where the next search starts; shared by all profiles."""

    def __init__(self, table: NodeTable) -> None:
        self.order = NodeOrder(table)
        self.start = 0

    def rows(self) -> Ints:
        """All rows in the order in which a search that begins now looks at them."""
        rows = self.order.rows()
        start = self.start % len(rows) if len(rows) else 0
        return rows if not start else np.concatenate((rows[start:], rows[:start]))

    def move(self, looked_at: int) -> None:
        """The next search starts behind the nodes that were looked at."""
        nodes = len(self.order.rows())
        self.start = (self.start + looked_at) % nodes if nodes else 0


def heap_root(totals: Ints) -> int:
    """Index of the total that a binary heap made of them in place has at its root.

    Of equal totals that is the first one met on the way down, left before right: in binary, an index of the heap
    (counted from 1) spells the way to it. Ways are compared digit by digit, one that ends goes before those it begins.
    """
    best = np.flatnonzero(totals == totals.max())
    ways = best + 1
    digits = np.frexp(ways)[1].astype(np.int64)
    return int(best[np.argmin((ways << (digits[-1] - digits)) * 64 + digits)])
