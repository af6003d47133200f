"""Views: how rules read the columns. Many rows give arrays, one row gives plain numbers, by the same method names.

A rule is one expression over what a view returns; `snapshot.arith` has the few operations that need care. A view may
stand for hypothetical worlds: `DeltaView` adds and removes pods on single rows, each row being its own world.

    Rows      a range or a selection of rows    arrays of shape (size,)
    Row       one row                           int, bool
    DeltaView a selection of rows, with pods added or removed on them
    Bare      a selection of rows, as if no pods and no images were there
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from skedge.api.ports import HostPort, any_collide
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.by_domain import of_all_rows, of_rows
from skedge.snapshot.lookup import Lookup
from skedge.snapshot.nodes import LabelColumn, NodeTable
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.stacks import Stack

Rowids = NDArray[np.int64]
_FEW: Final = 16
"""Answers about so many different taints are looked at before rows are."""


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

    def divisor(self, resource: str) -> tuple[Any, Any]:
        """(allocatable, but 1 where that is 0; whether it is not 0: one bool for all rows where they agree on it).

        Of many rows a float64 array while all amounts are narrow, see `arith.trunc_div`.
        """

    def requested(self, resource: str) -> Any:
        """Sum of the effective requests of the row's pods."""

    def stack(self, resources: tuple[str, ...]) -> Stack | None:
        """The resources side by side, of shape (len(resources), size); None where the view has them one by one only."""

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
        """The lookup's answer for each row's taints (a tuple of Taint); one number if no taints make a difference."""

    def by_label(self, key: str, lookup: Lookup) -> Any:
        """The lookup's answer for each row's value of a label (None: absent)."""

    def by_domain(self, column: LabelColumn, numbers: Ints) -> Any:
        """The number of each row's domain, the last one being for rows without the label.

        Of all rows, see `by_domain.of_all_rows`: a plain number if it is the same for all, or a ByDomain.
        """

    def named(self, names: Iterable[str]) -> Any:
        """Whether the node's name is one of these."""

    def pods(self, row: int) -> Iterable[PlacedPod]:
        """Pods on a row, in order of arrival."""

    def has_image(self, name: str) -> Any:
        """Whether the node has an image of this name; 0 or 1."""

    def ports_taken(self, wanted: Sequence[HostPort]) -> Any:
        """Whether one of these host ports collides with one that is in use on the row; 0 or 1."""

    def pick(self, column: Any) -> Any:
        """The rows' entries of an array with one entry for each row of the table."""

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
    def whole(self) -> bool:
        """Whether these are all rows of the table, in order."""
        return isinstance(self._index, slice)

    @property
    def rows(self) -> Rowids:
        return np.arange(self._size) if isinstance(self._index, slice) else self._index

    def only(self, among: Bools) -> Rows:
        """The view of those rows for which `among` (of shape (size,)) is true."""
        return Rows(self.table, self.rows[among])

    def allocatable(self, resource: str) -> Any:
        column = self.table.allocatable.get(resource)
        return np.zeros(self._size, np.int64) if column is None else self.pick(column)

    def divisor(self, resource: str) -> tuple[Any, Any]:
        table = self.table
        if table.wide:
            allocatable = self.allocatable(resource)
            present = allocatable != 0
            return np.where(present, allocatable, 1), present
        divisor, present = table.divisor(resource)
        return self.pick(divisor), present if present is True else self.pick(present)

    def requested(self, resource: str) -> Any:
        column = self.table.requested.get(resource)
        return np.zeros(self._size, np.int64) if column is None else self.pick(column)

    def stack(self, resources: tuple[str, ...]) -> Stack | None:
        return self.table.stack(resources) if self.whole else None

    @property
    def allowed_pods(self) -> Any:
        return self.pick(self.table.allowed_pods)

    @property
    def pod_count(self) -> Any:
        return self.pick(self.table.pod_count)

    @property
    def nonzero_cpu(self) -> Any:
        return self.pick(self.table.nonzero_cpu)

    @property
    def nonzero_memory(self) -> Any:
        return self.pick(self.table.nonzero_memory)

    @property
    def unschedulable(self) -> Any:
        return self.pick(self.table.unschedulable)

    def by_taints(self, lookup: Lookup) -> Any:
        answers = lookup.answers(self.table.taint_sets)
        if len(answers) <= _FEW:
            numbers = answers.tolist()
            if numbers.count(numbers[0]) == len(numbers):
                return numbers[0]
        return answers.take(self.pick(self.table.taint_ids))

    def by_label(self, key: str, lookup: Lookup) -> Any:
        column = self.table.label_column(key)
        return lookup.answers(column.values).take(self.pick(column.ids))

    def by_domain(self, column: LabelColumn, numbers: Ints) -> Any:
        if isinstance(self._index, slice):
            return of_all_rows(column, numbers, self._size)
        return of_rows(column, numbers, self._index, self.table.size)

    def named(self, names: Iterable[str]) -> Any:
        rows = [row for name in names if (row := self.table.row_of.get(name)) is not None]
        if isinstance(self._index, slice):
            mask = np.zeros(self._size, bool)
            mask[rows] = True
            return mask
        return np.isin(self._index, rows)

    def pods(self, row: int) -> Iterable[PlacedPod]:
        return self.table.pods[row].values()

    def has_image(self, name: str) -> Any:
        state = self.table.images.get(name)
        return self._marked(() if state is None else state.rows)

    def ports_taken(self, wanted: Sequence[HostPort]) -> Any:
        return self._marked(self.table.host_ports.taken(wanted))

    def _marked(self, rows: Collection[int]) -> Any:
        """1 for the rows named here."""
        marks = np.zeros(self.table.size, np.int64)
        if rows:
            marks[np.fromiter(rows, np.int64, len(rows))] = 1
        return self.pick(marks)

    def pick(self, column: Any) -> Any:
        index = self._index
        return column[index] if isinstance(index, slice) else column.take(index)

    def full(self, number: int) -> Any:
        return np.full(self._size, number, np.int64)


