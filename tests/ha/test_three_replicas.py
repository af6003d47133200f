"""Three schedulers on one API server, killed, stopped and cut off: one writes at a time, nothing is lost."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.command import Command, kubeconfig, scheduler
from ha.wire import Cut, Entry, Wire

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

LEASE, DEADLINE, RETRY = 2.0, 1.5, 0.5
SLACK = 2.0
"""For a busy machine; what a process needs to notice and to be heard."""
FLAGS = (
    f"--leader-elect-lease-duration={LEASE}s",
    f"--leader-elect-renew-deadline={DEADLINE}s",
    f"--leader-elect-retry-period={RETRY}s",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
)
PODS = "/api/v1/namespaces/default/pods"
NODES, PER_NODE = 40, 8
NUMBER = 300


@asynccontextmanager
async def api_server() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "skedge.controlplane", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().split()[1]
    finally:
        process.terminate()
        await process.wait()


class Replica:
    """A scheduler behind a wire of its own; started anew whenever it has ended, as a kubelet would."""

    def __init__(self, number: int, wire: Wire, config: str) -> None:
        self.number, self.wire = number, wire
        self._config = config
        self._stack = AsyncExitStack()
        self.command: Command | None = None
        self.endings: list[tuple[int, str]] = []

    async def start(self) -> None:
        self.command = await self._stack.enter_async_context(scheduler(f"--kubeconfig={self._config}", *FLAGS))

    async def look_after(self) -> None:
        """Starts it again if it has ended, and waits until it runs for the lease."""
        assert self.command is not None
        if self.command.code is not None:
            self.endings.append((self.command.code, self.command.text))
            await self.close()
            await self.start()
        await self.command.says("Attempting to acquire leader lease", 60)

    async def close(self) -> None:
        await self._stack.aclose()


def node(i: int) -> dict[str, Any]:
    allocatable = {"cpu": str(PER_NODE), "memory": "64Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": allocatable}}


def pod(i: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": spec}


def acquisitions(log: list[Entry]) -> list[tuple[float, int]]:
    """When the lease got another holder, and which replica; the latest moment at which that can have been."""
    found: list[tuple[float, int]] = []
    for entry in sorted((e for e in log if e.answered is not None), key=lambda e: e.answered or 0.0):
        if "/leases" in entry.path and entry.method in ("PUT", "POST") and entry.status in (200, 201):
            holder = entry.replica if entry.body["spec"]["holderIdentity"] else -1
            if not found or found[-1][1] != holder:
                assert entry.answered is not None
                found.append((entry.answered, holder))
    return found


def changes(log: list[Entry]) -> list[Entry]:
    """What a leader writes: neither leases nor the events about them."""
    return [
        e
        for e in log
        if e.method in ("POST", "PUT", "PATCH", "DELETE") and "/leases" not in e.path and "kube-system" not in e.path
    ]


def former_leaders_writes(log: list[Entry]) -> list[Entry]:
    """Changes that reached the network when the lease was somebody else's already."""
    holders = acquisitions(log)
    found = []
    for entry in changes(log):
        before = [replica for moment, replica in holders if moment <= entry.came]
        if not before or before[-1] not in (entry.replica, -1):
            found.append(entry)
    return found


def gaps(log: list[Entry]) -> list[float]:
    """Seconds from the last renewal of each leader to the next one's start."""
    held = [
        e
        for e in log
        if "/leases" in e.path and e.method in ("PUT", "POST") and e.status in (200, 201) and e.answered is not None
    ]
    held.sort(key=lambda e: e.answered or 0.0)
    return [
        (other.answered or 0.0) - (one.answered or 0.0) for one, other in pairwise(held) if one.replica != other.replica
    ]


async def disturb(replica: Replica, how: str, seconds: float) -> None:
    """Something happens to a replica, and is over after so long."""
    assert replica.command is not None
    match how:
        case "kill":
            replica.command.send(signal.SIGKILL)
            await asyncio.sleep(seconds)
        case "stop":
            replica.command.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            replica.command.send(signal.SIGCONT)
        case "end":
            replica.command.send(signal.SIGTERM)
            await asyncio.sleep(seconds)
        case _:
            replica.wire.cut(Cut(how))
            await asyncio.sleep(seconds)
            replica.wire.cut(Cut.NOT)
    await asyncio.sleep(0.5)


HOW = ("kill", "stop", "stop", "refuse", "silent", "end")


async def feed(session: aiohttp.ClientSession, rng: random.Random, seconds: float) -> None:
    """Pods in bursts, so that every disturbance finds work under way."""
    made = 0
    while made < NUMBER:
        burst = min(rng.randint(1, 15), NUMBER - made)
        for i in range(made, made + burst):
            async with session.post(PODS, json=pod(i)) as answer:
                assert answer.status == 201
        made += burst
        await asyncio.sleep(rng.random() * 2 * seconds * 8 / NUMBER)


async def placed(session: aiohttp.ClientSession) -> dict[str, str]:
    """Pod -> node, once all have one."""
    async with asyncio.timeout(60):
        while True:
            async with session.get(PODS) as answer:
                items = (await answer.json())["items"]
            nodes = {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in items}
            if all(nodes.values()):
                return nodes
            await asyncio.sleep(0.2)


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", [1, 2])
async def test_one_leads_and_nothing_is_lost(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    log: list[Entry] = []
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(api_server())
        session = await stack.enter_async_context(aiohttp.ClientSession(url))
        for i in range(NODES):
            async with session.post("/api/v1/nodes", json=node(i)) as answer:
                assert answer.status == 201
        replicas = []
        for i in range(3):
            wire = await stack.enter_async_context(Wire(i, url, log))
            replica = Replica(i, wire, kubeconfig(tmp_path, wire.url, name=f"replica{i}"))
            stack.push_async_callback(replica.close)
            await replica.start()
            replicas.append(replica)
        for replica in replicas:
            await replica.look_after()
        feeding = asyncio.create_task(feed(session, rng, 40.0))
        until = time.monotonic() + 45.0
        while time.monotonic() < until or len(acquisitions(log)) <= 4:
            leader = acquisitions(log)[-1][1]
            victim = replicas[leader if rng.random() < 0.75 else rng.randrange(3)]
            await disturb(victim, rng.choice(HOW), rng.uniform(0.3, 5.0))
            for replica in replicas:
                await replica.look_after()
        await feeding
        nodes = await placed(session)
        texts = [text for replica in replicas for _, text in replica.endings]
        codes = [code for replica in replicas for code, _ in replica.endings]
    assert len(nodes) == NUMBER
    assert max(Counter(nodes.values()).values()) <= PER_NODE, "overcommitted"
    bound = Counter(e.path for e in log if e.path.endswith("/binding") and e.status == 201)
    assert len(bound) == NUMBER
    assert set(bound.values()) == {1}, "bound twice"
    assert former_leaders_writes(log) == []
    assert max(gaps(log)) <= LEASE + 2.2 * RETRY + SLACK
    assert set(codes) <= {0, 1, -signal.SIGKILL}
    assert not any("Traceback" in text for text in texts)
