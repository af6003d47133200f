"""Whole scheduler processes on an API server in memory, hours of virtual time in moments."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from skedge.app.process import SchedulerProcess
from skedge.client.clientconfig import ClientConfig
from skedge.client.http1 import Response
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.controlplane.errors import ApiError
from skedge.testing.builders import NodeBuilder, PodBuilder
from skedge.testing.memory_server import HOST, MemoryServer, MemoryTransport, failure
from skedge.testing.virtual_loop import LoopClock, VirtualLoop, run

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Wire(MemoryTransport):
    """A process's way to the server. `requests` are what it sent: method and path; `answers` the last to each."""

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(server)
        self.requests: list[tuple[str, str]] = []
        self.answers: dict[tuple[str, str], Response] = {}
        self.refusal: Callable[[str, str], Exception | None] = lambda method, path: None
        self.answer: Callable[[str, str], ApiError | None] = lambda method, path: None
        self.delay: Callable[[str, str], float] = lambda method, path: 0.0

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        path = target.partition("?")[0]
        self.requests.append((method, path))
        await asyncio.sleep(self.delay(method, path))
        refusal, answer = self.refusal(method, path), self.answer(method, path)
        if refusal is not None:
            raise refusal
        if answer is None:
            found = await super().request(method, target, body, content_type, timeout)
        else:
            found = failure(answer)
        self.answers[method, path] = found
        return found

    def sent(self, method: str, ending: str) -> list[str]:
        """Paths of the requests of a method that end so."""
        return [path for sent, path in self.requests if sent == method and path.endswith(ending)]


class World:
    """A server, and what a person does there."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.server = MemoryServer(LoopClock(loop), random.Random(0))

    @asynccontextmanager
    async def scheduler(self, text: str = "", **options: Any) -> AsyncIterator[tuple[SchedulerProcess, Wire]]:
        """A process with this configuration; it has ended when the block has. Its clock is its own."""
        wire = Wire(self.server)
        process = SchedulerProcess(
            decode(HEAD + text, args_types=PLUGIN_ARGS),
            ClientConfig(f"http://{HOST}"),
            transport=lambda: wire,
            clock=LoopClock(self.loop),
            rng=random.Random(0),
            **options,
        )
        task = asyncio.create_task(process.run(), name="process")
        try:
            yield process, wire
        finally:
            process.stop()
            await task

    def add_node(self, node: NodeBuilder) -> None:
        self.server.do("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node.json})

    def add_pod(self, pod: PodBuilder) -> None:
        """The server sets what a client does not say, and taints its nodes until a kubelet reports."""
        meta = {key: value for key, value in pod.json["metadata"].items() if key in ("name", "labels")}
        containers = [{"image": "i", **each} for each in pod.json["spec"]["containers"]]
        spec = {**pod.json["spec"], "containers": containers, "tolerations": [{"operator": "Exists"}]}
        self.server.do("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def node_of(self, name: str) -> str:
        return str(self.server.do("GET", f"{PODS}/{name}")["spec"].get("nodeName", ""))

    def message(self, name: str) -> str:
        conditions = self.server.do("GET", f"{PODS}/{name}")["status"].get("conditions", [])
        return "".join(each["message"] for each in conditions if each["type"] == "PodScheduled")

    def holder(self, lease: str = "kube-scheduler") -> str:
        return str(self.server.do("GET", f"{LEASES}/{lease}")["spec"].get("holderIdentity", ""))


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Lets a story happen; nothing may be left running in the end."""
    loop = VirtualLoop()
    _, left = run(loop, story(World(loop)))
    assert left == []
