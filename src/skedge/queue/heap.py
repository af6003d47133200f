"""A heap of queued pods with look-up and removal by key. Upstream: `pkg/scheduler/backend/heap`."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final

from skedge.queue.queued_pod import QueuedPodInfo

Entry = tuple[Any, int, QueuedPodInfo]
"""(what it is ordered by, ticket of arrival, record): equal keys come out in order of arrival."""

_SLACK: Final = 64


class PodHeap:
    """Smallest sort key first. An entry that was removed or re-keyed stays inside and is passed over when it surfaces:
    what counts is the one entry a pod key points to."""

    __slots__ = ("_heap", "_live", "_tickets")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._live: dict[str, Entry] = {}
        self._tickets = 0

    def push(self, record: QueuedPodInfo, sort_key: Any) -> None:
        """Insert. A record that is inside already is re-keyed and keeps its ticket; another of its key is replaced."""
        key = record.key
        live = self._live
        old = live.get(key)
        if old is not None and old[2] is record:
            if old[0] == sort_key:
                return
            entry = (sort_key, old[1], record)
        else:
            entry = (sort_key, self._tickets, record)
            self._tickets += 1
        heappush(self._heap, entry)
        live[key] = entry
        if old is not None:
            self._compact()

    def pop(self) -> QueuedPodInfo | None:
        heap, live = self._heap, self._live
        while heap:
            entry = heappop(heap)
            record = entry[2]
            if live.get(record.key) is entry:
                del live[record.key]
                return record
        return None

    def peek(self) -> Entry | None:
        heap, live = self._heap, self._live
        while heap:
            entry = heap[0]
            if live.get(entry[2].key) is entry:
                return entry
            heappop(heap)
        return None

    def remove(self, key: str) -> QueuedPodInfo | None:
        entry = self._live.pop(key, None)
        if entry is None:
            return None
        self._compact()
        return entry[2]

    def get(self, key: str) -> QueuedPodInfo | None:
        entry = self._live.get(key)
        return None if entry is None else entry[2]

    def __contains__(self, key: str) -> bool:
        return key in self._live

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """In no particular order."""
        return (entry[2] for entry in self._live.values())

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = list(self._live.values())
            heapify(self._heap)

    def validate(self) -> None:
        """AssertionError when the order is broken or a live pod can not surface."""
        heap = self._heap
        for i in range(1, len(heap)):
            assert not heap[i] < heap[(i - 1) // 2], f"heap order broken at {i}"
        inside = {id(entry) for entry in heap}
        for key, entry in self._live.items():
            assert id(entry) in inside, f"{key} has no entry in the heap"
            assert entry[2].key == key, f"{key} points to {entry[2].key}"
