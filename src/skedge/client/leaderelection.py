"""Leader election over a Lease: one of several processes leads; it renews, and stops when it cannot.

    follower ──lease free or expired──▶ leader ──not renewed in time, or cancelled──▶ stopped

Clocks of different machines are never compared: a lease expires when its record has not changed for its own duration
since *we* saw it change. Upstream: `client-go/tools/leaderelection/leaderelection.go`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from skedge.client import aio
from skedge.client.errors import ClientError, NotFound, one_line
from skedge.client.hooks import LeaderHooks
from skedge.client.leaselock import LeaseLock, Record
from skedge.client.timefmt import micro_time
from skedge.clock import Clock, RealClock
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

JITTER_FACTOR = 1.2


class LeaderElector:
    """Runs for the lock and keeps it; `run` it as a task.

    - `on_started_leading()` is a coroutine function, run beside the renewals and cancelled when leading ends, before
      the lease is released; if it raises, leading ends and the error comes out of `run`.
    - `on_stopped_leading()` is called when `run` ends, whether we ever led or not.
    - `on_new_leader(identity)` is called when the holder changes, ourselves included.
    - `on_event(message)` is told `<identity> became leader` and `<identity> stopped leading`, for a Kubernetes Event.
    """

    def __init__(
        self,
        lock: LeaseLock,
        *,
        on_started_leading: Callable[[], Coroutine[Any, Any, None]],
        on_stopped_leading: Callable[[], None],
        on_new_leader: Callable[[str], None] | None = None,
        on_event: Callable[[str], None] | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_cancel: bool = True,
        coordinated: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        hooks: LeaderHooks | None = None,
    ) -> None:
        """Times are in seconds. Raises ValueError, in the reference's words, for times that cannot work.

        With `coordinated` a controller of the control plane hands out the lease (see `leasecandidate`): it is neither
        created nor taken here, only renewed while it names us and no preferred holder.
        """
        if lease_duration <= renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if renew_deadline <= JITTER_FACTOR * retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        for name, value in (
            ("leaseDuration", lease_duration),
            ("renewDeadline", renew_deadline),
            ("retryPeriod", retry_period),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        self._lock = lock
        self._on_started, self._on_stopped = on_started_leading, on_stopped_leading
        self._on_new_leader, self._on_event = on_new_leader, on_event
        self._lease_duration, self._renew_deadline, self._retry_period = lease_duration, renew_deadline, retry_period
        self._release_on_cancel, self._coordinated = release_on_cancel, coordinated
        self._clock: Clock = clock or RealClock()
        self._rng = rng or random.Random()
        self._hooks = hooks
        self._observed = Record()
        self._observed_raw: Record | None = None
        self._observed_at = float("-inf")
        self._begun = (0.0, 0.0)
        self._reported = ""

    @property
    def is_leader(self) -> bool:
        """Whether the last record seen names us; it may have expired since."""
        return self._observed.holder == self._lock.identity

    @property
    def leader(self) -> str:
        """The holder last seen, "" if none."""
        return self._observed.holder

    @property
    def renewed_at(self) -> float | None:
        """The clock's `monotonic()` when we last got or renewed the lease; None while it is not ours."""
        return self._observed_at if self.is_leader else None

    def held_for(self) -> float | None:
        """Seconds since we began the request that last got us the lease; None while it is not ours.

        Others count from when they see what it wrote, never earlier: what is shorter than their wait is safe. The
        answer's time is not, as we may have been stopped before we read it. Of both clocks the one that says more
        counts: one of them stands still while the machine sleeps.
        """
        if not self.is_leader:
            return None
        monotonic, now = self._begun
        return max(self._clock.monotonic() - monotonic, self._clock.now() - now)

    def lease_expired_for(self, tolerance: float) -> bool:
        """Whether we hold a lease that was not renewed for its duration plus `tolerance` seconds (`Check`)."""
        age = self._clock.monotonic() - self._observed_at
        return self.is_leader and age > self._lease_duration + tolerance

    async def run(self) -> None:
        """Acquire, lead, renew. Returns when the lease is lost; releases it when cancelled."""
        try:
            await self._acquire()
        except BaseException:
            self._on_stopped()
            raise
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(self._on_started(), name=f"leading {self._lock}")
            try:
                await self._renew()
            finally:
                leading.cancel()
                try:
                    await asyncio.sleep(0)  # it hears of it before anybody else may lead
                    await self._stop()
                finally:
                    self._on_stopped()

    async def _acquire(self) -> None:
        log.info("Attempting to acquire leader lease...", lock=str(self._lock))
        while True:
            succeeded = await self._try_acquire_or_renew()
            self._report()
            if succeeded:
                break
            if log.v(4):
                log.info("Failed to acquire lease", lock=str(self._lock))
            await aio.sleep(self._clock, aio.jitter(self._retry_period, JITTER_FACTOR, self._rng))
        log.info("Successfully acquired lease", lock=str(self._lock))
        self._event("became leader")
        if self._hooks is not None:
            self._hooks.leading(True)

    async def _renew(self) -> None:
        """Renew until that fails for as long as the renew deadline."""
        while True:
            try:
                async with aio.deadline(self._clock, self._renew_deadline):
                    while not await self._try_acquire_or_renew():
                        await aio.sleep(self._clock, self._retry_period)
            except TimeoutError:
                self._report()
                log.info("Failed to renew lease", lock=str(self._lock))
                return
            self._report()
            await aio.sleep(self._clock, self._retry_period)

    async def _stop(self) -> None:
        if self._hooks is not None:
            self._hooks.leading(False)
        try:
            if self._release_on_cancel:
                async with aio.deadline(self._clock, self._renew_deadline):
                    await self._release()
        except (ClientError, TimeoutError) as error:
            log.error(one_line(error), "Failed to release lease", lock=str(self._lock))
        self._event("stopped leading")

    async def _release(self) -> None:
        if not self.is_leader:
            return
        found = await self._lock.get()
        if found.holder != self._lock.identity:
            self._observe(found)
            return
        now = micro_time(self._clock.now())
        released = Record("", 1, now, now, self._observed.transitions)
        await self._lock.update(released)
        self._observe(released)

    async def _try_acquire_or_renew(self) -> bool:
        """One attempt; True if we hold the lease now."""
        begun = self._clock.monotonic(), self._clock.now()
        held = await (self._try_coordinated_renew() if self._coordinated else self._try_lease())
        if held:
            self._begun = begun
        return held

    async def _try_lease(self) -> bool:
        now = micro_time(self._clock.now())
        duration = int(self._lease_duration)
        me = self._lock.identity
        if self.is_leader and self._valid():
            # Nobody else may have written: no need to read first.
            record = Record(me, duration, self._observed.acquire_time, now, self._observed.transitions)
            try:
                await self._lock.update(record)
            except ClientError as error:
                why = one_line(error)
                log.error(why, "Failed to update lease optimistically, falling back to slow path", lock=str(self._lock))
            else:
                self._observe(record)
                return True
        try:
            found = await self._lock.get()
        except NotFound:
            record = Record(me, duration, now, now, 0)
            try:
                await self._lock.create(record)
            except ClientError as error:
                log.error(one_line(error), "Error initially creating lease lock", lock=str(self._lock))
                return False
            self._observe(record)
            return True
        except ClientError as error:
            log.error(one_line(error), "Error retrieving lease lock", lock=str(self._lock))
            return False
        self._look_at(found)
        if found.holder and not self.is_leader and self._valid():
            if log.v(4):
                log.info("Lease is held and has not yet expired", lock=str(self._lock), holder=found.holder)
            return False
        if self.is_leader:
            record = Record(me, duration, found.acquire_time, now, found.transitions)
            if self._hooks is not None:
                self._hooks.slow_path()
        else:
            record = Record(me, duration, now, now, found.transitions + 1)
        try:
            await self._lock.update(record)
        except ClientError as error:
            log.error(one_line(error), "Failed to update lease", lock=str(self._lock))
            return False
        self._observe(record)
        return True

    async def _try_coordinated_renew(self) -> bool:
        """One attempt to renew a lease that was given to us; True if we hold it now."""
        lock = str(self._lock)
        try:
            found = await self._lock.get()
        except NotFound:
            log.info("Lease lock not found", lock=lock)
            return False
        except ClientError as error:
            log.error(one_line(error), "Error retrieving lease lock", lock=lock)
            return False
        self._look_at(found)
        if not self._valid():
            log.info("Lock has expired", lock=lock)
            return False
        if not self.is_leader:
            return False
        if found.preferred_holder:
            if log.v(4):
                log.info('Lock is marked as "end of term"', lock=lock)
            return False
        now = micro_time(self._clock.now())
        record = replace(found, duration_seconds=int(self._lease_duration), renew_time=now)
        try:
            await self._lock.update(record)
        except ClientError as error:
            log.error(one_line(error), "Failed to update lock", lock=lock)
            return False
        self._observe(record)
        return True

    def _look_at(self, found: Record) -> None:
        """Note a record that was read; its time counts from now if it is another one than before."""
        if found != self._observed_raw:
            self._observe(found)
            self._observed_raw = found

    def _valid(self) -> bool:
        return self._observed_at + self._observed.duration_seconds > self._clock.monotonic()

    def _observe(self, record: Record) -> None:
        self._observed, self._observed_at = record, self._clock.monotonic()

    def _report(self) -> None:
        if self._observed.holder != self._reported:
            self._reported = self._observed.holder
            if self._on_new_leader is not None:
                self._on_new_leader(self._reported)

    def _event(self, what: str) -> None:
        if self._on_event is not None:
            self._on_event(f"{self._lock.identity} {what}")