class Later(Rows):
    """A selection of so many rows that are told when somebody asks for more than their number."""

    __slots__ = ("_tell",)

    def __init__(self, table: NodeTable, size: int, tell: Callable[[], Rowids]) -> None:
        self.table, self._size, self._tell = table, size, tell

    def __getattr__(self, name: str) -> Any:
        if name != "_index":  # the one slot that is not filled from the start
            raise AttributeError(name)
        self._index = found = self._tell()
        return found


class Bare(Rows):
    """A selection of rows as nodes without pods and images; ghost rows may be among them.

    So the reference sees nodes that came back from an extender as objects.
    """

    __slots__ = ()

    def requested(self, resource: str) -> Any:
        return np.zeros(self.size, np.int64)

    @property
    def pod_count(self) -> Any:
        return np.zeros(self.size, np.int64)

    nonzero_cpu = nonzero_memory = pod_count

    def pods(self, row: int) -> Iterable[PlacedPod]:
        return ()

    def has_image(self, name: str) -> Any:
        return np.zeros(self.size, np.int64)


class Row:
    """One row, in plain numbers: an array call for one row costs as much as for a thousand."""

    __slots__ = ("_resources", "row", "table")

    def __init__(self, table: NodeTable, row: int = 0) -> None:
        self.table = table
        self.row = row
        self._resources: tuple[int, tuple[int, ...]] | None = None  # of this row

    @property
    def size(self) -> int:
        return 1

    @property
    def rows(self) -> Sequence[int]:
        return (self.row,)

    def allocatable(self, resource: str) -> Any:
        column = self.table.allocatable.get(resource)
        return 0 if column is None else column.item(self.row)

    def divisor(self, resource: str) -> tuple[Any, Any]:
        allocatable = self.allocatable(resource)
        return allocatable or 1, allocatable != 0

    def requested(self, resource: str) -> Any:
        column = self.table.requested.get(resource)
        return 0 if column is None else column.item(self.row)

    def stack(self, resources: tuple[str, ...]) -> None:
        return None

    @property
    def resources(self) -> tuple[int, ...]:
        """All that RESOURCES and ALLOCATABLE stand for; rows are alike in these where it is equal."""
        row, found = self.row, self._resources
        if found is None or found[0] != row:
            table = self.table
            numbers = [column.item(row) for column in table.allocatable.values()]
            numbers += [column.item(row) for column in table.requested.values()]
            numbers += (
                table.allowed_pods.item(row),
                table.pod_count.item(row),
                table.nonzero_cpu.item(row),
                table.nonzero_memory.item(row),
                len(table.allocatable),
            )
            found = self._resources = (row, tuple(numbers))
        return found[1]

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

    def by_domain(self, column: LabelColumn, numbers: Ints) -> Any:
        return numbers.item(column.ids.item(self.row))

    def named(self, names: Iterable[str]) -> Any:
        return self.table.names[self.row] in names

    def pods(self, row: int) -> Iterable[PlacedPod]:
        return self.table.pods[row].values()

    def has_image(self, name: str) -> Any:
        state = self.table.images.get(name)
        return int(state is not None and self.row in state.rows)

    def ports_taken(self, wanted: Sequence[HostPort]) -> Any:
        return int(self.table.host_ports.taken_on(wanted, self.row))

    def pick(self, column: Any) -> Any:
        return column.item(self.row)

    def full(self, number: int) -> Any:
        return number


class Amounts(Protocol):
    """What the pods added to and removed from each row of a DeltaView come to, in the order of its rows."""

    @property
    def count(self) -> Ints:
        """Pods added less pods removed."""

    def requested(self, resource: str) -> Ints: ...


