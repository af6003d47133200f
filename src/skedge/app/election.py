"""The lease of this process: elector, candidate, events, and whether changes may be sent. Upstream: `app/server.go`."""

from __future__ import annotations

import asyncio
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

from skedge.client import aio
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.events import ObjectRef
from skedge.client.hooks import LeaderHooks
from skedge.client.leaderelection import LeaderElector
from skedge.client.leasecandidate import LeaseCandidate
from skedge.client.leaselock import LeaseLock
from skedge.client.rest import RestClient
from skedge.clock import Clock
from skedge.config.fields import ConfigError
from skedge.config.types import LeaderElection
from skedge.names import KUBERNETES_VERSION

_CANDIDATES = "kube-system"
_REASON = "LeaderElection"
_FLUSH_SECONDS = 1.0


class Election:
    """Runs for the lease that a configuration names; `run` it.

    Args:
        client, event_client: for the lease; for the events about it. Neither may be fenced.
        component: the events' source.
        coordinated: a controller of the control plane hands out the lease (gate CoordinatedLeaderElection).
    """

    def __init__(
        self,
        config: LeaderElection,
        client: RestClient,
        event_client: RestClient,
        *,
        component: str,
        clock: Clock,
        coordinated: bool = False,
        rng: random.Random | None = None,
        hooks: LeaderHooks | None = None,
    ) -> None:
        """Raises ConfigError for times that cannot work."""
        self.lease = config.resource_name
        self.duration = config.lease_duration.seconds
        self._deadline = config.renew_deadline.seconds
        self._clock = clock
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._lock = LeaseLock(client, config.resource_namespace, config.resource_name, identity)
        self._events = CoreEventBroadcaster(event_client)
        self._recorder = self._events.recorder(component)
        self._lead: Callable[[], Awaitable[None]] | None = None
        self._working = False
        self._candidate = None
        if coordinated:
            self._candidate = LeaseCandidate(
                client,
                namespace=_CANDIDATES,
                name=identity,
                lease_name=config.resource_name,
                binary_version=KUBERNETES_VERSION,
                emulation_version=KUBERNETES_VERSION.rpartition(".")[0] + ".0",
            )
        self.candidate_synced = not coordinated
        try:
            self._elector = LeaderElector(
                self._lock,
                on_started_leading=self._leading,
                on_stopped_leading=lambda: None,
                on_event=self._happened,
                lease_duration=self.duration,
                renew_deadline=self._deadline,
                retry_period=config.retry_period.seconds,
                coordinated=coordinated,
                clock=clock,
                rng=rng,
                hooks=hooks,
            )
        except ValueError as error:
            raise ConfigError(f"couldn't create leader elector: {error}") from None

    @property
    def leading(self) -> bool:
        return self._elector.is_leader

    def renewed(self) -> float | None:
        """The clock's `monotonic()` of the last renewal while we lead, else None."""
        return self._elector.renewed_at

    def may_write(self) -> bool:
        """Whether we lead and the lease is certainly ours: renewed not longer ago than the renew deadline."""
        held = self._elector.held_for() if self._working else None
        return held is not None and held <= self._deadline

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run for the lease and `lead` while it is ours; returns when it is lost, releases it when cancelled.

        `lead` is cancelled the moment the lease is lost, and must stop all it began before it lets go of the loop.
        """
        self._lead = lead
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._events)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            standing: list[asyncio.Task[None]] = []
            if self._candidate is not None:
                standing.append(tasks.create_task(self._candidate.run(), name="lease candidate"))
                standing.append(tasks.create_task(self._candidate_syncs(self._candidate), name="candidate sync"))
            try:
                await self._elector.run()
            finally:
                for task in standing:
                    task.cancel()
                with suppress(TimeoutError):  # what was told is sent, even if we are cancelled
                    async with aio.deadline(self._clock, _FLUSH_SECONDS):
                        await self._events.flush()

    async def _candidate_syncs(self, candidate: LeaseCandidate) -> None:
        await candidate.wait_for_sync()
        self.candidate_synced = True

    async def _leading(self) -> None:
        assert self._lead is not None
        self._working = True
        try:
            await self._lead()
        finally:
            self._working = False

    def _happened(self, message: str) -> None:
        if message.endswith("stopped leading"):
            return  # the reference ends before it has sent this one
        self._recorder.event(ObjectRef(**self._lock.reference()), None, "Normal", _REASON, "", message)
