"""A cluster for tests: real API server and controllers over HTTP, a stand-in for the scheduler, time that flies."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from skedge.api.core import Toleration
from skedge.api.taints import find_untolerated
from skedge.client.errors import ApiError
from skedge.client.informer import InformerFactory
from skedge.client.rest import RestClient
from skedge.clock import VirtualClock
from skedge.controlplane.controllers.kinds import NODES, POD, PODS
from skedge.controlplane.controllers.objects import Node, Pod
from skedge.controlplane.local import LocalCluster
from skedge.controlplane.server import ControlPlane

JSON = dict[str, Any]
STEP = 0.25


class Lab:
    """What a test holds: a client and the clock. `until` lets time fly until something is true."""

    def __init__(self, client: RestClient, clock: VirtualClock, url: str, cache: str) -> None:
        self.client, self.clock, self.url, self.cache = client, clock, url, cache

    async def until(self, condition: Callable[[], Awaitable[Any]], *, within: float = 60.0, step: float = STEP) -> Any:
        """What `condition` returns once that is true; fails after `within` virtual seconds."""
        end = self.clock.monotonic() + within
        while True:
            found = await condition()
            if found:
                return found
            assert self.clock.monotonic() < end, f"not within {within} s: {condition}"
            await self.let_pass(step, step)

    async def let_pass(self, seconds: float, step: float = STEP) -> None:
        """Let time pass, and everybody work meanwhile."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.advance(min(step, end - self.clock.monotonic()))
            for _ in range(10):
                await asyncio.sleep(0.001)

    async def pods(self, selector: str = "", namespace: str = "default") -> list[JSON]:
        found = await self.client.list(POD.path(namespace), label_selector=selector)
        items: list[JSON] = found["items"]
        return items

    async def running(self, count: int, selector: str = "") -> bool:
        """Whether there are exactly `count` pods, all Running and none going."""
        pods = await self.pods(selector)
        return len(pods) == count and all(
            pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods
        )

    async def kubectl(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """What a kubectl command prints; time passes while it runs."""
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("kubectl")),
            f"--server={self.url}",
            f"--cache-dir={self.cache}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": self.cache, "PATH": ""},
        )
        answer = asyncio.create_task(process.communicate(stdin.encode()))
        while not answer.done():
            await self.let_pass(STEP)
        text = (await answer)[0].decode()
        assert process.returncode == code, text
        return text

    async def gone(self, path: str) -> bool:
        try:
            await self.client.get(path)
        except ApiError as error:
            return error.code == 404
        return False


class RoundRobin:
    """Binds every pod without a node to the next node without NoSchedule taints that its affinity allows."""

    def __init__(self, client: RestClient, factory: InformerFactory) -> None:
        self._client = client
        self._pods, self._nodes = factory.informer(PODS), factory.informer(NODES)
        self._turn = itertools.count()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._pods.add_handler(on_add=lambda pod, _: self._add(pod), on_update=lambda _, pod: self._add(pod))
        self._nodes.add_handler(on_update=lambda *_: self._all())

    def _all(self) -> None:
        for pod in self._pods.store:
            self._add(pod)

    def _add(self, pod: Pod) -> None:
        if not pod.spec.node_name and pod.metadata.deletion_timestamp is None:
            self._queue.put_nowait(pod.key)

    async def run(self) -> None:
        while True:
            pod = self._pods.store.get(await self._queue.get())
            if pod is None or pod.spec.node_name:
                continue
            meta = pod.metadata
            whole = await self._get(meta.namespace, meta.name)
            nodes = [node for node in self._nodes.store if whole is not None and _fits(whole, node)]
            if whole is None or not nodes:
                continue
            node = nodes[next(self._turn) % len(nodes)].metadata.name
            body = {"metadata": {"name": meta.name, "uid": meta.uid}, "target": {"kind": "Node", "name": node}}
            try:
                await self._client.request("POST", POD.path(meta.namespace, meta.name, "binding"), body=body)
            except ApiError:
                pass

    async def _get(self, namespace: str, name: str) -> JSON | None:
        try:
            found: JSON = await self._client.get(POD.path(namespace, name))
        except ApiError:
            return None
        return None if found["spec"].get("schedulingGates") else found


def _fits(pod: JSON, node: Node) -> bool:
    given = msgspec.convert(pod["spec"].get("tolerations") or [], tuple[Toleration, ...])
    if find_untolerated(node.spec.taints, given) is not None:
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    names = [field["values"] for term in required["nodeSelectorTerms"] for field in term.get("matchFields") or ()]
    return not names or any(node.metadata.name in each for each in names)


@asynccontextmanager
async def lab(
    nodes: str = "3",
    *,
    schedule: bool = True,
    data_dir: Path | None = None,
    clock: VirtualClock | None = None,
    **options: Any,
) -> AsyncIterator[Lab]:
    """A running cluster in virtual time."""
    clock, rng = clock or VirtualClock(), random.Random(7)
    plane = ControlPlane(data_dir=data_dir, clock=clock, rng=rng, bookmark_interval=1e9)
    async with (
        LocalCluster(nodes=nodes, plane=plane, clock=clock, rng=rng, **options) as cluster,
        RestClient.connect(cluster.config, qps=-1, clock=clock, rng=rng) as client,
        InformerFactory(client) as factory,
    ):
        binder = RoundRobin(client, factory)
        factory.start()
        task = asyncio.create_task(binder.run()) if schedule else None
        try:
            with tempfile.TemporaryDirectory() as cache:
                yield Lab(client, clock, cluster.url, cache)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def workload(kind: str, name: str, replicas: int | None = None, **spec: Any) -> JSON:
    """A workload of apps/v1 with one container, selected by `app: NAME`."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    body: JSON = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    if replicas is not None:
        body["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}