class Sums:
    """Amounts added up from (position, 1 or -1, pod) once; pods that ask for the same are added up together."""

    def __init__(self, size: int, deltas: Iterable[tuple[int, int, PlacedPod]]) -> None:
        self._size = size
        alike: dict[tuple[int, int], tuple[PlacedPod, list[int], list[int]]] = {}
        for position, sign, pod in deltas:
            key = (id(pod.node_requests), id(pod.nonzero))  # equal ones are shared
            found = alike.get(key)
            if found is None:
                found = alike[key] = (pod, [], [])
            found[1].append(position)
            found[2].append(sign)
        self._alike = [(pod, np.array(at, np.int64), np.array(signs, np.int64)) for pod, at, signs in alike.values()]

    def _sum(self, amount_of: Callable[[PlacedPod], int]) -> Ints:
        total = np.zeros(self._size, np.int64)
        for pod, positions, signs in self._alike:
            amount = amount_of(pod)
            if amount:
                np.add.at(total, positions, signs * np.int64(amount))
        return total

    @property
    def count(self) -> Ints:
        return self._sum(lambda pod: 1)

    def requested(self, resource: str) -> Ints:
        return self._sum(lambda pod: next((amount for name, amount in pod.node_requests if name == resource), 0))

    @property
    def nonzero_cpu(self) -> Ints:
        return self._sum(lambda pod: pod.nonzero[0])

    @property
    def nonzero_memory(self) -> Ints:
        return self._sum(lambda pod: pod.nonzero[1])


class DeltaView(Rows):
    """A selection of rows in which pods were added to or removed from single rows, each row its own world.

    `amounts` must agree with `added` and `removed`, which may name other rows as well; without it they are added up on
    first use.
    """

    __slots__ = ("_amounts", "_positions", "_sums", "added", "removed")

    def __init__(
        self,
        table: NodeTable,
        rows: Rowids,
        added: Mapping[int, Sequence[PlacedPod]] | None = None,
        removed: Mapping[int, Sequence[PlacedPod]] | None = None,
        amounts: Amounts | None = None,
    ) -> None:
        super().__init__(table, rows)
        self.added = added if added is not None else {}
        self.removed = removed if removed is not None else {}
        self._amounts = amounts
        self._sums: Sums | None = None
        self._positions: dict[int, int] | None = None

    def only(self, among: Bools) -> DeltaView:
        return DeltaView(self.table, self.rows[among], self.added, self.removed)

    def deltas(self, among: Bools | None = None) -> Iterable[tuple[int, int, PlacedPod]]:
        """(position in `rows`, 1 or -1, pod) of each pod added or removed.

        `among` spares a caller who knows where it can matter the rest: of rows with False, the pods that were removed.
        """
        if self._positions is None:
            self._positions = {row: i for i, row in enumerate(self.rows.tolist())}
        if among is not None:
            yield from self._added_and_removed(self._positions, among)
            return
        for sign, pods_of_row in ((1, self.added), (-1, self.removed)):
            for row, pods in pods_of_row.items():
                position = self._positions.get(row)
                if position is not None:
                    for pod in pods:
                        yield position, sign, pod

    def _added_and_removed(self, positions: Mapping[int, int], among: Bools) -> Iterable[tuple[int, int, PlacedPod]]:
        for row, pods in self.added.items():
            position = positions.get(row)
            if position is not None:
                for pod in pods:
                    yield position, 1, pod
        rows = self.rows
        for position in np.flatnonzero(among).tolist():
            for pod in self.removed.get(int(rows[position]), ()):
                yield position, -1, pod

    def _summed(self) -> Sums:
        if self._sums is None:
            self._sums = Sums(self.size, self.deltas())
        return self._sums

    def requested(self, resource: str) -> Any:
        return super().requested(resource) + (self._amounts or self._summed()).requested(resource)

    @property
    def pod_count(self) -> Any:
        return super().pod_count + (self._amounts or self._summed()).count

    @property
    def nonzero_cpu(self) -> Any:
        return super().nonzero_cpu + self._summed().nonzero_cpu

    @property
    def nonzero_memory(self) -> Any:
        return super().nonzero_memory + self._summed().nonzero_memory

    def ports_taken(self, wanted: Sequence[HostPort]) -> Any:
        taken = super().ports_taken(wanted)
        rows = self.rows
        for position in {position for position, _, pod in self.deltas() if pod.ports}:
            used = (port for pod in self.pods(int(rows[position])) for port in pod.ports)
            taken[position] = any_collide(wanted, used)
        return taken

    def pods(self, row: int) -> Iterable[PlacedPod]:
        gone = {pod.uid for pod in self.removed.get(row, ())}
        return [*(pod for pod in self.table.pods[row].values() if pod.uid not in gone), *self.added.get(row, ())]
