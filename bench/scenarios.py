"""Figures that are no rates of a workload: latency under a steady load, a pod that goes first, start-up, memory, and
the embedded server by itself."""

from __future__ import annotations

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from bench import figures
from bench.decisions import World as Engine
from bench.decisions import configuration
from bench.e2e import scheduling
from bench.endurance import churn, fill, loop_lag, make_nodes, running, steady, until_placed
from bench.null_binder import bind_all
from bench.objects import Template
from bench.operations import Batch
from bench.server import Objects, Server
from skedge.app.process import SchedulerProcess
from skedge.snapshot.pods import PlacedPod, PodInfo

LOOK: Final = 0.02


class Arrivals:
    """When pods came by the watch, and how long until the watch told that they have a node, in seconds."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self.took: dict[str, float] = {}

    def connect(self, process: SchedulerProcess) -> None:
        assert process.watches is not None
        process.watches.pods.add_handler(on_add=self._added, on_update=self._updated)

    def _added(self, pod: object, initial: bool) -> None:
        if isinstance(pod, PodInfo):
            self._seen[pod.key] = time.perf_counter()

    def _updated(self, old: object, new: object) -> None:
        if isinstance(new, PlacedPod) and new.key in self._seen and new.key not in self.took:
            self.took[new.key] = time.perf_counter() - self._seen[new.key]

    async def wait(self, pods: int, seconds: float) -> None:
        """Until so many pods have nodes."""
        end = time.perf_counter() + seconds
        while len(self.took) < pods and time.perf_counter() < end:  # noqa: ASYNC110
            await asyncio.sleep(LOOK)


async def watch_to_bind(url: str | None, nodes: int, rate: float, seconds: float) -> dict[str, Any]:
    """Pods offered at a steady rate by another process; latency from their watch event to that of their binding."""
    arrivals, pods = Arrivals(), int(rate * seconds)
    with Server(url) as server:
        async with Objects(server.url) as objects:
            await make_nodes(objects, nodes)
        async with scheduling(server, configuration(), figures.Timing(), arrivals.connect):
            cpu = time.process_time()
            command = [sys.executable, "-m", "bench.load", server.url, str(rate), str(seconds)]
            load = await asyncio.create_subprocess_exec(*command)
            await load.wait()
            await arrivals.wait(pods, 30.0)
            cpu = time.process_time() - cpu
    took = list(arrivals.took.values())
    return {
        "nodes": nodes,
        **figures.rate(len(took), seconds, cpu),
        **figures.percentiles(took),
        "p99_9_ms": figures.percentile(took, 99.9),
        "peak_rss_mib": figures.peak_rss_mib(),
        "unplaced": pods - len(took),
    }


async def first_in_line(url: str | None, nodes: int, queued: int) -> dict[str, Any]:
    """A pod of high priority is created while `queued` others wait; how long until it has a node."""
    arrivals = Arrivals()
    with Server(url) as server:
        async with Objects(server.url) as objects:
            await objects.create(Batch(Template("priority-class"), 0, 1))
            await make_nodes(objects, nodes)
            await objects.create(Batch(Template("pod"), 0, queued))
            urgent = Template("pod-high-priority-small")
            took = []
            async with scheduling(server, configuration(), figures.Timing(), arrivals.connect) as process:
                for i in range(5):
                    await asyncio.sleep(1.0)
                    created = time.perf_counter()
                    await objects.create(Batch(urgent, i, 1))
                    key = f"default/{urgent.name(i)}"
                    while key not in arrivals.took:  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                    took.append(time.perf_counter() - created)
                assert process.scheduler is not None
                left = process.scheduler.queue.pending_counts().active
    watched = [seconds for key, seconds in arrivals.took.items() if "urgent" in key]
    return {
        "nodes": nodes,
        "pods": len(took),
        **figures.percentiles(watched),
        "created_to_bound_max_ms": round(max(took) * 1000, 1),
        "still_queued": left,
        "peak_rss_mib": figures.peak_rss_mib(),
    }


async def start_up(url: str | None, nodes: int, placed: int) -> dict[str, Any]:
    """A scheduler process is started in a cluster full of pods, and one more waits; how long until that has a node."""
    with Server(url) as server, tempfile.TemporaryDirectory() as folder:
        async with Objects(server.url) as objects:
            await fill(objects, server.url, nodes, placed)
            waiting = Template("pod")
            await objects.create(Batch(waiting, 0, 1))
            start = time.perf_counter()
            async with running(server, folder) as process:
                await until_placed(objects, waiting, 0, LOOK)
                took = time.perf_counter() - start
                peak = figures.peak_rss_mib(process.pid)
    return {
        "nodes": nodes,
        "pods": placed,
        "first_binding_s": round(took, 3),
        "peak_rss_mib": peak,
    }


async def server_bindings(url: str | None, nodes: int, pods: int) -> dict[str, Any]:
    """Bindings the API server takes while a watch on pods is open."""
    with Server(url) as server:
        async with Objects(server.url) as objects:
            names = await make_nodes(objects, nodes)
            made = await objects.create(Batch(Template("pod"), 0, pods))
        watching = await _watch(server.url)
        try:
            used = server.cpu_seconds()
            per_s, cpu = await bind_all(server.url, made, names, events=False)
            used = server.cpu_seconds() - used
        finally:
            watching.kill()
            await watching.wait()
    return {
        "nodes": nodes,
        "pods": pods,
        "pods_per_s": round(per_s, 1),
        "cpu_ms_per_pod": round(cpu, 4),
        "server_cpu_ms_per_pod": round(used * 1000 / pods, 4),
    }


async def _watch(url: str) -> asyncio.subprocess.Process:
    """A process that reads a watch on pods and throws it away."""
    code = (
        "import sys, urllib.request\n"
        "stream = urllib.request.urlopen(sys.argv[1] + '/api/v1/pods?watch=1')\n"
        "while stream.read1(65536): pass\n"
    )
    watching = await asyncio.create_subprocess_exec(sys.executable, "-c", code, url)
    await asyncio.sleep(1.0)
    return watching


async def memory(url: str | None, nodes: int, pods: int) -> dict[str, Any]:
    """Large objects as they are in real clusters: nodes of 12 KB, placed pods of 6.6 KB with ten labels, of which three
    are the owner's and one is the pod's own."""
    del url
    world = Engine()
    node, pod = Template(_large_node(), change=world.change), Template(_large_pod(), change=world.change)
    await world.create(Batch(node, 0, nodes))
    names = [node.name(i) for i in range(nodes)]
    rng = random.Random(1)
    start = time.perf_counter()
    world.place(Batch(pod, 0, pods), [names[rng.randrange(nodes)] for _ in range(pods)])
    took = time.perf_counter() - start
    return {
        "nodes": nodes,
        "pods": pods,
        "pods_per_s": round(pods / took, 1),
        "peak_rss_mib": figures.peak_rss_mib(),
        "node_bytes": len(node.body(1, 1)),
        "pod_bytes": len(pod.body(1, 1)),
        "python_rss_mib": round(_EMPTY_RSS / 1024, 1),
    }


_EMPTY_RSS: Final = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _large_node() -> dict[str, Any]:
    registry = "registry.example.com/team"
    images = [
        {
            "names": [
                f"{registry}/service-{i}@sha256:{i:064x}",
                f"{registry}/service-{i}:v1",
            ],
            "sizeBytes": 50_000_000 + i,
        }
        for i in range(45)
    ]
    labels = {f"node.example.com/feature-{i}": f"value-{i}" for i in range(15)}
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet says about {kind} that all is as it should be",
        }
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    ]
    size = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "500Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "generateName": "large-node-",
            "labels": {**labels, "topology.kubernetes.io/zone": "zone-<i%3>"},
            "annotations": {f"node.example.com/note-{i}": "x" * 90 for i in range(15)},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "example://<i>"},
        "status": {"capacity": size, "allocatable": size, "images": images, "conditions": conditions},
    }


def _large_pod() -> dict[str, Any]:
    owner = "app-<i%5000>"
    labels = {f"example.com/common-{i}": f"value-{i}" for i in range(6)}
    labels |= {"app": owner, "example.com/release": f"{owner}-release", "pod-template-hash": "hash-<i%5000>"}
    labels |= {"statefulset.kubernetes.io/pod-name": "large-pod-<i>"}
    container = {
        "name": "main",
        "image": f"registry.example.com/team/{owner}:v1",
        "args": [f"--flag-{i}=some-value-of-it" for i in range(20)],
        "env": [{"name": f"VARIABLE_{i}", "value": f"value of variable {i}"} for i in range(40)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:example.com/common-{i}": {} for i in range(40)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "large-pod-",
            "labels": labels,
            "annotations": {f"example.com/note-{i}": "x" * 60 for i in range(6)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": "00000000-0000-4000-9000-<i%5000>",
                    "controller": True,
                }
            ],
            "managedFields": [{"manager": "controller", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
    }


class Scenario(NamedTuple):
    name: str
    size: str
    mode: str
    quick: bool
    run: Callable[[str | None], Coroutine[Any, Any, dict[str, Any]]]
    test: bool = False

    @property
    def label(self) -> str:
        return f"{self.name}/{self.size}"


_ALL: Final = (
    Scenario("ServerBindings", "5000Pods", "e2e", True, lambda url: server_bindings(url, 1000, 5000)),
    Scenario("WatchToBind", "300PerSecond", "e2e", True, lambda url: watch_to_bind(url, 5000, 300.0, 10.0)),
    Scenario("WatchToBind", "5Nodes", "e2e", False, lambda url: watch_to_bind(url, 5, 50.0, 0.5), True),
    Scenario("FirstInLine", "50000Queued", "e2e", False, lambda url: first_in_line(url, 5000, 50_000)),
    Scenario("StartUp", "5000Nodes_30000Pods", "e2e", False, lambda url: start_up(url, 5000, 30_000)),
    Scenario("StartUp", "5000Nodes_150000Pods", "e2e", False, lambda url: start_up(url, 5000, 150_000)),
    Scenario("StartUp", "5Nodes", "e2e", False, lambda url: start_up(url, 5, 20), True),
    Scenario("Memory", "5000Nodes_150000Pods", "decisions", False, lambda url: memory(url, 5000, 150_000)),
    Scenario("Steady", "5000Nodes_150000Pods", "e2e", False, lambda url: steady(url, 5000, 150_000, 30.0)),
    Scenario("Steady", "5000Nodes_4000Pods", "e2e", False, lambda url: steady(url, 5000, 4000, 20.0)),
    Scenario("Steady", "5Nodes", "e2e", False, lambda url: steady(url, 5, 20, 0.5), True),
    Scenario("Churn", "500000Pods_100000Nodes", "decisions", False, lambda url: churn(url, 5000, 500_000, 100_000)),
    Scenario("Churn", "5Nodes", "decisions", False, lambda url: churn(url, 5, 40, 8, 10), True),
    Scenario("LoopLag", "5000Nodes_150000Pods", "e2e", False, lambda url: loop_lag(url, 5000, 130_000, 300, 500)),
    Scenario("LoopLag", "5Nodes", "e2e", False, lambda url: loop_lag(url, 5, 20, 3, 5), True),
    Scenario("Memory", "5Nodes", "decisions", False, lambda url: memory(url, 5, 100), True),
)
SCENARIOS: Final = {scenario.label: scenario for scenario in _ALL}
