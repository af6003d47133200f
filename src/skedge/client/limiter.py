"""Token bucket: so many events a second, so many at once. Upstream: `client-go/util/flowcontrol`, `x/time/rate`."""

from __future__ import annotations

from skedge.client import aio
from skedge.clock import Clock, RealClock

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


class TokenBucket:
    """Refills at `qps` tokens a second up to `burst`. Waiters are served in the order they came."""

    def __init__(self, qps: float, burst: int, clock: Clock | None = None) -> None:
        self._qps, self._burst = qps, float(burst)
        self._clock: Clock = clock or RealClock()
        self._tokens = self._burst
        self._last = self._clock.monotonic()

    def reserve(self) -> float:
        """Take a token, on credit if there is none; the seconds to wait before using it."""
        self._refill()
        self._tokens -= 1.0
        return -self._tokens / self._qps if self._tokens < 0 else 0.0

    def try_take(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def wait(self) -> float:
        """Wait for a token; returns the seconds waited. A cancelled waiter gives its token back."""
        delay = self.reserve()
        if delay > 0:
            try:
                await aio.sleep(self._clock, delay)
            except BaseException:
                self._tokens += 1.0
                raise
        return delay

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._qps)
        self._last = now


def rate_limiter(qps: float, burst: int, clock: Clock | None = None) -> TokenBucket | None:
    """The limiter a client configuration asks for; None when `qps` is negative (no limit). 0 means the default, 5.

    Raises ValueError for a positive qps without burst.
    """
    if qps < 0:
        return None
    if qps == 0:
        return TokenBucket(DEFAULT_QPS, burst if burst > 0 else DEFAULT_BURST, clock)
    if burst <= 0:
        raise ValueError(
            "burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"
        )
    return TokenBucket(qps, burst, clock)
