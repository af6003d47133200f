"""The time of day, elapsed time, and a random source, as arguments: nothing else in skedge asks the machine for them.

A leaf: imports nothing of skedge. Randomness is passed as a `random.Random`; one seed reproduces one run.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Two readings in seconds. Waiting is the caller's business (an event loop's, a test's), not the clock's."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...


class RealClock:
    """The machine's clock."""

    __slots__ = ()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class Timer:
    """A callback that a `VirtualClock` will make once its time has come."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when


class VirtualClock:
    """Time that moves only when told to: `advance(seconds)` fires the timers it passes, in order.

    `now()` and `monotonic()` move together; `now()` starts at `start`.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[Timer] = []

    def now(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Have `callback` called when `monotonic()` reaches `when`; a past moment: at the next advance."""
        timer = Timer(when, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def next_timer(self) -> float | None:
        """When (in `monotonic()` terms) the next timer is due, or None."""
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0].when if self._timers else None

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` (not negative); each timer that is passed sees its own time."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        target = self._elapsed + seconds
        while (due := self.next_timer()) is not None and due <= target:
            timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, due)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        self._elapsed = target
