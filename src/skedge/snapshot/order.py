"""NodeOrder: in which order a search that ends early looks at nodes. Upstream: `backend/cache/node_tree.go`.

Nodes stand in zones, by order of arrival; the list takes the first node of each zone, then the second of each, and so
on. It is made anew only when a node came that the last list did not have, or one of it went: a node that changes its
zone, or goes and comes back between two looks, changes its place in the zones at once and its place in the list then.
"""

from __future__ import annotations

from itertools import chain, zip_longest

import numpy as np

from skedge.api.core import Node
from skedge.snapshot.arith import Ints
from skedge.snapshot.nodes import NodeTable

_ZONE_KEYS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_KEYS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def zone_of(node: Node) -> str:
    """Region and zone of a node in one; "" where it has neither."""
    labels = node.metadata.labels or {}
    region, zone = (next((labels[key] for key in keys if key in labels), "") for keys in (_REGION_KEYS, _ZONE_KEYS))
    return f"{region}:\0:{zone}" if region or zone else ""


class NodeOrder:
    """Follows a table from its making on; `rows` is the list as a cycle that starts now sees it."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._zones: dict[str, dict[str, None]] = {}  # zone -> names of its nodes
        self._zone_of: dict[str, str] = {}
        self._came: set[str] = set()  # since the list was made
        self._went: set[str] = set()
        self._names: list[str] = []
        self._rows: Ints = np.zeros(0, np.int64)
        self._moved = False  # some name may have another row
        for node in table.nodes:
            if node is not None:
                self._observe(None, node)
        table.node_observers.append(self._observe)

    def rows(self) -> Ints:
        """Rows of all nodes, in order; not to be changed."""
        if self._came or self._went:
            self._names = [name for name in chain.from_iterable(zip_longest(*self._zones.values())) if name is not None]
            self._came.clear()
            self._went.clear()
        if self._moved:
            row_of = self._table.row_of
            self._rows = np.fromiter((row_of[name] for name in self._names), np.int64, len(self._names))
            self._moved = False
        return self._rows

    def _observe(self, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None:
            if self._zone_of[new.metadata.name] != zone_of(new):
                self._leave(old.metadata.name)
                self._enter(new)
            return
        self._moved = True
        if old is not None:
            name = old.metadata.name
            self._leave(name)
            self._note(name, self._went, self._came)
        if new is not None:
            self._enter(new)
            self._note(new.metadata.name, self._came, self._went)

    @staticmethod
    def _note(name: str, here: set[str], there: set[str]) -> None:
        if name in there:
            there.remove(name)
        else:
            here.add(name)

    def _enter(self, node: Node) -> None:
        name, zone = node.metadata.name, zone_of(node)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def _leave(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]
