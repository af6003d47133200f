"""A running scheduler: clients, listeners, informers, election, loop; and the way back down.

Start order: build (which finds what is wrong with the configuration), serve, connect, watch, sync, acquire the lease,
schedule. Nothing is scheduled before everything known at the start was seen, nor without the lease; no change is sent
once the lease may be lost. On the way down: no pod is popped, bindings under way finish, events are sent, the lease is
released. Upstream: `cmd/kube-scheduler/app/server.go`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final, NamedTuple

from skedge import names
from skedge.app.bodies import Bodies
from skedge.app.clients import Clients
from skedge.app.debugger import Debugger
from skedge.app.election import Election
from skedge.app.metrics import CountedClient, CountedElection, pod_usage, read_scheduler
from skedge.app.objects import RestObjects
from skedge.app.ports import RestBinder, RestEvents, RestEvictor, RestPatcher
from skedge.app.serving import Serving, ServingSettings
from skedge.app.watches import TakenListers, Watches
from skedge.assembly import build
from skedge.client import aio
from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import (
    Forbidden,
    Unauthorized,
)
from skedge.client.extender_client import HttpExtender, connect
from skedge.client.hooks import ClientHooks
from skedge.client.informer import Inbox, InformerFactory
from skedge.client.rest import RestClient
from skedge.client.transport import Transport
from skedge.clock import Clock, RealClock
from skedge.config.encode import to_data
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.types import Extender, KubeSchedulerConfiguration
from skedge.framework.ports import Ports
from skedge.plugins.registry import Factory
from skedge.scheduler.auditor import Auditor
from skedge.scheduler.scheduler import Scheduler
from skedge.serving.endpoints import Sources
from skedge.serving.health import Check, handler_sync_check, informer_sync_check, leader_election_check, shutdown_check
from skedge.telemetry.hooks import SchedulerHooks, SchedulerMetrics
from skedge.telemetry.logs import get_logger
from skedge.telemetry.metrics import Metrics

log = get_logger(__name__)

DRAIN_SECONDS: Final = 5.0
"""How long bindings under way may take once an end was asked for."""
_FLUSH_SECONDS: Final = 1.0
_LAG_SECONDS: Final = 0.25
_LOOK_SECONDS: Final = 0.1
_CACHE_BYTES: Final = 128 << 20


class _Built(NamedTuple):
    """What a process is made of, connected to each other."""

    scheduler: Scheduler
    watches: Watches
    factory: InformerFactory
    events: RestEvents
    event_client: RestClient


def _connected(
    extenders: Sequence[Extender], bodies: Bodies, may_bind: Callable[[], Awaitable[None]]
) -> list[HttpExtender]:
    try:
        return connect(extenders, bodies, may_bind)
    except ValueError as error:
        raise ConfigError(f"couldn't build extenders: {error}") from error


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
        client_hooks: ClientHooks | None = None,
        metrics: Metrics | None = None,
        serving: ServingSettings | None = None,
        flags: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        version: str = f"v{names.KUBERNETES_VERSION}",
        emulation_version: str = names.KUBERNETES_VERSION.rpartition(".")[0],
        max_in_unschedulable: float = 300.0,
        connections: int = 48,
        synced: Callable[[], None] = lambda: None,
        transport: Callable[[], Transport] | None = None,
        audit: bool = True,
    ) -> None:
        """`synced` is called when scheduling is about to begin. Needs no running loop; connects to nothing yet.

        `transport` makes what a client sends its requests by, if not HTTP to the server of `client_config`. `audit`:
        whether contradictions between queue, cache and informers are looked for and repaired.

        `metrics` are counted unless `hooks` are given; `serving` shows them and `flags`, None serves nothing.
        """
        self.config = config
        self.gates = gates or FeatureGates()
        self.clock = clock or RealClock()
        self.rng = rng or random.Random()
        self.metrics = metrics or Metrics(names.KUBERNETES_VERSION)
        self._out_of_tree = out_of_tree
        self._counted = SchedulerMetrics(self.metrics) if hooks is None else None
        self.hooks: SchedulerHooks = hooks or self._counted or SchedulerHooks()
        self._client_hooks = client_hooks or CountedClient(self.metrics)
        self._clients = Clients(
            client_config,
            config.client_connection,
            f"{names.COMPONENT_NAME}/{version} (linux/amd64) kubernetes/skedge",
            connections,
            self.clock,
            self.rng,
            self._client_hooks,
            self._may_write if config.leader_election.leader_elect else None,
            transport,
        )
        self._serving_settings = serving
        self._flags = flags or {}
        self._version, self._emulation_version = version, emulation_version
        self._max_in_unschedulable = max_in_unschedulable
        self._connections = connections
        self._synced = synced
        self._audit = audit
        self._stop = asyncio.Event()
        self.scheduler: Scheduler | None = None
        self.watches: Watches | None = None
        self.election: Election | None = None
        self.serving: Serving | None = None

    # --- from outside -------------------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Asks for an orderly end."""
        self._stop.set()

    def dump(self) -> None:
        """Writes into the log what cache and queue hold, and where they and the informers disagree."""
        if self.scheduler is not None and self.watches is not None:
            Debugger(self.scheduler, self.watches.nodes.store, self.watches.pods.store).run()

    async def check(self) -> None:
        """Builds everything and lets it go: raises what `run` would raise of the configuration."""
        async with self._built():
            pass

    async def run(self) -> int:
        """Works until stopped or the lease is lost; the exit status. Raises what makes a start impossible."""
        async with self._built() as built, asyncio.TaskGroup() as group:
            background = [group.create_task(self._measure_lag(), name="loop lag")]
            serving = self._serve(built)
            if serving is not None:
                background.append(group.create_task(serving.run(), name="serving"))
            return await self._until_stopped(built, background)

    def _may_write(self) -> bool:
        return self.election is not None and self.election.may_write()

    # --- building -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _built(self) -> AsyncIterator[_Built]:
        """Clients, scheduler and election, connected with each other and to nothing else."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._clients.make("scheduler", fenced=True))
            event_client = await stack.enter_async_context(self._clients.make("scheduler", fenced=True))
            events = RestEvents()
            inbox, bodies = Inbox(), Bodies(self.config.extenders)
            extenders = _connected(self.config.extenders, bodies, self._clients.may_change)
            for extender in extenders:
                stack.push_async_callback(extender.close)
            factory = InformerFactory(client, submit=inbox.submit, watch_list=self.gates.enabled("WatchListClient"))
            watches = self.watches = Watches(factory, bodies)
            listers, patcher = TakenListers(), RestPatcher(client)
            scheduler = self.scheduler = build(
                self.config,
                ports=Ports(
                    RestBinder(client),
                    patcher,
                    RestEvictor(client),
                    events,
                    RestObjects(client, watches.written, self.clock),
                    patcher,
                ),
                clock=self.clock,
                pod_lister=watches.pods.store.get,
                gates=self.gates,
                registry=self._out_of_tree,
                listers=listers,
                rng=self.rng,
                hooks=self.hooks,
                connections=self._connections,
                max_in_unschedulable=self._max_in_unschedulable,
                extenders=extenders,
                inbox=inbox,
            )
            # Plugins of others, and those of old, may ask for stores when they run.
            everything = bool(self._out_of_tree or self.config.legacy_plugins)
            watches.connect(scheduler, listers, self.gates.enabled, everything=everything)
            if self._counted is not None:
                read_scheduler(self.metrics, self._counted, scheduler, _CACHE_BYTES * len(scheduler.profiles))
            await self._build_election(stack)
            async with factory:
                yield _Built(scheduler, watches, factory, events, event_client)

    async def _build_election(self, stack: AsyncExitStack) -> None:
        election = self.config.leader_election
        if not election.leader_elect:
            return
        timeout = max(1.0, election.renew_deadline.seconds / 2)
        self.election = Election(
            election,
            await stack.enter_async_context(self._clients.make("leader-election", timeout=timeout)),
            await stack.enter_async_context(self._clients.make("scheduler")),
            component=self.config.profiles[0].scheduler_name,
            clock=self.clock,
            coordinated=self.gates.enabled("CoordinatedLeaderElection"),
            rng=self.rng,
            hooks=CountedElection(self.metrics, election.resource_name),
        )

    def _serve(self, built: _Built) -> Serving | None:
        """The listeners, if there are to be any."""
        settings, watches, election = self._serving_settings, built.watches, self.election
        if settings is None or (settings.listen is None and settings.insecure is None):
            return None
        ready = [shutdown_check(lambda: self.stopping), handler_sync_check(lambda: watches.handlers_synced)]
        elected: Check | None = None
        if election is not None:
            elected = leader_election_check(self.clock, election.lease, election.duration, election.renewed)
            if self.gates.enabled("CoordinatedLeaderElection"):
                ready.append(
                    informer_sync_check(lambda: [] if election.candidate_synced else ["*v1beta1.LeaseCandidate"])
                )
        sources = Sources(
            self.metrics,
            self.clock,
            self.rng,
            config=lambda: to_data(self.config),
            flags=self._flags,
            ready=ready,
            leader_election=elected,
            leading=lambda: election is None or election.leading,
            pods=lambda: pod_usage(watches.pods.store.list()),
            profiling=self.config.enable_profiling,
            flagz=self.gates.enabled("ComponentFlagz"),
            statusz=self.gates.enabled("ComponentStatusz"),
            version=self._version.removeprefix("v"),
            emulation_version=self._emulation_version,
        )
        self.serving = Serving(
            settings,
            sources,
            user_agent=self._clients.agent,
            clock=self.clock,
            rng=self.rng,
            client_hooks=self._client_hooks,
        )
        return self.serving

    # --- working ------------------------------------------------------------------------------------------------------

    async def _work(self, built: _Built) -> int:
        """From the first word to the server to the end of leading; the exit status."""
        broadcaster = await self._clients.event_broadcaster(built.event_client)
        async with broadcaster:
            built.events.use(broadcaster)
            dispatcher = built.scheduler.dispatcher
            dispatcher.start()
            try:
                return await self._lead_or_schedule(built)
            finally:
                await dispatcher.close()

    async def _lead_or_schedule(self, built: _Built) -> int:
        election, scheduler = self.election, built.scheduler
        if self.serving is not None:
            await self.serving.started.wait()  # a process that cannot serve must not lead
        if election is None or not self.config.delay_cache_until_active:
            await self._sync(built)
        if election is None:
            log.warning("Leader election is off: see to it that no other scheduler serves the same pods")
            self._synced()
            await self._schedule(built)
            return 1

        async def lead() -> None:
            try:
                if self.config.delay_cache_until_active:
                    await self._sync(built)
                self._synced()
                await self._schedule(built)
            finally:
                scheduler.stop()
                await scheduler.dispatcher.close()

        await election.run(lead)
        log.error(None, "Leaderelection lost")
        return 1

    async def _schedule(self, built: _Built) -> None:
        """Places pods until cancelled, and sees to it that none is lost."""
        watches = built.watches
        auditor = Auditor(built.scheduler, watches.pods.store, watches.nodes.store)
        audit = asyncio.create_task(auditor.run(), name="auditor") if self._audit else None
        try:
            await built.scheduler.run()
            await asyncio.get_running_loop().create_future()  # what is being bound goes on until we are cancelled
        finally:
            if audit is not None:
                audit.cancel()
                await asyncio.gather(audit, return_exceptions=True)

    async def _sync(self, built: _Built) -> None:
        """Starts what does not run yet and waits for it. Raises Forbidden where pods or nodes may not be read."""
        watches, factory = built.watches, built.factory
        factory.start()
        while not watches.handlers_synced:
            for informer in (watches.pods, watches.nodes):
                error = informer.reflector.error
                if isinstance(error, Forbidden | Unauthorized):
                    raise error
            with suppress(TimeoutError):
                async with aio.deadline(self.clock, _LOOK_SECONDS):
                    await factory.wait_for_sync()
        if log.v(3):
            log.info("Handlers synced")

    async def _until_stopped(self, built: _Built, background: list[asyncio.Task[None]]) -> int:
        """Works until that ends or `stop` is called; stopping in order is success with an election, as upstream."""
        work = asyncio.create_task(self._work(built), name="work")
        stopped = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            for task in background:
                task.cancel()
            await self._drain(built)
        finally:
            for each in (work, stopped, *background):
                each.cancel()
            await asyncio.gather(work, stopped, *background, return_exceptions=True)
        log.info("Requested to terminate, exiting")
        if self.election is not None:
            return 0
        log.error("finished without leader elect", "command failed")
        return 1

    async def _drain(self, built: _Built) -> None:
        """No pod is popped any more; what is being bound is bound, and told."""
        if not built.watches.handlers_synced:
            log.error(None, "handlers are not fully synchronized")
        built.scheduler.stop()
        for rest, seconds in ((built.scheduler.dispatcher.drain, DRAIN_SECONDS), (built.events.flush, _FLUSH_SECONDS)):
            with suppress(TimeoutError):
                async with aio.deadline(self.clock, seconds):
                    await rest()

    async def _measure_lag(self) -> None:
        """How late timers fire: the time that sockets had to wait."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self.hooks.loop_lag(max(0.0, loop.time() - due))
