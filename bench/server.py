"""An API server to measure against, and a client that makes and deletes objects in it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from bench.objects import Template
from bench.operations import Batch
from skedge.client.clientconfig import ClientConfig, load_kubeconfig

CREATORS: Final = 32
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}
_MERGE: Final = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}
_STRATEGIC: Final = {**_MERGE, "Content-Type": "application/strategic-merge-patch+json"}
_READY: Final = b'{"spec":{"taints":null}}'
_GONE_AT_ONCE: Final = {"gracePeriodSeconds": "0"}


class Server:
    """The embedded API server in a process of its own, or one that runs already (`url`)."""

    def __init__(self, url: str | None = None) -> None:
        self._given = url
        self._process: subprocess.Popen[str] | None = None
        self.url = url or ""

    def __enter__(self) -> Server:
        if self._given is None:
            command = [sys.executable, "-m", "skedge.controlplane", "--port", "0"]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            self.url = next((word for word in line.split() if word.startswith("http")), "")
            if not self.url:
                raise RuntimeError(f"the embedded API server did not start: {line.strip()!r}")
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def cpu_seconds(self) -> float:
        """Processor time of our own server so far; 0.0 for a server of somebody else."""
        if self._process is None:
            return 0.0
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def client_config(self) -> ClientConfig:
        """Credentials for a scheduler: none."""
        with tempfile.TemporaryDirectory() as folder:
            return load_kubeconfig(self.write_kubeconfig(Path(folder)))

    def write_kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig for this server; its path."""
        path = folder / "kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: {self.url}}}}}]\n"
            "users: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n",
            encoding="utf-8",
        )
        return path


class PodId(NamedTuple):
    namespace: str
    name: str
    uid: str
    resource_version: str


class Objects:
    """Makes and deletes objects; one session, to be entered."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> Objects:
        connector = aiohttp.TCPConnector(limit=CREATORS)
        self._session = aiohttp.ClientSession(self._url, connector=connector, headers=_JSON)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def create(self, batch: Batch) -> list[PodId]:
        """Creates a batch, many at a time; who its pods are."""
        template, numbers = batch.template, iter(batch.numbers())
        path = template.where.path(template.namespace)
        made: list[PodId] = []

        async def worker() -> None:
            for i in numbers:
                meta = (await self._send("POST", path, template.body(i)))["metadata"]
                if template.kind == "Pod":
                    made.append(PodId(template.namespace, meta["name"], meta["uid"], meta["resourceVersion"]))
                elif template.kind == "Node" and b'"taints"' not in template.body(i):
                    # admission taints new nodes until a kubelet says that they are ready
                    await self._send("PATCH", template.where.path("", template.name(i)), _READY, headers=_MERGE)

        await asyncio.gather(*(worker() for _ in range(min(CREATORS, batch.count))))
        return made

    async def delete(self, batch: Batch, i: int) -> None:
        """Deletes an object; one that is gone already is no matter."""
        template = batch.template
        path = template.where.path(template.namespace, template.name(i))
        async with self._session.delete(path, params=_GONE_AT_ONCE) as response:
            await response.read()

    async def node_of(self, template: Template, i: int) -> str:
        """The node that pod `i` has, or ""."""
        pod = await self._send("GET", template.where.path(template.namespace, template.name(i)), None)
        name: str = pod["spec"].get("nodeName", "")
        return name

    async def heartbeat(self, name: str, time: str) -> None:
        """What a kubelet says of a node every ten seconds."""
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": time}
        body = msgspec.json.encode({"status": {"conditions": [condition]}})
        await self._send("PATCH", f"/api/v1/nodes/{name}/status", body, headers=_STRATEGIC)

    async def delete_all(self, batch: Batch) -> None:
        """Deletes a batch, many at a time."""
        numbers = iter(batch.numbers())

        async def worker() -> None:
            for i in numbers:
                await self.delete(batch, i)

        await asyncio.gather(*(worker() for _ in range(CREATORS)))

    async def _send(self, method: str, path: str, body: bytes | None, **more: Any) -> Any:
        async with self._session.request(method, path, data=body, **more) as response:
            text = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {text.decode(errors='replace')}")
            return msgspec.json.decode(text)
