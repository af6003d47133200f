"""Mode `decisions`: freshly decoded pods through handlers, real queue, cycle, assume; the binder answers at once and
feeds the confirming watch event back, decoded anew. Default profile, metrics on, all nodes scored.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bench import figures
from bench.defaults import as_stored
from bench.objects import Change, Template
from bench.operations import Background, Batch, Run
from bench.workloads import Workload
from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.app.collector import calm
from skedge.app.watches import WATCHED, as_kept
from skedge.assembly import build
from skedge.clock import RealClock
from skedge.config.defaults import default_configuration
from skedge.config.types import KubeSchedulerConfiguration, Plugin
from skedge.framework.handle import Listers
from skedge.framework.ports import Ports
from skedge.scheduler.auditor import Auditor
from skedge.scheduler.event_handlers import Watcher
from skedge.scheduler.scheduler import Scheduler
from skedge.snapshot.pods import PlacedPod, PodInfo

LIMIT: Final = 60.0
"""Seconds without a pod placed after which waiting ends whatever happens."""
STILL: Final = 0.2
"""Seconds without a cycle, an open binding or a pod in backoff after which nothing is expected to happen any more."""
STILL_IN_CHURN: Final = 5.0

_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_node = msgspec.json.Decoder(Node).decode


def configuration(without: tuple[str, ...] = ()) -> KubeSchedulerConfiguration:
    """The default configuration, lacking some plugins."""
    config = default_configuration()
    for profile in config.profiles:
        for name in without:
            profile.plugins.multi_point.disabled.append(Plugin(name))
    return config


class World:
    """The API server of this mode: objects by key, and the ports."""

    def __init__(self, without: tuple[str, ...] = ()) -> None:
        self.change: Change | None = as_stored
        self.store: dict[str, PodInfo | PlacedPod] = {}
        self.nodes: dict[str, Node] = {}
        self.timing = figures.Timing()
        self._origin: dict[str, tuple[Batch, int, int]] = {}  # pod -> its batch, number and UID
        self._uid = 0
        self._tasks: list[asyncio.Future[None]] = []
        self.listers = listers = Listers()
        self.scheduler: Scheduler = build(
            configuration(without),
            ports=Ports(self, self, Evictor(self), self),
            clock=RealClock(),
            pod_lister=self.store.get,
            listers=listers,
            rng=random.Random(1),
            hooks=self.timing,
        )
        handlers = self.scheduler.handlers
        self._watchers: dict[str, Watcher] = {
            watched.kind: handlers.of_store(watched.resource or watched.kind, getattr(listers, watched.store))
            for watched in WATCHED
        }
        self._objects: dict[tuple[str, str], Any] = {}

    # --- ports --------------------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        batch, i, uid = self._origin[pod.key]
        body = batch.template.body(i, uid).replace(b'"spec":{', b'"spec":{"nodeName":"%s",' % node_name.encode(), 1)
        new = PlacedPod(PodInfo(_decode_pod(body)), node_name)
        old, self.store[pod.key] = self.store[pod.key], new
        batch.placed += 1
        self.scheduler.handlers.pod_updated(old, new)

    async def patch_status(self, pod: Any, patch: Any) -> None:
        pass

    async def delete_pod(self, key: str) -> bool:
        old = self.store.pop(key, None)
        if old is None:
            return False
        del self._origin[key]
        self.scheduler.handlers.pod_deleted(old)
        return True

    def event(self, *args: Any, **more: Any) -> None:
        pass

    # --- operations ---------------------------------------------------------------------------------------------------

    async def create(self, batch: Batch) -> None:
        template = batch.template
        for i in batch.numbers():
            self._uid += 1
            body = template.body(i, self._uid)
            if template.kind == "Pod":
                info = PodInfo(_decode_pod(body))
                self._origin[info.key] = (batch, i, self._uid)
                self.store[info.key] = info
                self.scheduler.handlers.pod_added(info)
            elif template.kind == "Node":
                node = _decode_node(body)
                self.nodes[node.metadata.name] = node
                self.scheduler.handlers.node_added(node)
            elif template.kind in self._watchers:
                obj = msgspec.json.decode(body, type=KINDS[template.kind].struct)
                self._objects[template.kind, template.name(i)] = obj
                self._watchers[template.kind].added(obj)

    def place(self, batch: Batch, nodes: Sequence[str]) -> None:
        """Pods that have nodes already, as a list would bring them."""
        for i, name in zip(batch.numbers(), nodes, strict=True):
            self._uid += 1
            body = batch.template.body(i, self._uid)
            body = body.replace(b'"spec":{', b'"spec":{"nodeName":"%s",' % name.encode(), 1)
            pod = as_kept(_decode_pod(body))
            self.store[pod.key] = pod
            self.scheduler.handlers.pod_added(pod)

    async def delete(self, batch: Batch, i: int) -> None:
        """Deletes object `i` of a batch."""
        template: Template = batch.template
        name = template.name(i)
        if template.kind == "Pod":
            await self._delete_or_mark(f"{template.namespace}/{name}")
        elif template.kind == "Node":
            self.scheduler.handlers.node_deleted(self.nodes.pop(name))
        else:
            self._watchers[template.kind].deleted(self._objects.pop((template.kind, name)))

    async def _delete_or_mark(self, key: str) -> None:
        """A pod with finalizers stays, with a deletion timestamp."""
        if key not in self.store:
            return
        batch, i, uid = self._origin[key]
        body = batch.template.body(i, uid)
        if b'"finalizers"' not in body:
            await self.delete_pod(key)
            return
        old = self.store[key]
        text = b'"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",'
        if old.node_name:
            body = body.replace(b'"spec":{', b'"spec":{"nodeName":"%s",' % old.node_name.encode(), 1)
        info = PodInfo(_decode_pod(body.replace(b'"metadata":{', text, 1)))
        new = self.store[key] = PlacedPod(info, old.node_name) if old.node_name else info
        self.scheduler.handlers.pod_updated(old, new)

    async def settle(self, batch: Batch) -> None:
        await self._drive(batch)

    async def attempted(self) -> None:
        await self._drive(None)

    async def measure(self, batch: Batch, background: list[Background]) -> dict[str, Any]:
        calm()
        self.timing.decisions.clear()
        cpu, start = time.process_time(), time.perf_counter()
        await self.create(batch)
        self._tasks = [asyncio.ensure_future(work()) for work in background]
        try:
            end, end_cpu = await self._drive(batch)
        finally:
            await self._stop_background()
        return {
            **figures.rate(batch.placed, end - start, end_cpu - cpu),
            **figures.percentiles(self.timing.decisions),
            "unplaced": batch.count - batch.placed,
        }

    async def _stop_background(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def _drive(self, batch: Batch | None) -> tuple[float, float]:
        """Schedules until the batch has nodes or nothing moves; time and processor time of the last pod's placing."""
        scheduler, placed = self.scheduler, -1
        now = moved = time.perf_counter()
        cpu = time.process_time()
        last = (now, cpu)
        while (batch is None or batch.placed < batch.count) and now - last[0] < LIMIT:
            scheduler.flush()
            ran = scheduler.run_slice()
            await asyncio.sleep(0)
            now = time.perf_counter()
            if batch is not None and batch.placed != placed:
                placed, last = batch.placed, (now, time.process_time())
            if ran or scheduler.dispatcher.unfinished_bindings:
                moved = now
            elif self._at_rest(now - moved):
                break
            elif now - moved > 0.001:
                await asyncio.sleep(0.001)
        return last

    def _at_rest(self, seconds: float) -> bool:
        if any(not task.done() for task in self._tasks):
            return seconds > STILL_IN_CHURN
        counts = self.scheduler.queue.pending_counts()
        return not counts.active and not counts.backoff and seconds > STILL


class Evictor:
    """Deletes victims at once."""

    def __init__(self, world: World) -> None:
        self._delete = world.delete_pod

    async def delete(self, pod: PlacedPod) -> bool:
        return await self._delete(pod.key)


async def run(workload: Workload) -> dict[str, Any]:
    """Runs a workload; the figures of its measured pods."""
    world = World(workload.without)
    scheduler = world.scheduler
    scheduler.dispatcher.start()
    try:
        found = await Run(workload, world).all()
        scheduler.cache.validate()
        scheduler.queue.validate()
        figures.refuse(Auditor(scheduler, world.store, world.nodes).detect())
    finally:
        await scheduler.dispatcher.close()
    return found | {"peak_rss_mib": figures.peak_rss_mib()}
