"""An event loop whose time is free: when nothing is left to do, it jumps to the next timer instead of waiting.

    result, left = run(main(), clock)   # hours pass in milliseconds, every run of one seed the same

Everything that waits by the loop (`asyncio.sleep`, `call_later`, timeouts) lives in this time without knowing it. No
sockets and no threads: what comes from outside cannot be waited for.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Standstill(RuntimeError):
    """Every task waits, and no timer is set: nothing would ever happen again."""


class _Selector(selectors.SelectSelector):
    """Never sleeps; tells the loop how long it would have."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(0)
            if not ready:
                raise Standstill("every task waits and no timer is set")
            return ready
        if timeout > 0:
            self.loop.elapsed += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module's docstring. `time()` starts at 0."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.elapsed = 0.0
        super().__init__(selector)
        self._clock_resolution = 1e-6  # a sum of waits may fall short of the timer by a rounding

    def time(self) -> float:
        return self.elapsed


class LoopClock:
    """A clock in a virtual loop's time. `jump` sets the wall clock, as an administrator or NTP would."""

    def __init__(self, loop: VirtualLoop, start: float = 1_700_000_000.0) -> None:
        self._loop = loop
        self.start = start

    def now(self) -> float:
        return self.start + self._loop.elapsed

    def monotonic(self) -> float:
        return self._loop.elapsed

    def jump(self, seconds: float) -> None:
        """Moves `now()`, not `monotonic()`; backwards too."""
        self.start += seconds


def run(loop: VirtualLoop, main: Coroutine[Any, Any, T]) -> tuple[T, list[str]]:
    """Runs to the end and closes the loop; the result, and the names of tasks that were left over (and cancelled)."""
    try:
        result = loop.run_until_complete(main)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        return result, sorted(task.get_name() for task in left)
    finally:
        loop.close()
