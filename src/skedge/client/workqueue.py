"""A queue of keys for controllers: each key waits once, is worked on by one worker at a time, and backs off on failure.

    add ──▶ waiting ──get──▶ processing ──done──▶ gone
             ▲                   │ add meanwhile: noted, waits again at done
             └── add_after / add_rate_limited, when their delay is over

Upstream: `client-go/util/workqueue`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from skedge.client import aio
from skedge.client.errors import one_line
from skedge.client.hooks import QueueHooks
from skedge.client.limiter import TokenBucket
from skedge.clock import Clock, RealClock
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

K = TypeVar("K", bound=Hashable)


class QueueShutDown(Exception):
    """The queue was shut down and is empty."""


class RateLimit(Generic[K]):
    """How long a failed item waits: exponential per item, and not faster over all items than a bucket allows.

    The defaults are the library's: 5 ms doubling up to 1000 s, 10 a second with bursts of 100.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        base: float = 0.005,
        maximum: float = 1000.0,
        qps: float = 10.0,
        burst: int = 100,
    ) -> None:
        self._base, self._maximum = base, maximum
        self._failures: dict[K, int] = {}
        self._bucket = TokenBucket(qps, burst, clock)

    def when(self, item: K) -> float:
        """The seconds `item` has to wait, counting one more failure."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        exponential = self._maximum if failures > 60 else min(self._base * 2.0**failures, self._maximum)
        return max(exponential, self._bucket.reserve())

    def forget(self, item: K) -> None:
        self._failures.pop(item, None)

    def failures(self, item: K) -> int:
        return self._failures.get(item, 0)


class WorkQueue(Generic[K]):
    """See the module. All methods but `get`, `run` and `wait_until_idle` are immediate."""

    def __init__(
        self, *, clock: Clock | None = None, rate_limit: RateLimit[K] | None = None, hooks: QueueHooks | None = None
    ) -> None:
        self._clock: Clock = clock or RealClock()
        self._limit: RateLimit[K] = rate_limit or RateLimit(self._clock)
        self._hooks = hooks
        self._waiting: deque[K] = deque()
        self._dirty: dict[K, float] = {}  # to be worked on, with the time it was added
        self._processing: dict[K, float] = {}  # handed out, with the time it was
        self._delayed: dict[K, tuple[float, aio.Handle]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._closed = False

    def __len__(self) -> int:
        """Items that wait for a worker."""
        return len(self._waiting)

    def add(self, item: K) -> None:
        """Have `item` worked on; nothing happens if it waits already, or if the queue is shut down."""
        if self._closed or item in self._dirty:
            return
        self._dirty[item] = self._clock.monotonic()
        if item not in self._processing:
            self._enqueue(item)
        if self._hooks is not None:
            self._hooks.added(len(self._waiting))

    def add_after(self, item: K, seconds: float) -> None:
        """Add `item` later; of several delays of one item the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(item)
            return
        when = self._clock.monotonic() + seconds
        if item in self._delayed:
            if self._delayed[item][0] <= when:
                return
            self._delayed.pop(item)[1].cancel()

        def due() -> None:
            self._delayed.pop(item, None)
            self.add(item)

        self._delayed[item] = (when, aio.call_later(self._clock, seconds, due))

    def add_rate_limited(self, item: K) -> None:
        """Add `item` after the delay its failures call for."""
        if self._hooks is not None:
            self._hooks.retried()
        self.add_after(item, self._limit.when(item))

    def forget(self, item: K) -> None:
        """`item` succeeded, or is given up: its failures no longer count."""
        self._limit.forget(item)

    def failures(self, item: K) -> int:
        """How often `item` was added rate-limited since it was forgotten."""
        return self._limit.failures(item)

    async def get(self) -> K:
        """The next item; call `done` when finished with it. Raises QueueShutDown when there will be none."""
        while not self._waiting:
            if self._closed:
                raise QueueShutDown
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif self._waiting:
                    self._wake()  # the wake-up meant for us goes to the next
                raise
        item = self._waiting.popleft()
        now = self._clock.monotonic()
        if self._hooks is not None:
            self._hooks.got(len(self._waiting), now - self._dirty[item])
        del self._dirty[item]
        self._processing[item] = now
        return item

    def done(self, item: K) -> None:
        """A worker has finished `item`; if it was added meanwhile, it waits again."""
        started = self._processing.pop(item, None)
        if started is not None and self._hooks is not None:
            self._hooks.done(self._clock.monotonic() - started)
        if item in self._dirty:
            self._enqueue(item)
        elif not self._processing and not self._waiting:
            for waiter in self._idle:
                if not waiter.done():
                    waiter.set_result(None)
            self._idle.clear()

    def shut_down(self) -> None:
        """Take nothing more; what waits is still handed out, what is delayed is dropped."""
        self._closed = True
        for _, handle in self._delayed.values():
            handle.cancel()
        self._delayed.clear()
        while self._getters:
            self._wake()

    async def wait_until_idle(self) -> None:
        """Wait until nothing waits and nothing is worked on; delayed items don't count."""
        while self._waiting or self._processing:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            await waiter

    async def run(self, work: Callable[[K], Awaitable[None]], *, workers: int = 1) -> None:
        """Work the queue until it is shut down or this is cancelled.

        An item whose `work` raises is logged and added rate-limited; one that succeeds is forgotten.
        """
        async with asyncio.TaskGroup() as group:
            for i in range(workers):
                group.create_task(self._work(work), name=f"worker {i}")

    async def _work(self, work: Callable[[K], Awaitable[None]]) -> None:
        while True:
            try:
                item = await self.get()
            except QueueShutDown:
                return
            try:
                await work(item)
            except Exception as error:
                log.warning("Work failed, trying again later", item=item, err=one_line(error))
                self.add_rate_limited(item)
            else:
                self.forget(item)
            finally:
                self.done(item)

    def _enqueue(self, item: K) -> None:
        self._waiting.append(item)
        self._wake()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
