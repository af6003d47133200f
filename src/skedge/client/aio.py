"""Waiting by a `Clock`: sleep, deadline, jittered backoff. With the real clock these are asyncio's own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from skedge.clock import Clock, VirtualClock


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait until `clock` has moved by `seconds`; always lets other tasks run."""
    if seconds <= 0 or not isinstance(clock, VirtualClock):
        await asyncio.sleep(seconds)
        return
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = clock.call_at(clock.monotonic() + seconds, wake)
    try:
        await woken
    finally:
        timer.cancel()


class Handle(Protocol):
    """A call to come."""

    def cancel(self) -> None: ...


def call_later(clock: Clock, seconds: float, callback: Callable[[], None]) -> Handle:
    """Have `callback` called once `clock` has moved by `seconds`."""
    if isinstance(clock, VirtualClock):
        return clock.call_at(clock.monotonic() + seconds, callback)
    return asyncio.get_running_loop().call_later(seconds, callback)


@asynccontextmanager
async def deadline(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Cancel the body and raise `TimeoutError` once `clock` has moved by `seconds`."""
    if not isinstance(clock, VirtualClock):
        async with asyncio.timeout(seconds):
            yield
        return
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        timer = clock.call_at(clock.monotonic() + seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


def jitter(seconds: float, factor: float, rng: random.Random) -> float:
    """`seconds` stretched at random by up to `factor` times itself."""
    return seconds * (1.0 + rng.random() * factor)


class Backoff:
    """Exponential delays with jitter that start over after a quiet time (`wait.NewExponentialBackoffManager`).

    The delays are `initial`, `initial * factor`, ... up to `maximum` seconds, each stretched by up to `jitter_factor`
    times itself; after `reset` seconds without a call to `next` they start at `initial` again.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        initial: float = 0.8,
        maximum: float = 30.0,
        factor: float = 2.0,
        jitter_factor: float = 1.0,
        reset: float = 120.0,
    ) -> None:
        self._clock, self._rng = clock, rng
        self._initial, self._maximum, self._factor = initial, maximum, factor
        self._jitter_factor, self._reset = jitter_factor, reset
        self._delay = initial
        self._last_call = clock.monotonic()

    def next(self) -> float:
        """The delay to wait now, in seconds."""
        now = self._clock.monotonic()
        if now - self._last_call > self._reset:
            self._delay = self._initial
        self._last_call = now
        delay = self._delay
        self._delay = min(delay * self._factor, self._maximum)
        return jitter(delay, self._jitter_factor, self._rng)
