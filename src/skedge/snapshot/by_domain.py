"""What all rows of a topology domain have in common, gathered for the rows only when somebody needs it row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from skedge.snapshot.arith import Ints
from skedge.snapshot.nodes import LabelColumn

FEW: Final = 64
"""So many domains are looked at before rows are."""


class ByDomain:
    """Numbers of the rows of a table, all of which have the label: `numbers[id]` for each domain.

    Shape (number of ids + 1,), the last one being for rows without the label; every other domain has a row.
    """

    __slots__ = ("_column", "_numbers", "_size")

    def __init__(self, column: LabelColumn, numbers: Ints, size: int) -> None:
        self._column = column
        self._numbers = numbers
        self._size = size

    @property
    def present(self) -> Ints:
        """The numbers that occur."""
        return self._numbers[:-1]

    def take(self, rows: Ints) -> Ints:
        return self._numbers.take(self._column.ids.take(rows))

    def map(self, function: Callable[[Ints], Ints]) -> ByDomain:
        """The same with a function of the number."""
        return ByDomain(self._column, function(self._numbers), self._size)

    def rows(self) -> Ints:
        return self._numbers.take(self._column.ids[: self._size])


class Scattered:
    """Numbers of a view's rows of which few are not 0: `numbers[ids[row]]` for each row of the table.

    `some`: rows of the table, among which are all whose number is not 0.
    """

    __slots__ = ("_ids", "_numbers", "_view", "some")

    def __init__(self, view: Any, ids: NDArray[np.int32], numbers: Ints, some: Ints) -> None:
        self._view = view
        self._ids = ids
        self._numbers = numbers
        self.some = some

    def at(self, rows: Ints) -> Ints:
        """The numbers of these rows of the table."""
        return self._numbers.take(self._ids.take(rows))

    def rows(self) -> Ints:
        found: Ints = self._numbers.take(self._view.pick(self._ids))
        return found


def gathered(answer: Any) -> Any:
    """An answer row by row: what is kept in fewer numbers as an array, all others as they are."""
    return answer.rows() if isinstance(answer, ByDomain | Scattered) else answer


def of_all_rows(column: LabelColumn, numbers: Ints, size: int) -> Any:
    """The rows' numbers: one for all if domains agree, a ByDomain if they are few, else an array.

    Where some row lacks the label, or a domain has no rows, always an array; not to be written to.
    """
    if _own(column, numbers, size):
        return numbers[:-1]
    if column.covered == size and column.values.all_in_use and len(numbers) <= FEW:
        known = numbers[:-1].tolist()
        if known and known.count(known[0]) == len(known):
            return known[0]
        return ByDomain(column, numbers, size)
    return numbers.take(column.ids[:size])


def of_rows(column: LabelColumn, numbers: Ints, rows: Ints, size: int) -> Ints:
    """The numbers of some of so many rows, as an array."""
    return numbers.take(rows if _own(column, numbers, size) else column.ids.take(rows))


def _own(column: LabelColumn, numbers: Ints, size: int) -> bool:
    """Whether every row is a domain, of the same number."""
    return not column.others and column.covered == size == len(numbers) - 1
