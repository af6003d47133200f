"""Values that are kept while they are used: the least recently used go when they are too large together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


_SEEN: Final = 1024
"""So many keys are remembered at least, twice as many at most."""


class Recent(Generic[T]):
    """Values with `nbytes`, least recently used first out when they are too large together.

    With a `trial` (bytes), a value whose key was never heard of is on trial until somebody gets it: only values on
    trial make room for one another. So what is asked for once and never again leaves soon, and its memory, still in
    the processor's caches, serves the next. A key that comes again is known by then and its value is kept. With a
    trial of 0 bytes the first value of a key is not kept at all.
    """

    def __init__(self, limit: int, dropped: Callable[[T], None] | None = None, trial: int | None = None) -> None:
        self._limit = limit
        self._dropped = dropped
        self._trial = trial
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._added = 0
        self._on_trial: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()  # with their size when they came
        self._bytes_on_trial = 0
        self._seen: set[Hashable] = set()
        self._seen_before: set[Hashable] = set()

    @property
    def nbytes(self) -> int:
        return self._bytes + self._bytes_on_trial

    def get(self, key: Hashable) -> T | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        elif self._on_trial:
            tried = self._on_trial.pop(key, None)
            if tried is not None:
                found = tried[0]
                self._bytes_on_trial -= tried[1]
                self._keep(key, found)
        return found

    def put(self, key: Hashable, value: T) -> None:
        if self._trial is None:
            self._keep(key, value)
        elif key in self._seen or key in self._seen_before:
            self._seen.discard(key)
            self._seen_before.discard(key)
            self._keep(key, value)
        elif self._trial:
            self._try(key, value, self._trial)
        else:
            self._hear_of(key)

    def _hear_of(self, key: Hashable) -> None:
        if len(self._seen) >= _SEEN:
            self._seen, self._seen_before = set(), self._seen
        self._seen.add(key)

    def _try(self, key: Hashable, value: T, trial: int) -> None:
        entries, size = self._on_trial, value.nbytes
        entries[key] = (value, size)
        self._bytes_on_trial += size
        while self._bytes_on_trial > trial and len(entries) > 1:
            known, (gone, size) = entries.popitem(last=False)
            self._bytes_on_trial -= size
            self._hear_of(known)
            if self._dropped is not None:
                self._dropped(gone)

    def _keep(self, key: Hashable, value: T) -> None:
        self._entries[key] = value
        self._bytes += value.nbytes
        self._added += 1
        if not self._added % 1024:
            self._bytes = sum(entry.nbytes for entry in self._entries.values())  # entries grow while they are kept
        if self._bytes <= self._limit:
            return
        while self._bytes > self._limit * 7 // 8 and len(self._entries) > 1:  # some room, for adding up is slow
            _, gone = self._entries.popitem(last=False)
            self._bytes -= gone.nbytes
            if self._dropped is not None:
                self._dropped(gone)

    def pop(self, key: Hashable) -> None:
        """Takes a value out, if it is there, without telling anybody."""
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= found.nbytes
            return
        tried = self._on_trial.pop(key, None)
        if tried is not None:
            self._bytes_on_trial -= tried[1]

    def values(self) -> list[T]:
        return [*self._entries.values(), *[value for value, _ in self._on_trial.values()]]

    def __len__(self) -> int:
        return len(self._entries) + len(self._on_trial)
