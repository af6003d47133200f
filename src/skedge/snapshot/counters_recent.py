"""Values that are kept while they are used: the least recently used go when they are too large together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class Recent(Generic[T]):
    """Values with `nbytes`, least recently used first out when they are too large together."""

    def __init__(self, limit: int, dropped: Callable[[T], None] | None = None) -> None:
        self._limit = limit
        self._dropped = dropped
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._added = 0
        self.nbytes = 0

    def get(self, key: Hashable) -> T | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: T) -> None:
        self._entries[key] = value
        self.nbytes += value.nbytes
        self._added += 1
        if not self._added % 1024:
            self.nbytes = sum(entry.nbytes for entry in self._entries.values())  # entries grow while they are kept
        if self.nbytes <= self._limit:
            return
        while self.nbytes > self._limit * 7 // 8 and len(self._entries) > 1:  # some room, for adding up is slow
            _, gone = self._entries.popitem(last=False)
            self.nbytes -= gone.nbytes
            if self._dropped is not None:
                self._dropped(gone)

    def pop(self, key: Hashable) -> None:
        """Takes a value out, if it is there, without telling anybody."""
        found = self._entries.pop(key, None)
        if found is not None:
            self.nbytes -= found.nbytes

    def values(self) -> list[T]:
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
