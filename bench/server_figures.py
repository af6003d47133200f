"""Figures of the embedded API server alone: `python -m bench.server_figures [bindings|crowd|deployment] [--scale F]`.

    bindings    bindings a second while watchers follow the pods
    crowd       memory of 5,000 nodes and 150,000 pods; what a paged list of the pods costs those who write meanwhile
    deployment  seconds until a Deployment's pods all run, with scheduler, controllers and fake nodes

Each prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.figures import percentile, percentiles
from bench.server import Server

PODS: Final = "/api/v1/namespaces/default/pods"
CONNECTIONS: Final = 16


class Connection:
    """One keep-alive connection: far cheaper than a general HTTP client, whose cost would be measured too."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of an answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        head_bytes = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head_bytes[9:12])
        lowered = head_bytes.lower()
        if b"transfer-encoding: chunked" in lowered:
            return status, b"".join([chunk async for chunk in self._chunks()])
        length = int(lowered.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return status, await self._reader.readexactly(length)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readline(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()


@asynccontextmanager
async def connected(url: str, count: int = 1) -> AsyncIterator[list[Connection]]:
    """Open connections to a server."""
    host, _, port = url.removeprefix("http://").partition(":")
    streams = [await asyncio.open_connection(host, int(port), limit=1 << 26) for _ in range(count)]
    try:
        yield [Connection(*pair) for pair in streams]
    finally:
        for _, writer in streams:
            writer.close()


async def send_all(connections: list[Connection], requests: Iterator[tuple[str, str, bytes]]) -> list[float]:
    """Send requests over all connections, each when one is free; the seconds each took. Raises RuntimeError."""
    took: list[float] = []

    async def work(connection: Connection) -> None:
        for method, path, body in requests:
            start = time.perf_counter()
            status, answer = await connection.send(method, path, body)
            took.append(time.perf_counter() - start)
            if status >= 300:
                raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")

    await asyncio.gather(*map(work, connections))
    return took


def pod(name: str, size: int = 0) -> bytes:
    """A pod like those of a real cluster; annotations bring it to `size` bytes as stored."""
    environment = [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(12)]
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    container: dict[str, Any] = {"name": "app", "image": "registry.example/app:1", "resources": resources}
    if size:
        container |= {
            "env": environment,
            "ports": [{"containerPort": 8080, "name": "http"}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
        }
    meta: dict[str, Any] = {"name": name, "labels": {"app": f"app-{hash(name) % 500}", "tier": "back"}}
    spec: dict[str, Any] = {"containers": [container]}
    if size:
        spec["volumes"] = [{"name": "config", "configMap": {"name": "config"}}]
        meta["annotations"] = {"example.com/notes": "x" * max(0, size - 3_870)}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}).encode()


def node(name: str, images: int = 50) -> bytes:
    """A node of about 12 KB: kubelets report up to 50 images."""
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    listed = [
        {
            "names": [
                f"registry.example/some-team/image-{i:04}@sha256:{i:064x}",
                f"registry.example/some-team/image-{i:04}:v1.2.3",
            ]
        }
        for i in range(images)
    ]
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{hash(name) % 3}"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "images": [{**each, "sizeBytes": 10**8} for each in listed],
    }
    meta = {"name": name, "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}).encode()


def binding(name: str, to: str) -> bytes:
    target = {"apiVersion": "v1", "kind": "Node", "name": to}
    meta = {"name": name, "namespace": "default"}
    return json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}).encode()


# --- watchers, in a process of their own ----------------------------------------------------------------------------


