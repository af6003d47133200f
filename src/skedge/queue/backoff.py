"""Pods that wait out a pause after a failed attempt. Upstream: `pkg/scheduler/backend/queue/backoff_queue.go`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from skedge.queue.heap import PodHeap
from skedge.queue.queued_pod import QueuedPodInfo

_NANO: Final = 1_000_000_000


class BackoffQueue:
    """Two heaps by the end of the pause: pods that plugins rejected, and pods whose attempt broke.

    With `pop_from_backoff_q` ends are whole seconds, pods of one second come in the order of the active queue, and the
    first heap may be popped before its time; the second never.

    Args: `now` gives seconds since 1970; `sort_key` is the active queue's; pauses are in seconds, a maximum of 0 means
    none at all.
    """

    def __init__(
        self,
        now: Callable[[], float],
        sort_key: Callable[[QueuedPodInfo], Any],
        *,
        initial: float,
        maximum: float,
        pop_from_backoff_q: bool,
        generic_workload: bool = False,
    ) -> None:
        self._generic_workload = generic_workload
        self._now = now
        self._sort_key = sort_key
        self._initial = round(initial * _NANO)
        self._maximum = round(maximum * _NANO)
        self._whole_seconds = pop_from_backoff_q
        self.rejected = PodHeap()
        self.errors = PodHeap()

    def duration(self, count: int) -> float:
        """Pause after the count-th failure (from 1), in seconds: the initial one, doubled up to the maximum."""
        shift = count - 1
        longest = self._maximum
        return (longest if self._initial > longest >> shift else self._initial << shift) / _NANO

    def expiration(self, record: QueuedPodInfo) -> float:
        """When the pause ends; 0.0 if there is none."""
        count = record.consecutive_errors_count or record.unschedulable_count
        if count == 0 or self._maximum == 0:
            return 0.0
        if record.backoff_expiration == 0.0:
            record.backoff_expiration = self._window(record.timestamp + self.duration(count))
        return record.backoff_expiration

    def backing_off(self, record: QueuedPodInfo) -> bool:
        """Whether the pause is still on; in the second of its end it is."""
        return not self.expiration(record) < self._window(self._now())

    def _window(self, time: float) -> float:
        return float(math.floor(time)) if self._whole_seconds else time

    def early(self, record: QueuedPodInfo) -> bool:
        """Whether the pod may be popped before its pause is over: one that was rejected, unless it is of a pod group.

        Groups never rest without a pause; popped early, one that does not fit would be tried without end.
        """
        return bool(record.rejectors) and not (self._generic_workload and record.pod.group is not None)

    def push(self, record: QueuedPodInfo) -> PodHeap:
        """Insert, or put in its new place after an update. Returns the heap it went to.

        Raises what the sort key raises, then nothing has changed.
        """
        end = self.expiration(record)
        if not self.early(record):
            self.errors.push(record, end)
            self.rejected.remove(record.key)
            return self.errors
        self.rejected.push(record, (end, self._sort_key(record)) if self._whole_seconds else end)
        self.errors.remove(record.key)
        return self.rejected

    def get(self, key: str) -> QueuedPodInfo | None:
        return self.rejected.get(key) or self.errors.get(key)

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self.rejected.remove(key) or self.errors.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """The rejected pod whose pause ends first, whether it has or not."""
        return self.rejected.pop()

    def pop_completed(self) -> Iterator[QueuedPodInfo]:
        """Takes out the pods whose pause is over: rejected ones, then broken ones."""
        for heap in (self.rejected, self.errors):
            while (head := heap.peek()) is not None and not self.backing_off(head[2]):
                heap.pop()
                yield head[2]

    def next_tick(self) -> float | None:
        """The whole second at which the next pause will have ended; None when nothing waits."""
        ends = [self.expiration(head[2]) for heap in (self.rejected, self.errors) if (head := heap.peek()) is not None]
        return math.floor(min(ends)) + 1.0 if ends else None

    def __contains__(self, key: str) -> bool:
        return key in self.rejected or key in self.errors

    def __len__(self) -> int:
        return len(self.rejected) + len(self.errors)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self.rejected
        yield from self.errors
