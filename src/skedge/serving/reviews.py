"""What both delegated reviews share: answers kept for a while, one request for a question at a time, retries."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from random import Random
from typing import Final, Generic, TypeVar

from skedge.clock import Clock
from skedge.serving.users import ReviewError
from skedge.telemetry.families import Counter, Family, Histogram

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_STEPS: Final = 5
_FIRST_PAUSE: Final = 0.5
_FACTOR: Final = 1.5
_JITTER: Final = 0.2


class ExpiringCache(Generic[K, V]):
    """At most `size` answers, the least recently used ones dropped first, each until its time is over."""

    def __init__(self, clock: Clock, size: int) -> None:
        self._clock = clock
        self._size = size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock.monotonic():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: K, value: V, seconds: float) -> None:
        """Keep `value` for `seconds`; not at all for zero or less."""
        if seconds <= 0:
            return
        self._entries[key] = (self._clock.monotonic() + seconds, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)


class SingleFlight(Generic[K, V]):
    """Lets one of several callers with the same question ask it; the others wait for that answer (or error)."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._flights: dict[K, asyncio.Task[V]] = {}
        self.waiting = 0
        """Callers that wait for somebody else's question."""

    @property
    def flying(self) -> int:
        """Questions being asked."""
        return len(self._flights)

    async def ask(self, key: K, question: Callable[[], Awaitable[V]]) -> V:
        flight = self._flights.get(key)
        if flight is not None:
            self.waiting += 1
            try:
                return await asyncio.shield(flight)
            finally:
                self.waiting -= 1
        flight = asyncio.create_task(self._fly(key, question), name=self._name)
        flight.add_done_callback(_look_at_error)
        self._flights[key] = flight
        # Shielded, so that a client that hangs up does not take the answer from those who wait for it too.
        return await asyncio.shield(flight)

    async def _fly(self, key: K, question: Callable[[], Awaitable[V]]) -> V:
        try:
            return await question()
        finally:
            del self._flights[key]

    async def close(self) -> None:
        """Give up what is being asked."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)


def _look_at_error(flight: asyncio.Task[V]) -> None:
    """Nobody may be left to hear of it."""
    if not flight.cancelled():
        flight.exception()


class Retrying:
    """Asks again, with growing pauses, while an error may pass; counts every request."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        sleep: Callable[[float], Awaitable[None]],
        requests: Family[Counter],
        seconds: Family[Histogram],
    ) -> None:
        self._clock = clock
        self._random = random
        self._sleep = sleep
        self._requests = requests
        self._seconds = seconds

    async def ask(self, question: Callable[[], Awaitable[V]]) -> V:
        """The answer; the last ReviewError after five attempts, or the first that will not pass."""
        pause = _FIRST_PAUSE
        for attempt in range(1, _STEPS + 1):
            begin = self._clock.monotonic()
            code = "201"
            try:
                return await question()
            except ReviewError as error:
                code = error.code
                if attempt == _STEPS or not error.retryable:
                    raise
            finally:
                self._requests.labels(code).inc()
                self._seconds.labels(code).observe(self._clock.monotonic() - begin)
            await self._sleep(pause * (1 + _JITTER * self._random.random()))
            pause *= _FACTOR
        raise AssertionError("unreachable")
