"""Which rows changed since a reader last looked: a bounded log of (row, aspects).

A position is a plain integer that only grows. A reader keeps the position up to which it is current and asks for what
came after; one that fell behind the bounded window is told to recompute everything.
"""

from __future__ import annotations

from typing import Final


class Aspect:
    """What of a row changed, as bits. A kept answer is asked again only when an aspect it reads changed.

    Plain integers: this is looked at several times a pod, and an enumeration's operators cost a microsecond each.
    """

    RESOURCES: Final = 1  # requested, non-zero requested, number of pods
    PODS: Final = 2  # identity, labels, ports, volumes or deletion mark of a pod on the row
    ALLOCATABLE: Final = 4
    LABELS: Final = 8
    TAINTS: Final = 16  # taints and spec.unschedulable
    IMAGES: Final = 32
    NODE: Final = 64  # the Node object came or went, or a field without an aspect of its own changed
    ALL: Final = 127


OF_PODS: Final = Aspect.RESOURCES | Aspect.PODS
_OF_NODES: Final = Aspect.ALL & ~OF_PODS
BITS: Final = 7
MASK: Final = (1 << BITS) - 1


class ChangeLog:
    """Entries are `row << BITS | aspects`; the newest `window` to `2 * window` of them are kept."""

    __slots__ = ("_base", "_entries", "_window", "nodes_position", "position")

    def __init__(self, window: int = 32768) -> None:
        self._entries: list[int] = []
        self._base = 0
        self._window = window
        self.position = 0
        self.nodes_position = 0
        """The position after the last change that was not one of pods alone."""

    def append(self, row: int, aspects: int) -> None:
        entries = self._entries
        entries.append(row << BITS | aspects)
        self.position += 1
        if aspects & _OF_NODES:
            self.nodes_position = self.position
        if len(entries) > 2 * self._window:
            del entries[: self._window]
            self._base += self._window

    @property
    def last_row(self) -> int:
        """The row of the newest entry; there must be one."""
        return self._entries[-1] >> BITS

    def aspects_since(self, position: int) -> int:
        """All aspects of any row that changed after `position`; Aspect.ALL when that lies before the window."""
        if position < self._base:
            return Aspect.ALL
        found = 0
        for entry in self._entries[position - self._base :]:
            found |= entry
        return found & MASK

    def since(self, position: int, aspects: int) -> set[int] | None:
        """Rows with one of these aspects changed after `position`; None when that lies before the window."""
        if position < self._base:
            return None
        if position >= self.nodes_position and not aspects & ~_OF_NODES:
            return set()
        return {entry >> BITS for entry in self._entries[position - self._base :] if entry & aspects}
