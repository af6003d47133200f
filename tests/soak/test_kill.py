"""Real processes, killed without warning: the scheduler, and the API server that keeps its objects in a folder."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skedge.client.clientconfig import load_kubeconfig
from skedge.client.errors import ClientError
from skedge.client.rest import RestClient
from skedge.testing.builders import make_pod

PODS = "/api/v1/namespaces/default/pods"
NODES = 4
COUNT = 60


class Daemon:
    """A process that is started, killed with SIGKILL, and started again."""

    def __init__(self, *command: str, log: Path) -> None:
        self._command, self._log = command, log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *self._command, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
            )

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.returncode is None, f"it ended by itself: {self._log.read_text()[-2000:]}"
            process.send_signal(signal.SIGKILL)
            await process.wait()


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[Daemon, Daemon, RestClient]]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    kubeconfig = folder / "kubeconfig"
    server = Daemon(
        *("skedge.controlplane.local", "--port", str(port), "--nodes", str(NODES)),
        *("--data-dir", str(folder / "data"), "--kubeconfig-out", str(kubeconfig)),
        log=folder / "server.log",
    )
    scheduler = Daemon(
        *("skedge", "scheduler", "--kubeconfig", str(kubeconfig), "--leader-elect=false", "--secure-port=0"),
        log=folder / "scheduler.log",
    )
    await server.start()
    try:
        for _ in range(300):
            if kubeconfig.exists():
                break
            await asyncio.sleep(0.1)
        async with RestClient.connect(load_kubeconfig(kubeconfig), qps=-1.0) as client:
            await scheduler.start()
            yield server, scheduler, client
    finally:
        await scheduler.kill()
        await server.kill()


async def persist(call: Any) -> Any:
    """A request, made until the server is there to answer it."""
    while True:
        try:
            return await call()
        except ClientError as error:
            if getattr(error, "code", 0) in (404, 409):
                return None
            await asyncio.sleep(0.2)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.asyncio
async def test_pods_survive_kills_of_scheduler_and_server(tmp_path: Path) -> None:
    rng = random.Random(1)
    async with cluster(tmp_path) as (server, scheduler, client):
        for i in range(COUNT):
            body = make_pod(f"p{i}").req(cpu="100m", memory="64Mi").json
            for key in ("uid", "resourceVersion", "generation"):
                del body["metadata"][key]
            await persist(lambda body=body: client.create(PODS, body))
            if i % 12 == 5:
                await scheduler.kill()
                await scheduler.start()
            if i % 20 == 10:
                await server.kill()
                await asyncio.sleep(rng.random())
                await server.start()
            await asyncio.sleep(rng.random() * 0.3)
        seen: dict[str, str] = {}
        for _ in range(600):
            pods = await persist(lambda: client.list(PODS))
            for pod in pods["items"] if pods else ():
                name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
                assert seen.get(name, node) == node, f"{name} moved from {seen[name]} to {node}"
                if node:
                    seen[name] = node
            if len(seen) == COUNT:
                break
            await asyncio.sleep(0.2)
        assert len(seen) == COUNT, f"not bound: {sorted({f'p{i}' for i in range(COUNT)} - seen.keys())}"
        text = (tmp_path / "scheduler.log").read_text()
        assert "Traceback" not in text
        assert "disagree" not in text
        assert "Traceback" not in (tmp_path / "server.log").read_text()
