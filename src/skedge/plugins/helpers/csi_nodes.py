"""What CSINodes say of their nodes, as columns: volume limits, installed drivers, migrated in-tree plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skedge.api.storage import CSINode
from skedge.framework.handle import Handle
from skedge.plugins.helpers.csi_translation import IN_TREE, MIGRATED_PLUGINS
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.changes import Aspect

NO_LIMIT: Final = np.iinfo(np.int64).max
MANY: Final = 4096
"""Changes that are put off at most, where nobody asks for what they change."""


class CsiNodes:
    """Arrays of table capacity, each made when a CSINode first mentions its name; current once `sync` returned."""

    def __init__(self, handle: Handle) -> None:
        self._table = handle.table
        self._store = handle.listers.csi_nodes
        self._position = -1
        self._capacity = 0
        self._changed: set[str] = set()
        self._seen: dict[int, tuple[str, frozenset[str]]] = {}  # row -> its node, the plugins it has migrated
        self.limits: dict[str, Ints] = {}
        """Driver -> highest number of volumes."""
        self._least: dict[str, int] = {}  # driver -> the smallest limit of a row, since rows changed
        self.installed: dict[str, Bools] = {}
        """Driver -> whether it is on the node."""
        self.migrated: dict[str, Bools] = {}
        """In-tree plugin -> whether the node leaves its volumes to the CSI driver."""
        self.moved: list[Callable[[int], None]] = []
        """Called with a row whose node, or whose migrated plugins, changed."""
        self._store.observers.append(self._csi_node_changed)

    def _csi_node_changed(self, old: CSINode | None, new: CSINode | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        self._changed.add(obj.metadata.name)
        if len(self._changed) > MANY:
            self.sync()

    def sync(self) -> None:
        table = self._table
        if self._position >= table.log.nodes_position and not self._changed and self._capacity == table.capacity:
            self._position = table.log.position  # pods alone came and went
            return
        self._capacity = table.capacity
        rows = table.log.since(self._position, Aspect.NODE) if self._position >= 0 else None
        self._position = table.log.position
        for columns, absent in self._columns():
            for name, column in columns.items():
                columns[name] = grown(column, table.capacity, absent)
        todo = set(range(table.size)) if rows is None else rows
        todo |= {row for name in self._changed if (row := table.row_of.get(name)) is not None}
        self._changed.clear()
        for row in todo:
            self._refresh(row)

    def least_limit(self, driver: str) -> int:
        """The smallest limit of a row."""
        found = self._least.get(driver)
        if found is None:
            found = self._least[driver] = int(self.limits[driver].min()) if driver in self.limits else NO_LIMIT
        return found

    def _refresh(self, row: int) -> None:
        self._least.clear()
        node = self._table.nodes[row]
        found = None if node is None else self._store.get(node.metadata.name)
        drivers = (found.spec.drivers or ()) if found is not None else ()
        limits = {
            driver.name: driver.allocatable.count
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        installed = {driver.name: True for driver in drivers}
        migrated = dict.fromkeys(plugins := migrated_plugins(found), True)
        for (columns, absent), values in zip(self._columns(), (limits, installed, migrated), strict=True):
            for name in values:
                if name not in columns:
                    columns[name] = np.full(self._table.capacity, absent)
            for name, column in columns.items():
                column[row] = values.get(name, absent)
        now = ("" if node is None else node.metadata.name, plugins)
        if self._seen.get(row) != now:
            self._seen[row] = now
            for callback in self.moved:
                callback(row)

    def _columns(self) -> tuple[tuple[dict[str, Any], Any], ...]:
        """Limits, installed, migrated: the columns and what stands where there is nothing."""
        return (self.limits, NO_LIMIT), (self.installed, False), (self.migrated, False)

    def has_migrated(self, plugin: str, row: int) -> bool:
        column = self.migrated.get(plugin)
        return column is not None and bool(column.item(row))

    def migrated_rows(self, plugin: str, view: Any) -> Any:
        """Whether each row of the view leaves the plugin's volumes to the CSI driver; True or False where all agree."""
        column = self.migrated.get(plugin)
        return False if column is None else view.pick(column)


def grown(column: Any, capacity: int, absent: Any) -> Any:
    """The column, or where it is too short a longer copy."""
    if len(column) >= capacity:
        return column
    longer = np.full(capacity, absent, column.dtype)
    longer[: len(column)] = column
    return longer


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """The in-tree plugins that a node has migrated, of those it has a say in."""
    if csi_node is None:
        return frozenset()
    text = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")
    return frozenset(name for name in text.split(",") if name in IN_TREE and IN_TREE[name].switchable)
