"""A started API server and a small client, for tests."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from skedge.clock import VirtualClock
from skedge.controlplane.server import ControlPlane

JSON = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def pod(name: str = "p", **spec: Any) -> JSON:
    """A small pod; keyword arguments go into its spec."""
    body = {"containers": [{"name": "c", "image": "img:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": body}


def node(name: str, **labels: str) -> JSON:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    meta = {"name": name, "labels": {k.replace("__", "/"): v for k, v in labels.items()}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": capacity}}


class Client:
    """Requests against one server; `send` answers with code and body."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.plane = plane
        self.session = session

    async def send(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        data = body if body is None or isinstance(body, (bytes, str, io.BytesIO)) else json.dumps(body)
        if isinstance(data, str) and len(data) > 1 << 20:
            data = io.BytesIO(data.encode())  # as the HTTP client wants long bodies
        sent = {"Content-Type": content_type, **headers}
        async with self.session.request(method, path, data=data, headers=sent) as answer:
            raw = await answer.read()
            text = answer.headers.get("Content-Type", "")
            return answer.status, json.loads(raw) if text.startswith("application/json") and raw else raw.decode()

    async def ok(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The body of an answer that must be a success."""
        code, found = await self.send(method, path, body, content_type)
        assert code < 300, found
        return found

    async def bind(self, name: str, to: str, namespace: str = "default") -> tuple[int, Any]:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": to}}
        return await self.send("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)

    async def watching(self, count: int) -> None:
        """Wait until so many watches are open."""
        for _ in range(5000):
            if len(self.plane._watches.open) == count:
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"{len(self.plane._watches.open)} watches are open, expected {count}")

    async def events(self, path: str, count: int) -> list[JSON]:
        """The first events of a watch."""
        found: list[JSON] = []
        async with self.session.get(path) as answer:
            assert answer.status == 200, await answer.text()
            while len(found) < count:
                line = await answer.content.readline()
                if not line:
                    break
                found.append(json.loads(line))
        return found


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Client]:
    """A server with a virtual clock and a fixed seed."""
    options.setdefault("clock", VirtualClock())
    options.setdefault("rng", random.Random(7))
    plane = ControlPlane(**options)
    await plane.start()
    try:
        async with aiohttp.ClientSession(plane.url) as session:
            yield Client(plane, session)
    finally:
        await plane.stop()


PODS = "/api/v1/namespaces/default/pods"
