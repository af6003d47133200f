"""An event loop whose time is free: when nothing is left to do, it jumps to the next timer instead of waiting.

    result, left = run(main(), clock)   # hours pass in milliseconds, every run of one seed the same

Everything that waits by the loop (`asyncio.sleep`, `call_later`, timeouts) lives in this time without knowing it. No
sockets and no threads: what comes from outside cannot be waited for.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
MOST_TURNS: Final = 100_000
"""Turns of the loop in which time may stand still."""


class Standstill(RuntimeError):
    """Nothing would ever happen again: every task waits and no timer is set, or time stands still under their work."""


class _Selector(selectors.SelectSelector):
    """Never sleeps; tells the loop how long it would have."""

    loop: VirtualLoop
    turns = 0  # since time moved last

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(0)
            if not ready:
                raise Standstill("every task waits and no timer is set")
            return ready
        self.turns += 1
        moment = self.loop.elapsed
        if timeout > 0:
            self.turns = 0
            due: float = self.loop.__dict__["_scheduled"][0].when()  # a sum of waits may fall short of it
            moment = max(moment, due)
        elif self.turns > MOST_TURNS:
            self.turns = 0
            raise Standstill(f"no end of work at {moment} s")
        self.loop.elapsed = math.nextafter(moment, math.inf)  # a timer of just this moment is due in the next turn
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module's docstring. `time()` starts at 0."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.elapsed = 0.0
        super().__init__(selector)
        self._clock_resolution = 0.0  # no timer fires before its time

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
        return result, sorted(task.get_name() for task in asyncio.all_tasks(loop))
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
