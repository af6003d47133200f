"""The null binder: what the transport alone can do. aiohttp, 48 connections, one binding and one event a pod, and no
decoding, watching or deciding. Every end-to-end figure stands beside one of these from the same run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import aiohttp
import msgspec

CONNECTIONS = 48
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


async def bind_all(url: str, pods: Sequence[dict[str, str]], nodes: Sequence[str]) -> tuple[float, float]:
    """Binds pods ({name, namespace, uid, resourceVersion}) round-robin to nodes; (pods/s, CPU ms a pod)."""
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
                namespace, name, node = pod["namespace"], pod["name"], nodes[i % len(nodes)]
                meta = {"name": name, "namespace": namespace, "uid": pod["uid"]}
                binding = {"kind": "Binding", "apiVersion": "v1", "metadata": meta}
                target = {"target": {"kind": "Node", "name": node}}
                await post(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding | target)
                await post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", _event(pod, node))

        cpu, start = time.process_time(), time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
    return len(pods) / took, cpu * 1000 / len(pods)


def _event(pod: dict[str, str], node: str) -> dict[str, object]:
    namespace, name = pod["namespace"], pod["name"]
    return {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"{name}.{time.time_ns():x}", "namespace": namespace},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
        "reportingController": "null-binder",
        "reportingInstance": "null-binder-0",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
            "uid": pod["uid"],
            "apiVersion": "v1",
            "resourceVersion": pod["resourceVersion"],
        },
        "note": f"Successfully assigned {namespace}/{name} to {node}",
        "type": "Normal",
    }
