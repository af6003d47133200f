"""Mode `e2e`: over HTTP against an API server in another process, events included.

Measured pods all exist before the scheduler starts. CPU is the scheduler's own, from handler sync to the last bind; the
null binder binds the same pods in the same server before. The ratio to it counts the bindings of all pods that are
waiting, those that are not measured as well.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Protocol

from bench import figures
from bench.decisions import configuration
from bench.null_binder import bind_all
from bench.objects import Change
from bench.operations import Background, Batch, Run
from bench.server import Objects, Server
from bench.workloads import Workload
from skedge.app.collector import calm
from skedge.app.process import SchedulerProcess
from skedge.config.gates import FeatureGates
from skedge.config.types import KubeSchedulerConfiguration
from skedge.scheduler.auditor import Auditor
from skedge.snapshot.pods import PlacedPod, PodInfo

LIMIT: Final = 120.0
"""Seconds without a binding after which waiting ends whatever happens."""
STILL: Final = 3.0
"""Seconds without a binding, with nothing in the queue to be tried, after which nothing is expected any more."""
STILL_ANYWAY: Final = 30.0
LOOK: Final = 0.005


@asynccontextmanager
async def scheduling(
    server: Server,
    config: KubeSchedulerConfiguration,
    timing: figures.Timing,
    synced: Callable[[SchedulerProcess], None],
    gates: FeatureGates | None = None,
) -> AsyncIterator[SchedulerProcess]:
    """A scheduler in this process, from when it has seen everything until the block ends."""
    gc.unfreeze()  # what a scheduler before this one left in circles
    gc.collect()
    config.client_connection.qps, config.client_connection.burst = 5000.0, 5000
    config.leader_election.leader_elect = False
    ready = asyncio.Event()

    def seen() -> None:
        if not ready.is_set():
            calm()
            synced(process)
            ready.set()

    process = SchedulerProcess(config, server.client_config(), gates=gates, hooks=timing, synced=seen, audit=False)
    task = asyncio.create_task(process.run())
    try:
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()
            raise RuntimeError("the scheduler ended before it had seen everything")
        yield process
        if task.done():
            task.result()
        assert process.scheduler is not None
        assert process.watches is not None
        auditor = Auditor(process.scheduler, process.watches.pods.store, process.watches.nodes.store)
        figures.refuse(auditor.detect())
    finally:
        process.stop()
        await task


class Profiler(Protocol):
    """Told when measured pods begin to be placed, and when the last one was."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class World:
    """Objects in a server; a scheduler while pods are waited for."""

    profiler: ClassVar[Profiler | None] = None
    change: Change | None = None

    def __init__(self, server: Server, objects: Objects, without: tuple[str, ...]) -> None:
        self._server = server
        self._objects = objects
        self._without = without
        self._nodes: list[str] = []

    async def create(self, batch: Batch) -> None:
        await self._objects.create(batch)
        if batch.template.kind == "Node" and not batch.template.name_prefix.startswith("node-churn"):
            self._nodes += [batch.template.name(i) for i in batch.numbers()]

    async def delete(self, batch: Batch, i: int) -> None:
        await self._objects.delete(batch, i)

    async def attempted(self) -> None:
        """Nothing to do: a scheduler that starts later tries everything."""

    async def settle(self, batch: Batch) -> None:
        await self._schedule(batch, [])

    async def measure(self, batch: Batch, background: list[Background]) -> dict[str, Any]:
        rate, cpu = await bind_all(self._server.url, await self._objects.create(batch), self._nodes)
        await self._objects.delete_all(batch)
        await self._objects.create(batch)
        found = await self._schedule(batch, background, self.profiler)
        found |= {"null_pods_per_s": round(rate, 1), "null_cpu_ms_per_pod": round(cpu, 4)}
        return found | {"ratio_to_null": round(found["bindings_per_s"] / rate, 3)}

    async def _schedule(
        self, batch: Batch, background: list[Background], profiler: Profiler | None = None
    ) -> dict[str, Any]:
        timing, server = figures.Timing(), self._server
        namespace = batch.template.namespace
        waiting = {f"{namespace}/{batch.template.name(i)}" for i in batch.numbers()}
        moments: dict[str, float] = {"bindings": 0, "all": 0}  # of pods that are not measured, too

        def updated(old: object, new: object) -> None:
            if isinstance(new, PlacedPod) and isinstance(old, PodInfo):
                moments["all"] += 1
                if new.key in waiting:
                    waiting.remove(new.key)
                    batch.placed += 1
                    moments["end"], moments["end_cpu"] = time.perf_counter(), time.process_time()
                    moments["bindings"] = moments["all"]

        def synced(process: SchedulerProcess) -> None:
            if profiler is not None:
                profiler.start()
            assert process.watches is not None
            process.watches.pods.add_handler(on_update=updated)
            moments["server"] = server.cpu_seconds()
            moments["start"], moments["cpu"] = time.perf_counter(), time.process_time()
            moments["end"], moments["end_cpu"] = moments["start"], moments["cpu"]

        created = time.perf_counter()
        async with scheduling(server, configuration(self._without), timing, synced) as process:
            tasks = [asyncio.ensure_future(work()) for work in background]
            try:
                while batch.placed < batch.count and not _at_rest(process, moments["end"], tasks):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK)
            finally:
                if profiler is not None:
                    profiler.stop()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            used = server.cpu_seconds() - moments["server"]
        seconds = moments["end"] - moments["start"]
        return {
            **figures.rate(batch.placed, seconds, moments["end_cpu"] - moments["cpu"]),
            "bindings_per_s": round(moments["bindings"] / max(seconds, 1e-9), 1),
            **figures.percentiles(timing.attempts),
            "unplaced": batch.count - batch.placed,
            "server_cpu_ms_per_pod": round(used * 1000 / batch.placed, 4) if batch.placed else None,
            "start_s": round(moments["start"] - created, 3),
        }


def _at_rest(process: SchedulerProcess, last: float, background: Sequence[asyncio.Future[None]]) -> bool:
    """Whether no more bindings are to be expected, judging by the time of the last one."""
    still = time.perf_counter() - last
    if still < STILL:
        return False
    assert process.scheduler is not None
    counts = process.scheduler.queue.pending_counts()
    moving = counts.active or counts.backoff or process.scheduler.dispatcher.unfinished_bindings
    return still > LIMIT or (still > STILL_ANYWAY and not counts.active) or not (moving or background)


async def run(workload: Workload, server_url: str | None = None) -> dict[str, Any]:
    """Runs a workload end to end, and its null binder in the same server before it."""
    with Server(server_url) as server:
        async with Objects(server.url) as objects:
            found = await Run(workload, World(server, objects, workload.without)).all()
        return found | {"peak_rss_mib": figures.peak_rss_mib()}
