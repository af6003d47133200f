"""Figures of a scheduler that runs on and on: the cost of a quiet cluster, memory under churn, how long the loop is
held up by the largest things it does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench import figures
from bench.decisions import World as Engine
from bench.decisions import configuration
from bench.e2e import scheduling
from bench.null_binder import bind_all
from bench.objects import Template
from bench.operations import Batch
from bench.server import Objects, Server
from skedge.config.gates import FeatureGates

TICK: Final = os.sysconf("SC_CLK_TCK")
PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cpu_seconds(pid: int) -> float:
    """Processor time that a process used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mib() -> float:
    """What this process has in memory now."""
    return round(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_MIB, 1)


async def make_nodes(objects: Objects, nodes: int) -> list[str]:
    """Nodes; their names."""
    batch = Batch(Template("node"), 0, nodes)
    await objects.create(batch)
    return [batch.template.name(i) for i in batch.numbers()]


async def fill(objects: Objects, url: str, nodes: int, placed: int) -> None:
    """Nodes, and pods placed on them in turn."""
    names = await make_nodes(objects, nodes)
    await bind_all(url, await objects.create(Batch(Template("light-pod"), 0, placed)), names, events=False)


@asynccontextmanager
async def running(server: Server, folder: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`skedge scheduler` in a process of its own, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "skedge", "scheduler", "--kubeconfig", str(server.write_kubeconfig(Path(folder)))),
        *("--leader-elect=false", "--secure-port=0"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def until_placed(objects: Objects, template: Template, i: int, look: float = 0.2) -> None:
    """Waits until pod `i` has a node."""
    while not await objects.node_of(template, i):  # noqa: ASYNC110
        await asyncio.sleep(look)


async def steady(url: str | None, nodes: int, placed: int, seconds: float) -> dict[str, Any]:
    """A scheduler process in a full cluster in which nothing happens but status updates of each node every 10 s; what
    it uses of one processor."""
    with Server(url) as server, tempfile.TemporaryDirectory() as folder:
        async with Objects(server.url) as objects:
            await fill(objects, server.url, nodes, placed)
            waiting = Template("pod")
            await objects.create(Batch(waiting, 0, 1))
            async with running(server, folder) as process:
                await until_placed(objects, waiting, 0)
                calm = min(4.0, seconds)  # until it is used to them
                lasts = str(seconds + calm + 0.5)
                command = [sys.executable, "-m", "bench.load", "--heartbeats", server.url, str(nodes), lasts]
                load = await asyncio.create_subprocess_exec(*command)
                await asyncio.sleep(calm)
                used, start = cpu_seconds(process.pid), time.perf_counter()
                await asyncio.sleep(seconds)
                used, took = cpu_seconds(process.pid) - used, time.perf_counter() - start
                peak = figures.peak_rss_mib(process.pid)
                await load.wait()
    return {
        "nodes": nodes,
        "pods": placed,
        "peak_rss_mib": peak,
        "heartbeats_per_s": nodes / 10,
        "share_of_a_core_percent": round(used / took * 100, 1),
    }


async def churn(url: str | None, nodes: int, pods: int, replaced: int, step: int = 5000) -> dict[str, Any]:
    """Pods are placed and deleted, nodes replaced by new ones, again and again; memory on the way, decisions only."""
    del url
    world = Engine()
    world.scheduler.dispatcher.start()
    node, pod = Template("node", change=world.change), Template("pod", prefix="churned", change=world.change)
    old = Batch(node, 0, nodes)
    await world.create(old)
    first_node, memory = 0, []
    start = time.perf_counter()
    rounds = pods // step
    for i in range(rounds):
        batch = Batch(pod, i * step, step)
        await world.create(batch)
        await world.settle(batch)
        if batch.placed < step:
            raise RuntimeError(f"{step - batch.placed} of {step} pods were not placed")
        for number in batch.numbers():
            await world.delete(batch, number)
        for _ in range(replaced // rounds):
            await world.delete(Batch(node, first_node, 1), first_node)
            await world.create(Batch(node, first_node + nodes, 1))
            first_node += 1
        world.timing.decisions.clear()
        world.timing.attempts.clear()
        memory.append(rss_mib())
    took = time.perf_counter() - start
    world.scheduler.cache.validate()
    world.scheduler.queue.validate()
    await world.scheduler.dispatcher.close()
    return {
        "nodes": nodes,
        "pods": rounds * step,
        "replaced_nodes": first_node,
        "seconds": round(took, 1),
        "rss_mib_after_a_tenth": memory[len(memory) // 10],
        "rss_mib_after_a_half": memory[len(memory) // 2],
        "rss_mib_at_the_end": memory[-1],
        "peak_rss_mib": figures.peak_rss_mib(),
    }


async def _look(lags: list[float], every: float = 0.005) -> None:
    """How late the loop's timer fires, in seconds, again and again."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + every
        await asyncio.sleep(every)
        lags.append(max(0.0, loop.time() - due))


_GROUP: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "gang"},
}


async def loop_lag(url: str | None, nodes: int, placed: int, preemptors: int, group: int) -> dict[str, Any]:
    """The loop of a scheduler with a full cluster, then preemptors, then a group of pods that are placed together."""
    lags: list[float] = []
    gates = FeatureGates(GenericWorkload=True, GangScheduling=True)
    with Server(url) as server:
        async with Objects(server.url) as objects:
            await objects.create(Batch(Template("priority-class"), 0, 1))
            await fill(objects, server.url, nodes, placed)
            crowd = Batch(Template("pod-low-priority"), 0, nodes * 4)
            gang = {**_GROUP, "spec": {"schedulingPolicy": {"gang": {"minCount": group}}}}
            async with scheduling(server, configuration(), figures.Timing(), lambda process: None, gates):
                looking = asyncio.create_task(_look(lags))
                await _placed(objects, crowd)
                await _placed(objects, Batch(Template("pod-high-priority"), 0, preemptors))
                await objects.create(Batch(Template(gang), 0, 1))
                await _placed(objects, Batch(Template("pod", prefix="member", change=_in_gang), 0, group))
                looking.cancel()
    return {
        "nodes": nodes,
        "pods": placed + crowd.count,
        "preemptors": preemptors,
        "group": group,
        "looks": len(lags),
        "lag_p99_9_ms": figures.percentile(lags, 99.9),
        "lag_max_ms": figures.percentile(lags, 100.0),
        "peak_rss_mib": figures.peak_rss_mib(),
    }


def _in_gang(pod: dict[str, Any]) -> None:
    pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}


async def _placed(objects: Objects, batch: Batch) -> None:
    """Creates pods, and waits until all have nodes."""
    await objects.create(batch)
    for i in batch.numbers():
        await until_placed(objects, batch.template, i)
