"""The null binder: what the transport alone can do. aiohttp, 48 connections, one binding and one event a pod, and no
decoding, watching or deciding. Every end-to-end figure stands beside one of these from the same run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec

from bench.server import PodId

CONNECTIONS: Final = 48
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


async def bind_all(url: str, pods: Sequence[PodId], nodes: Sequence[str], events: bool = True) -> tuple[float, float]:
    """Binds pods in turn to nodes; (pods/s, CPU ms a pod). Without `events`: bindings only."""
    work = iter(enumerate(pods))
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(url, connector=connector, headers=_JSON) as session:

        async def post(path: str, body: object) -> None:
            async with session.post(path, data=msgspec.json.encode(body)) as response:
                if response.status >= 300:
                    raise RuntimeError(f"{path}: {response.status} {await response.text()}")
                await response.read()

        async def worker() -> None:
            for i, pod in work:
                node = nodes[i % len(nodes)]
                meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
                binding = {"kind": "Binding", "apiVersion": "v1", "metadata": meta}
                target = {"target": {"kind": "Node", "name": node}}
                await post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding", binding | target)
                if events:
                    await post(f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events", _event(pod, node))

        cpu, start = time.process_time(), time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
    return len(pods) / took, cpu * 1000 / len(pods)


def _event(pod: PodId, node: str) -> dict[str, object]:
    return {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"{pod.name}.{time.time_ns():x}", "namespace": pod.namespace},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
        "reportingController": "null-binder",
        "reportingInstance": "null-binder-0",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "apiVersion": "v1",
            "resourceVersion": pod.resource_version,
        },
        "note": f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
        "type": "Normal",
    }
