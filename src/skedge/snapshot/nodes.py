"""NodeTable: the cluster as a struct of arrays, one row a node.

Upstream: `pkg/scheduler/framework/types.go` (NodeInfo).

A node keeps its row while its Node object *or any of its pods* exists; then the row is used again. A row without a Node
object is a ghost (pods came before their node, or outlive it): `exists` masks it out of every answer. Work in flight
refers to nodes by name, never by row. Only `cache` calls the methods that change the table; each change is logged, so
that readers bring their own answers up to date row by row.

                 set_node                 remove_node, no pods
      (free) ───────────────▶ node  ───────────────────────────▶ (free)
        │ add_pod              ▲ │ remove_node, pods left            ▲
        └─────────▶ ghost ─────┘ └────────▶ ghost ── last pod goes ──┘
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skedge.api.core import Node, ResourceList, Taint
from skedge.api.quantity import milli_value, value
from skedge.snapshot.arith import WIDE, Bools, Ints
from skedge.snapshot.changes import Aspect, ChangeLog
from skedge.snapshot.host_ports import PortIndex
from skedge.snapshot.images import ImageIndex
from skedge.snapshot.interning import Interner
from skedge.snapshot.pods import CPU, MEMORY, PODS, PlacedPod
from skedge.snapshot.stacks import Stack

Taints = tuple[Taint, ...]


class LabelColumn:
    """Value ids of one label key, a row each; -1 where the node lacks the key (or there is no node)."""

    __slots__ = ("covered", "ids", "key", "others", "values")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.ids = np.full(capacity, -1, np.int32)
        self.values: Interner[str] = Interner()
        self.covered = 0
        """How many rows have a value."""
        self.others = 0
        """How many of them have an id that is not the number of the row; usually none where every value is unique."""

    def set(self, row: int, text: str | None) -> None:
        old = int(self.ids[row])
        new = -1 if text is None else self.values.acquire(text)
        self.ids[row] = new
        if old >= 0:
            self.values.release(old)
            self.covered -= 1
            self.others -= old != row
        if new >= 0:
            self.covered += 1
            self.others += new != row


class NodeTable:
    """See the module's docstring. Arrays have `capacity` entries, of which rows below `size` have been in use."""

    MAX_LABEL_COLUMNS = 512
    MAX_STACKS = 16

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.size = 0
        self.count = 0  # rows with a Node object
        self.row_of: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.pods: list[dict[str, PlacedPod]] = []  # uid -> pod, in order of arrival
        self.log = ChangeLog()
        self.exists: Bools = np.zeros(capacity, bool)
        self.unschedulable: Bools = np.zeros(capacity, bool)
        self.allowed_pods: Ints = np.zeros(capacity, np.int64)
        self.pod_count: Ints = np.zeros(capacity, np.int64)
        self.nonzero_cpu: Ints = np.zeros(capacity, np.int64)
        self.nonzero_memory: Ints = np.zeros(capacity, np.int64)
        self.allocatable: dict[str, Ints] = {}
        self.requested: dict[str, Ints] = {}
        self.taint_ids = np.full(capacity, -1, np.int32)
        self.taint_sets: Interner[Taints] = Interner()
        self.labels: dict[str, LabelColumn] = {}
        self.columns_built = 0
        """How many label columns were ever built: one that is known is the current one while this stays."""
        self.images = ImageIndex()
        self.host_ports = PortIndex()
        self._divisors: dict[str, tuple[Any, Any]] = {}
        self._stacks: dict[tuple[str, ...], Stack] = {}
        self._every_row: Ints = np.arange(0)
        self._all_fit: Ints = np.zeros(0, np.int64)
        self._free: list[int] = []
        self._wide: set[tuple[str, str]] = set()  # ("node", name) and ("pod", uid) with amounts from WIDE on
        self._sequence = 0
        self.observers: list[Callable[[int, PlacedPod | None, PlacedPod | None], None]] = []
        """Called with (row, old, new) after each pod change: how standing counters follow."""
        self.node_observers: list[Callable[[Node | None, Node | None], None]] = []
        """Called with (old, new) after each change of a Node object."""

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def wide(self) -> bool:
        """Whether some amount is so large that plain integers would not behave like int64 any more."""
        return bool(self._wide)

    @property
    def every_row(self) -> Ints:
        """All row numbers up to `size`; not to be written to."""
        if len(self._every_row) != self.size:
            self._every_row = np.arange(self.size)
        return self._every_row

    @property
    def all_fit(self) -> Ints:
        """Codes of a filter that rejects no row up to `size`; not to be written to."""
        if len(self._all_fit) != self.size:
            self._all_fit = np.zeros(self.size, np.int64)
        return self._all_fit

    def divisor(self, resource: str) -> tuple[Any, Any]:
        """(allocatable as float64, 1 where that is 0; whether it is not 0: True where that holds for all rows in use).

        Of shape (capacity,); kept until a node's allocatable changes.
        """
        found = self._divisors.get(resource)
        if found is None:
            column = self.allocatable.get(resource)
            amounts = np.zeros(self.capacity) if column is None else column.astype(np.float64)
            present: Any = amounts != 0
            divisor = np.where(present, amounts, 1.0)
            found = self._divisors[resource] = (divisor, True if present[: self.size].all() else present)
        return found

    def stack(self, resources: tuple[str, ...]) -> Stack | None:
        """These resources of all rows, current; None while some amount is too large for it. See `stacks`."""
        if self._wide:
            return None
        found = self._stacks.get(resources)
        if found is None:
            if len(self._stacks) >= self.MAX_STACKS:
                del self._stacks[next(iter(self._stacks))]
            found = self._stacks[resources] = Stack(self, resources)
        found.sync()
        return found

    def used_nonzero(self, resource: str) -> Ints | None:
        """What pods take of a resource, cpu and memory as if no container asked for none; None where nobody asks."""
        if resource == CPU:
            return self.nonzero_cpu
        return self.nonzero_memory if resource == MEMORY else self.requested.get(resource)

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label key, built on first use. Least recently used ones go when there are too many."""
        column = self.labels.pop(key, None)
        if column is None:
            if len(self.labels) >= self.MAX_LABEL_COLUMNS:
                del self.labels[next(iter(self.labels))]
            column = LabelColumn(key, self.capacity)
            self.columns_built += 1
            for row, node in enumerate(self.nodes):
                if node is not None and node.metadata.labels:
                    text = node.metadata.labels.get(key)
                    if text is not None:
                        column.set(row, text)
        self.labels[key] = column
        return column

    def node(self, name: str) -> Node | None:
        row = self.row_of.get(name)
        return None if row is None else self.nodes[row]

    # --- nodes --------------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> int:
        """Adds or replaces the Node object of its name; returns its row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._take_row(name)
        old = self.nodes[row]
        self.nodes[row] = node
        aspects = Aspect.NODE if old is None else 0
        if old is None:
            self.exists[row] = True
            self.count += 1
        if old is None or old.status.allocatable != node.status.allocatable:
            self._set_allocatable(row, None if old is None else old.status.allocatable, node.status.allocatable)
            aspects |= Aspect.ALLOCATABLE
        if old is None or old.metadata.labels != node.metadata.labels:
            labels = node.metadata.labels or {}
            for key, column in self.labels.items():
                column.set(row, labels.get(key))
            aspects |= Aspect.LABELS
        if old is None or old.spec.taints != node.spec.taints or old.spec.unschedulable != node.spec.unschedulable:
            self._set_taints(row, node.spec.taints or ())
            self.unschedulable[row] = node.spec.unschedulable
            aspects |= Aspect.TAINTS
        if old is None or old.status.images != node.status.images:
            self.images.set(row, old.status.images or () if old is not None else (), node.status.images or ())
            aspects |= Aspect.IMAGES
        if old is not None and old.status.declared_features != node.status.declared_features:
            aspects |= Aspect.NODE
        if not aspects:
            aspects = Aspect.NODE
        self.log.append(row, Aspect.ALL if old is None else aspects)
        for observer in self.node_observers:
            observer(old, node)
        return row

    def remove_node(self, name: str) -> bool:
        """Drops the Node object; its pods stay (a ghost). False when there was none."""
        row = self.row_of.get(name)
        node = None if row is None else self.nodes[row]
        if row is None or node is None:
            return False
        self.nodes[row] = None
        self.exists[row] = False
        self.count -= 1
        self.unschedulable[row] = False
        self._set_allocatable(row, node.status.allocatable, None)
        self._set_taints(row, None)
        self.images.set(row, node.status.images or (), ())
        for label_column in self.labels.values():
            label_column.set(row, None)
        self.log.append(row, Aspect.ALL)
        self._release_if_empty(row)
        for observer in self.node_observers:
            observer(node, None)
        return True

    def _set_allocatable(self, row: int, before: ResourceList | None, after: ResourceList | None) -> None:
        for resource in before or ():
            if resource != PODS:
                self.allocatable[resource][row] = 0
        self.allowed_pods[row] = 0
        self._divisors.clear()
        wide = False
        for resource, text in (after or {}).items():
            amount = milli_value(text) if resource == CPU else value(text)
            wide = wide or not -WIDE < amount < WIDE
            if resource == PODS:
                self.allowed_pods[row] = amount
            else:
                self._column(self.allocatable, resource)[row] = amount
        (self._wide.add if wide else self._wide.discard)(("node", self.names[row]))

    def _set_taints(self, row: int, taints: Taints | None) -> None:
        old = int(self.taint_ids[row])
        self.taint_ids[row] = -1 if taints is None else self.taint_sets.acquire(taints)
        if old >= 0:
            self.taint_sets.release(old)

    # --- pods ---------------------------------------------------------------------------------------------------------

    def add_pod(self, pod: PlacedPod) -> int:
        """Puts a pod on the row of its node (a ghost row is made if there is no such node); returns the row."""
        row = self.row_of.get(pod.node_name)
        if row is None:
            row = self._take_row(pod.node_name)
        self._sequence += 1
        pod.row, pod.sequence = row, self._sequence
        self.pods[row][pod.uid] = pod
        self._account(pod, row, 1)
        if pod.ports:
            self.host_ports.add(row, pod.ports)
        self.log.append(row, Aspect.RESOURCES | Aspect.PODS)
        for observer in self.observers:
            observer(row, None, pod)
        return row

    def restore_pod(self, pod: PlacedPod) -> None:
        """Puts a pod that was removed where it stood in the order of arrival."""
        sequence = pod.sequence
        row = self.add_pod(pod)
        pod.sequence = sequence
        self.pods[row] = dict(sorted(self.pods[row].items(), key=lambda each: each[1].sequence))

    def remove_pod(self, pod: PlacedPod) -> None:
        """Takes a pod that was added off its row."""
        row = pod.row
        del self.pods[row][pod.uid]
        self._account(pod, row, -1)
        if pod.ports:
            self.host_ports.remove(row, pod.ports)
        self.log.append(row, Aspect.RESOURCES | Aspect.PODS)
        for observer in self.observers:
            observer(row, pod, None)
        self._release_if_empty(row)

    def replace_pod(self, old: PlacedPod, new: PlacedPod) -> None:
        """Exchanges two records of the same pod on the same node. Nothing is logged if rules see no difference;
        observers are told all the same, for they may hold the record."""
        row = new.row = old.row
        new.sequence = old.sequence
        self.pods[row][new.uid] = new
        aspects = 0
        if old.node_requests is not new.node_requests or old.nonzero is not new.nonzero:
            self._account(old, row, -1)
            self._account(new, row, 1)
            aspects |= Aspect.RESOURCES
        if old.ports is not new.ports:
            self.host_ports.remove(row, old.ports)
            self.host_ports.add(row, new.ports)
        if (
            old.labels is not new.labels
            or old.terminating != new.terminating
            or old.ports is not new.ports
            or old.priority != new.priority
            or old.conditions != new.conditions
            or old.start_time != new.start_time
        ):
            aspects |= Aspect.PODS
        if aspects:
            self.log.append(row, aspects)
        for observer in self.observers:
            observer(row, old, new)

    def recount(self, row: int, pods: dict[str, PlacedPod]) -> None:
        """Makes the sums of a row anew: these are its pods, whatever was counted before."""
        for pod in list(self.pods[row].values()):
            if pods.get(pod.uid) is not pod:
                self.remove_pod(pod)
        for column in (*self.requested.values(), self.pod_count, self.nonzero_cpu, self.nonzero_memory):
            column[row] = 0
        for pod in pods.values():
            if self.pods[row].get(pod.uid) is pod:
                self._account(pod, row, 1)
            else:
                self.add_pod(pod)
        self.log.append(row, Aspect.ALL)

    def _account(self, pod: PlacedPod, row: int, sign: int) -> None:
        wide = False
        for resource, amount in pod.node_requests:
            column = self.requested.get(resource)
            if column is None:
                column = self._column(self.requested, resource)
            narrow = -WIDE < amount < WIDE
            wide = wide or not narrow
            if narrow and not self._wide:
                column[row] += sign * amount
            else:
                column[row : row + 1] += np.array([amount], np.int64) * sign  # arrays wrap without a warning
        self.pod_count[row] += sign
        cpu, memory = pod.nonzero
        if wide or self._wide:
            self.nonzero_cpu[row : row + 1] += np.array([cpu], np.int64) * sign
            self.nonzero_memory[row : row + 1] += np.array([memory], np.int64) * sign
        else:
            self.nonzero_cpu[row] += sign * cpu
            self.nonzero_memory[row] += sign * memory
        if wide:
            (self._wide.add if sign > 0 else self._wide.discard)(("pod", pod.uid))

    # --- rows ---------------------------------------------------------------------------------------------------------

    def hold_row(self, name: str) -> int:
        """The row of a name; where there is neither such a node nor a pod of it, a ghost row, until `release_row`."""
        row = self.row_of.get(name)
        return self._take_row(name) if row is None else row

    def release_row(self, row: int) -> None:
        """Gives up a row that `hold_row` made; one that is in use stays."""
        if self.names[row]:
            self._release_if_empty(row)

    def _take_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = self.size
            if row == self.capacity:
                self._grow()
            self.size += 1
            self._divisors.clear()
            self.names.append(name)
            self.nodes.append(None)
            self.pods.append({})
        self.row_of[name] = row
        return row

    def _release_if_empty(self, row: int) -> None:
        if self.nodes[row] is None and not self.pods[row]:
            del self.row_of[self.names[row]]
            self.names[row] = ""
            self._free.append(row)

    def _column(self, columns: dict[str, Ints], resource: str) -> Ints:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = np.zeros(self.capacity, np.int64)
        return column

    def _grow(self) -> None:
        new = self.capacity + max(64, self.capacity // 8)  # answers for all rows are as long

        def grown(array: Any, fill: int = 0) -> Any:
            out = np.full(new, fill, array.dtype)
            out[: len(array)] = array
            return out

        self.exists, self.unschedulable = grown(self.exists), grown(self.unschedulable)
        self.allowed_pods, self.pod_count = grown(self.allowed_pods), grown(self.pod_count)
        self.nonzero_cpu, self.nonzero_memory = grown(self.nonzero_cpu), grown(self.nonzero_memory)
        self.allocatable = {name: grown(column) for name, column in self.allocatable.items()}
        self.requested = {name: grown(column) for name, column in self.requested.items()}
        self.taint_ids = grown(self.taint_ids, -1)
        for label_column in self.labels.values():
            label_column.ids = grown(label_column.ids, -1)
        self.capacity = new
