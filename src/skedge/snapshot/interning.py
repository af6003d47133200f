"""Small integers for hashable values, so that columns hold ids instead of objects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """value <-> id. Ids are counted: an id whose last user is gone is given to the next new value.

    `generation` grows when an id changes its meaning, so that tables indexed by id know that they are stale.
    """

    __slots__ = ("_counts", "_free", "_ids", "generation", "values")

    def __init__(self) -> None:
        self._ids: dict[T, int] = {}
        self._counts: list[int] = []
        self._free: list[int] = []
        self.values: list[T | None] = []
        self.generation = 0

    def __len__(self) -> int:
        """Number of ids ever in use at once: every id is below this."""
        return len(self.values)

    @property
    def all_in_use(self) -> bool:
        """Whether every id stands for a value."""
        return not self._free

    def get(self, value: T) -> int:
        """The id of a value in use, or -1."""
        return self._ids.get(value, -1)

    def acquire(self, value: T) -> int:
        """The id of a value, counting one more user of it."""
        found = self._ids.get(value)
        if found is not None:
            self._counts[found] += 1
            return found
        if self._free:
            new = self._free.pop()
            self.values[new] = value
            self._counts[new] = 1
            self.generation += 1
        else:
            new = len(self.values)
            self.values.append(value)
            self._counts.append(1)
        self._ids[value] = new
        return new

    def release(self, ident: int) -> None:
        """One user less; the last one frees the id."""
        self._counts[ident] -= 1
        if self._counts[ident] == 0:
            value = self.values[ident]
            assert value is not None
            del self._ids[value]
            self.values[ident] = None
            self._free.append(ident)

    def in_use(self) -> int:
        return len(self._ids)
