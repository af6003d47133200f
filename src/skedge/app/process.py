"""A running scheduler: clients, informers, election, loop; and the way back down. Upstream: `cmd/kube-scheduler/app`.

Start order: connect, build, watch, sync, acquire the lease, schedule. Nothing is scheduled before everything known at
the start was seen, nor without the lease.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from skedge import names
from skedge.app.ports import RestBinder, RestEvents, RestEvictor, RestPatcher
from skedge.app.watches import Watches
from skedge.assembly import build
from skedge.client.clientconfig import ClientConfig
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import CertificateError, ClientError, Unauthorized
from skedge.client.events import EventBroadcaster, serves_events_v1
from skedge.client.informer import InformerFactory
from skedge.client.leaderelection import LeaderElector
from skedge.client.leaselock import LeaseLock
from skedge.client.rest import RestClient
from skedge.clock import Clock, RealClock
from skedge.config.gates import FeatureGates
from skedge.config.types import KubeSchedulerConfiguration
from skedge.framework.handle import Listers
from skedge.framework.ports import Ports
from skedge.plugins.registry import Factory
from skedge.scheduler.scheduler import Scheduler
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)


class SchedulerProcess:
    """One scheduler process; `run` it until `stop` is called. Attributes are there for whoever serves its state."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        client_config: ClientConfig,
        *,
        gates: FeatureGates | None = None,
        out_of_tree: Mapping[str, Factory] | None = None,
        hooks: SchedulerHooks | None = None,
        client_hooks: Any = None,
        clock: Clock | None = None,
        version: str = f"v{names.KUBERNETES_VERSION}",
        max_in_unschedulable: float = 300.0,
        connections: int = 48,
        synced: Callable[[], None] = lambda: None,
    ) -> None:
        """`synced` is called when scheduling is about to begin. Needs no running loop; connects to nothing yet."""
        self.config = config
        self.gates = gates or FeatureGates()
        self._client_config = client_config
        self._out_of_tree = out_of_tree
        self._hooks = hooks or SchedulerHooks()
        self._client_hooks = client_hooks
        self._clock = clock or RealClock()
        self._agent = f"{names.COMPONENT_NAME}/{version} (linux/amd64) kubernetes/skedge"
        self._max_in_unschedulable = max_in_unschedulable
        self._connections = connections
        self._synced = synced
        self._stop = asyncio.Event()
        self.scheduler: Scheduler | None = None
        self.watches: Watches | None = None
        self.elector: LeaderElector | None = None

    def stop(self) -> None:
        """Asks for an orderly end."""
        self._stop.set()

    async def run(self) -> int:
        """Works until stopped or the lease is lost; the exit status. Raises ClientError or ConfigError at the start."""
        async with self._client("scheduler") as client, self._client("") as event_client:
            await self._check_access(event_client)
            broadcaster: EventBroadcaster | CoreEventBroadcaster
            if await serves_events_v1(event_client):
                broadcaster = EventBroadcaster(event_client, workers=self._connections // 2)
            else:
                broadcaster = CoreEventBroadcaster(event_client)
            async with broadcaster, InformerFactory(client) as factory:
                return await self._run_with(client, factory, RestEvents(broadcaster))

    def _client(self, suffix: str, timeout: float | None = None) -> RestClient:
        connection = self.config.client_connection
        return RestClient.connect(
            self._client_config,
            user_agent=f"{self._agent}/{suffix}" if suffix else self._agent,
            connections=self._connections,
            qps=connection.qps,
            burst=connection.burst,
            timeout=timeout,
            clock=self._clock,
            hooks=self._client_hooks,
        )

    async def _check_access(self, client: RestClient) -> None:
        """Credentials or certificates that are wrong now stay wrong: that ends the start. A server that is down may
        come up, and is waited for."""
        try:
            await client.request("GET", "/version")
        except (CertificateError, Unauthorized):
            raise
        except ClientError as error:
            log.error(error, "The API server does not answer, trying again until it does")

    async def _run_with(self, client: RestClient, factory: InformerFactory, events: RestEvents) -> int:
        watches = self.watches = Watches(factory)
        listers = Listers()
        scheduler = self.scheduler = build(
            self.config,
            ports=Ports(RestBinder(client), RestPatcher(client), RestEvictor(client), events),
            clock=self._clock,
            pod_lister=watches.pods.store.get,
            gates=self.gates,
            out_of_tree=self._out_of_tree,
            listers=listers,
            hooks=self._hooks,
            connections=self._connections,
            max_in_unschedulable=self._max_in_unschedulable,
        )
        watches.connect(scheduler, listers, self.gates.enabled)
        scheduler.dispatcher.start()
        try:
            if not self.config.leader_election.leader_elect:
                log.warning("Leader election is off: see to it that no other scheduler serves the same pods")
                return await self._until_stopped(self._schedule(scheduler, factory))
            return await self._until_stopped(self._lead(scheduler, factory))
        finally:
            await scheduler.dispatcher.close()

    async def _schedule(self, scheduler: Scheduler, factory: InformerFactory) -> int:
        factory.start()
        await factory.wait_for_sync()
        self._synced()
        await scheduler.run()
        return 1

    async def _lead(self, scheduler: Scheduler, factory: InformerFactory) -> int:
        """Holds caches ready, and schedules while it holds the lease."""
        election = self.config.leader_election
        renew_deadline = election.renew_deadline.seconds
        if not self.config.delay_cache_until_active:
            factory.start()
            await factory.wait_for_sync()

        async def leading() -> None:
            factory.start()
            await factory.wait_for_sync()
            self._synced()
            await scheduler.run()

        async with self._client("leader-election", max(1.0, renew_deadline / 2)) as client:
            identity = f"{socket.gethostname()}_{uuid.uuid4()}"
            self.elector = LeaderElector(
                LeaseLock(client, election.resource_namespace, election.resource_name, identity),
                on_started_leading=leading,
                on_stopped_leading=scheduler.stop,
                lease_duration=election.lease_duration.seconds,
                renew_deadline=renew_deadline,
                retry_period=election.retry_period.seconds,
                clock=self._clock,
            )
            await self.elector.run()
        log.error(None, "Leaderelection lost")
        return 1

    async def _until_stopped(self, work: Awaitable[int]) -> int:
        """Waits for the work or for `stop`; stopping in order is success with an election, as in the reference."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            log.info("Requested to terminate, exiting")
            if self.config.leader_election.leader_elect:
                return 0
            log.error("finished without leader elect", "command failed")
            return 1
        finally:
            for each in (task, stopped):
                each.cancel()
            await asyncio.gather(task, stopped, return_exceptions=True)