async def watch(url: str, count: int, wanted: int) -> None:
    """Follow all pods `count` times; says `open`, and `done` when each has seen `wanted` events."""
    host, _, port = url.removeprefix("http://").partition(":")

    async def follow(revision: str) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 26)
        writer.write(f"GET /api/v1/pods?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        opened.set()
        seen, tail = 0, b""
        while seen < wanted:
            data = tail + await reader.read(1 << 20)
            if not data:
                raise RuntimeError(f"a watch ended after {seen} events")
            seen += data.count(b'{"type":"MODIFIED"')
            tail = data[-17:] if not data.endswith(b"\n") else b""
            seen -= tail.count(b'{"type":"MODIFIED"')
        writer.close()

    async with connected(url) as (connection,):
        _, answer = await connection.send("GET", f"{PODS}?limit=1")
    revision = json.loads(answer)["metadata"]["resourceVersion"]
    opened = asyncio.Event()
    tasks = [asyncio.ensure_future(follow(revision)) for _ in range(count)]
    await opened.wait()
    await asyncio.sleep(0.3)
    print("open", flush=True)
    await asyncio.gather(*tasks)
    print("done", flush=True)


async def bindings(scale: float, size: int = 0, watchers: int = 10) -> dict[str, Any]:
    """Bind pods as fast as the server takes it, while watchers follow."""
    count = int(20_000 * scale)
    names = [f"pod-{i:06}" for i in range(count)]
    with Server() as server:
        async with connected(server.url, CONNECTIONS) as connections:
            await send_all(connections, ((("POST", PODS, pod(name, size))) for name in names))
            command = [sys.executable, "-m", "bench.server_figures", "watch", server.url, str(watchers), str(count)]
            follower = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert follower.stdout is not None
            await follower.stdout.readline()
            numbers = itertools.count()
            requests = (
                ("POST", f"{PODS}/{name}/binding", binding(name, f"node-{next(numbers) % 500}")) for name in names
            )
            cpu, start = server.cpu_seconds(), time.perf_counter()
            took = await send_all(connections, requests)
            wall = time.perf_counter() - start
            cpu = server.cpu_seconds() - cpu
            seen = await follower.stdout.readline()
            behind = time.perf_counter() - start - wall
            await follower.wait()
    if seen.strip() != b"done":
        raise RuntimeError("a watcher missed something")
    return {
        "figure": "bindings",
        "pods": count,
        "watchers": watchers,
        "bindings_per_s": round(count / wall),
        "server_cpu_us_per_binding": round(cpu / count * 1e6),
        "bindings_per_s_of_a_whole_cpu": round(count / cpu),
        "watchers_behind_s": round(behind, 2),
        **percentiles(took),
    }


# --- lists, in a process of their own -------------------------------------------------------------------------------


async def list_pods(url: str, limit: int) -> dict[str, float]:
    """Read all pods in pages, or at once."""
    first = f"/api/v1/pods?limit={limit}" if limit else "/api/v1/pods"
    path, pages, size, start = first, 0, 0, time.perf_counter()
    async with connected(url) as (connection,):
        while path:
            _, answer = await connection.send("GET", path)
            pages, size = pages + 1, size + len(answer)
            token = answer[:2_000].partition(b'"continue":"')[2].partition(b'"')[0].decode()
            path = f"{first}&continue={token}" if token else ""
    return {"pages": pages, "mib": round(size / 2**20), "seconds": round(time.perf_counter() - start, 2)}


async def read_all(url: str, limit: int) -> dict[str, float]:
    """`list_pods` in a process of its own, so that only the server is shared with whoever writes meanwhile."""
    command = [sys.executable, "-m", "bench.server_figures", "list", url, str(limit)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    found: dict[str, float] = json.loads((await process.communicate())[0])
    return found


# --- many objects ---------------------------------------------------------------------------------------------------


def rss_mib(pid: int) -> dict[str, float]:
    """Resident memory of a process, now and at most."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return {"rss_mib": round(found["VmRSS"]), "peak_rss_mib": round(found["VmHWM"])}


async def crowd(scale: float) -> dict[str, Any]:
    """5,000 nodes of 12 KB and 150,000 pods of 6.6 KB: memory; a paged list while somebody writes every 5 ms."""
    nodes, pods = int(5_000 * scale), int(150_000 * scale)
    with Server() as server:
        assert server._process is not None
        pid = server._process.pid
        async with connected(server.url, CONNECTIONS + 1) as (writer, *connections):
            await send_all(connections, (("POST", "/api/v1/nodes", node(f"node-{i:05}")) for i in range(nodes)))
            start, cpu = time.perf_counter(), server.cpu_seconds()
            await send_all(connections, (("POST", PODS, pod(f"pod-{i:06}", 6_600)) for i in range(pods)))
            created = pods / (time.perf_counter() - start)
            cpu = server.cpu_seconds() - cpu
            memory = rss_mib(pid)
            _, sample = await writer.send("GET", f"{PODS}/pod-000000")
            _, node_sample = await writer.send("GET", "/api/v1/nodes/node-00000")
            waits: dict[str, list[float]] = {"idle": [], "paged": [], "whole": []}
            phase, stop = "idle", False

            async def write() -> None:
                for i in itertools.count():
                    if stop:
                        return
                    name = f"pod-{i % pods:06}"
                    start = time.perf_counter()
                    await writer.send("POST", f"{PODS}/{name}/binding", binding(name, "node-00000"))
                    waits[phase].append(time.perf_counter() - start)
                    await asyncio.sleep(0.005)

            task = asyncio.ensure_future(write())
            await asyncio.sleep(3)
            lists: dict[str, dict[str, float]] = {}
            for phase, limit in (("paged", 500), ("whole", 0)):
                lists[phase] = await read_all(server.url, limit)
            stop = True
            await task
        after = rss_mib(pid)
    return {
        "figure": "crowd",
        "nodes": nodes,
        "pods": pods,
        "pod_bytes": len(sample),
        "node_bytes": len(node_sample),
        "creations_per_s": round(created),
        "server_cpu_us_per_creation": round(cpu / pods * 1e6),
        **memory,
        "peak_rss_mib_after_lists": after["peak_rss_mib"],
        "lists": lists,
        "writer_ms": {
            name: {"p50": percentile(each, 50), "p99": percentile(each, 99), "max": round(max(each) * 1e3, 1)}
            for name, each in waits.items()
        },
    }


# --- everything together --------------------------------------------------------------------------------------------


async def deployment(scale: float, nodes: int = 500) -> dict[str, Any]:
    """A Deployment of 5,000 replicas on 500 fake nodes, the scheduler in a process of its own as `skedge up` has it."""
    replicas = int(5_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "skedge", "up", "--nodes", str(nodes), "--kubeconfig-out", f"{folder}/k"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            url = (await process.stdout.readline()).decode().split()[-1]
            while b"Ctrl-C" not in await process.stdout.readline():
                pass
            template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
            body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
            path = "/apis/apps/v1/namespaces/default/deployments"
            async with connected(url) as (connection,):
                start, cpu = time.perf_counter(), cpu_seconds(process.pid)
                await connection.send("POST", path, json.dumps(body).encode())
                ready = 0
                while ready < replicas:
                    await asyncio.sleep(0.25)
                    status = json.loads((await connection.send("GET", f"{path}/web"))[1]).get("status") or {}
                    ready = status.get("readyReplicas", 0)
                wall = time.perf_counter() - start
                used = {name: round(each - cpu[name], 1) for name, each in cpu_seconds(process.pid).items()}
                start = time.perf_counter()
                await connection.send("DELETE", f"{path}/web")
                left = True
                while left:
                    await asyncio.sleep(0.25)
                    left = bool(json.loads((await connection.send("GET", f"{PODS}?limit=1"))[1])["items"])
                gone = time.perf_counter() - start
        finally:
            process.terminate()
            await process.wait()
    return {
        "figure": "deployment",
        "replicas": replicas,
        "nodes": nodes,
        "seconds": round(wall, 1),
        "pods_per_s": round(replicas / wall),
        "cpu_s": used,
        "cpu_ms_per_pod": round(sum(used.values()) / replicas * 1e3, 2),
        "deletion_s": round(gone, 1),
    }


def cpu_seconds(pid: int) -> dict[str, float]:
    """Processor time of the scheduler (`skedge up`) and of its child with everything else."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    found = {}
    for name, each in (("scheduler", pid), ("control plane", int(children[0]))):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        found[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def main() -> int:
    if sys.argv[1:2] == ["watch"]:
        asyncio.run(watch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return 0
    if sys.argv[1:2] == ["list"]:
        print(json.dumps(asyncio.run(list_pods(sys.argv[2], int(sys.argv[3])))))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.server_figures")
    parser.add_argument("figures", nargs="*", choices=["bindings", "crowd", "deployment", []], default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="part of the objects to make (default: 1)")
    parser.add_argument("--pod-bytes", type=int, default=0, help="size of the pods that are bound (default: small)")
    arguments = parser.parse_args()
    runs = {
        "bindings": lambda: bindings(arguments.scale, arguments.pod_bytes),
        "crowd": lambda: crowd(arguments.scale),
        "deployment": lambda: deployment(arguments.scale),
    }
    for name in arguments.figures or runs:
        print(json.dumps(asyncio.run(runs[name]())), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
