"""Mode `decisions`: freshly decoded pods through handlers, real queue, cycle, assume; the binder answers at once and
feeds the confirming watch event back. Default profile, metrics on, all nodes scored.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import time
from typing import Any

import msgspec

from bench.defaults import as_stored
from bench.workloads import Workload
from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.app.watches import WATCHED
from skedge.assembly import build
from skedge.clock import RealClock
from skedge.config.defaults import default_configuration
from skedge.framework.handle import Listers
from skedge.framework.ports import Ports
from skedge.names import KUBERNETES_VERSION
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics

_decode = msgspec.json.Decoder(Pod).decode
_encode = msgspec.json.encode


class World:
    """The API server of this mode: a dictionary of bodies, and the ports."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.store: dict[str, PodInfo | PlacedPod] = {}
        self.started: dict[str, float] = {}
        self.cycle: list[float] = []
        self.failed = 0
        self.listers = Listers()
        self.scheduler = build(
            default_configuration(),
            ports=Ports(self, self, self, self),
            clock=RealClock(),
            pod_lister=self.store.get,
            listers=self.listers,
            rng=random.Random(1),
            hooks=SchedulerMetrics(Metrics(KUBERNETES_VERSION)),
        )

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        body = self.bodies.pop(pod.key).replace(b'"spec":{', b'"spec":{"nodeName":"%s",' % node_name.encode(), 1)
        new = PlacedPod(PodInfo(_decode(body)), node_name)
        old, self.store[pod.key] = self.store[pod.key], new
        self.scheduler.handlers.pod_updated(old, new)

    async def patch_status(self, pod: Any, patch: Any) -> None:
        self.failed += 1

    async def delete(self, pod: PlacedPod) -> bool:
        self.scheduler.handlers.pod_deleted(self.store.pop(pod.key))
        return True

    def event(self, *args: Any, **more: Any) -> None:
        pass

    def pod_created(self, body: bytes) -> None:
        info = PodInfo(_decode(body))
        self.bodies[info.key] = body
        self.store[info.key] = info
        self.scheduler.handlers.pod_added(info)


async def run(workload: Workload) -> dict[str, Any]:
    """Runs a workload; the figures of its measured pods."""
    world = World()
    scheduler = world.scheduler
    scheduler.dispatcher.start()
    stores = {watched.kind: getattr(world.listers, watched.store) for watched in WATCHED}
    figures: dict[str, Any] = {}
    uid = 0
    for batch in workload.batches():
        bodies = []
        for obj in batch.objects:
            uid += 1
            bodies.append(_encode(as_stored(obj, uid)))
        if batch.plural == "nodes":
            for body in bodies:
                scheduler.handlers.node_added(msgspec.json.decode(body, type=Node))
            continue
        if batch.plural != "pods":
            kind = batch.objects[0]["kind"]
            for body in bodies:
                stores[kind].set(msgspec.json.decode(body, type=KINDS[kind].struct))
            continue
        gc.collect()
        gc.freeze()
        cpu, start = time.process_time(), time.perf_counter()
        latencies = await _place(world, bodies)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        if batch.measure:
            latencies.sort()
            figures = {
                "pods": len(bodies),
                "pods_per_s": round(len(bodies) / took, 1),
                "cpu_ms_per_pod": round(cpu * 1000 / len(bodies), 4),
                "p50_ms": round(latencies[len(latencies) // 2] * 1000, 4),
                "p99_ms": round(latencies[len(latencies) * 99 // 100] * 1000, 4),
                "unschedulable": world.failed,
            }
    scheduler.cache.validate()
    scheduler.queue.validate()
    await scheduler.dispatcher.close()
    figures["nodes"] = scheduler.cache.table.count
    figures["peak_rss_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return figures


async def _place(world: World, bodies: list[bytes]) -> list[float]:
    """Creates pods and schedules them; seconds a cycle took, binding included."""
    scheduler = world.scheduler
    for body in bodies:
        world.pod_created(body)
    cycles: list[float] = []
    idle = 0
    while idle < 2:
        start = time.perf_counter()
        done = scheduler.run_slice()
        await asyncio.sleep(0)
        if done:
            cycles += [(time.perf_counter() - start) / done] * done
            idle = 0
        elif scheduler.dispatcher.unfinished_bindings == 0:
            idle += 1
    return cycles
