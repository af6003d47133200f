"""Mode `e2e`: over HTTP against an API server in another process, events included.

All pods exist before the scheduler starts. CPU is the scheduler's own, from handler sync to the last bind.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import aiohttp
import msgspec

from bench.null_binder import bind_all
from bench.workloads import Batch, Workload
from skedge.app.process import SchedulerProcess
from skedge.client.clientconfig import ClientConfig, load_kubeconfig
from skedge.config.defaults import default_configuration
from skedge.names import KUBERNETES_VERSION
from skedge.snapshot.pods import PlacedPod
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics

_JSON = {"Content-Type": "application/json"}
CREATORS = 32


class Server:
    """The embedded API server in a process of its own, or one that runs already (`url`)."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> str:
        if self._url:
            return self._url
        self._process = subprocess.Popen(
            [sys.executable, "-m", "skedge.controlplane", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        return next(word for word in line.split() if word.startswith("http"))

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(20)

    def cpu_seconds(self) -> float | None:
        """CPU time of our own server process."""
        if self._process is None:
            return None
        with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def create(url: str, batch: Batch) -> list[dict[str, str]]:
    """Creates a batch; name, namespace, uid and resourceVersion of each object."""
    path = {"nodes": "/api/v1/nodes", "namespaces": "/api/v1/namespaces"}.get(batch.plural)
    work = iter(batch.objects)
    made: list[dict[str, str]] = []
    async with aiohttp.ClientSession(url, headers=_JSON) as session:

        async def worker() -> None:
            for obj in work:
                where = path or f"/api/v1/namespaces/{obj['metadata']['namespace']}/{batch.plural}"
                async with session.post(where, data=msgspec.json.encode(obj)) as response:
                    body = await response.read()
                    if response.status >= 300:
                        raise RuntimeError(f"creating {obj['metadata']['name']}: {body.decode()}")
                    meta = msgspec.json.decode(body)["metadata"]
                    made.append({key: meta.get(key, "") for key in ("name", "namespace", "uid", "resourceVersion")})
                if batch.plural == "nodes":  # admission taints new nodes until a kubelet says that they are ready
                    await _untaint(session, obj["metadata"]["name"])

        await asyncio.gather(*(worker() for _ in range(CREATORS)))
    return made


async def _untaint(session: aiohttp.ClientSession, name: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    async with session.patch(f"/api/v1/nodes/{name}", data=b'{"spec":{"taints":null}}', headers=headers) as response:
        await response.read()


async def delete_pods(url: str) -> None:
    async with aiohttp.ClientSession(url) as session:
        path = "/api/v1/namespaces/default/pods"
        async with session.delete(path, params={"gracePeriodSeconds": "0"}) as response:
            await response.read()


async def run(workload: Workload, server_url: str | None = None) -> dict[str, Any]:
    """Runs a workload end to end, and its null binder in the same server before it."""
    server = Server(server_url)
    with server as url:
        nodes: list[str] = []
        figures: dict[str, Any] = {}
        for batch in workload.batches():
            if batch.measure:
                pods = await create(url, batch)
                rate, cpu = await bind_all(url, pods, nodes)
                figures |= {"null_pods_per_s": round(rate, 1), "null_cpu_ms_per_pod": round(cpu, 4)}
                await delete_pods(url)
                await create(url, batch)
                figures |= await schedule(url, len(batch.objects), server)
            else:
                made = await create(url, batch)
                if batch.plural == "nodes":
                    nodes += [node["name"] for node in made]
                elif batch.plural == "pods":
                    await schedule(url, len(batch.objects), server)
        figures["nodes"] = len(nodes)
        figures["ratio_to_null"] = round(figures["pods_per_s"] / figures["null_pods_per_s"], 3)
        figures["peak_rss_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
        return figures


async def schedule(url: str, pods: int, server: Server) -> dict[str, Any]:
    """Starts the scheduler on a server that has `pods` pending pods, and stops it when they are placed."""
    config = default_configuration()
    config.client_connection.qps, config.client_connection.burst = 5000.0, 5000
    config.leader_election.leader_elect = False
    moments: dict[str, float] = {}

    def synced() -> None:
        moments["start"], moments["cpu"] = time.perf_counter(), time.process_time()
        moments["server"] = server.cpu_seconds() or 0.0

    hooks = SchedulerMetrics(Metrics(KUBERNETES_VERSION))
    created = time.perf_counter()
    process = SchedulerProcess(config, _client_config(url), hooks=hooks, synced=synced)
    task = asyncio.create_task(process.run())
    try:
        while not moments:
            await asyncio.sleep(0.01)
            if task.done():
                task.result()
        watches = process.watches
        assert watches is not None
        waiting = pods
        while waiting:
            await asyncio.sleep(0.005)
            waiting = sum(not isinstance(pod, PlacedPod) for pod in watches.pods.store)
        took, cpu = time.perf_counter() - moments["start"], time.process_time() - moments["cpu"]
        server_cpu = (server.cpu_seconds() or 0.0) - moments["server"]
    finally:
        process.stop()
        await task
    return {
        "pods": pods,
        "pods_per_s": round(pods / took, 1),
        "cpu_ms_per_pod": round(cpu * 1000 / pods, 4),
        "server_cpu_ms_per_pod": round(server_cpu * 1000 / pods, 4),
        "start_s": round(moments["start"] - created, 3),
    }


def _client_config(url: str) -> ClientConfig:
    import tempfile
    from pathlib import Path

    text = (
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: {url}}}}}]\n"
        "users: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(text, encoding="utf-8")
        return load_kubeconfig(path)
