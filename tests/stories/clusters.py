"""Clusters for stories: the embedded control plane, and etcd with kube-apiserver where `KUBEBUILDER_ASSETS` names them.

Both with our controllers, fake nodes and `skedge scheduler`; what a story gets is a kubeconfig.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.command import Command, scheduler
from e2e.servers import free_port
from skedge.app import local
from skedge.client.clientconfig import load_kubeconfig
from skedge.controlplane.local import run_controllers
from skedge.controlplane.nodes.inventory import parse_nodes
from skedge.controlplane.tls import Authority

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
BACKENDS = ["embedded", "kube-apiserver"] if ASSETS else ["embedded"]
FLAGS = ("--bind-address=127.0.0.1", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000")


@asynccontextmanager
async def cluster(backend: str, nodes: int, folder: Path) -> AsyncIterator[tuple[Path, Command]]:
    """A cluster with this many nodes: the path of an administrator's kubeconfig, and the scheduler that runs there."""
    async with AsyncExitStack() as stack:
        if backend == "embedded":
            path = (await stack.enter_async_context(local.control_plane(nodes=str(nodes)))).kubeconfig
        else:
            path = await stack.enter_async_context(_real(folder))
            await stack.enter_async_context(_controllers(path, nodes))
        command = await stack.enter_async_context(scheduler(f"--kubeconfig={path}", *FLAGS))
        await command.says("Successfully acquired lease")
        yield path, command


@asynccontextmanager
async def _controllers(path: Path, nodes: int) -> AsyncIterator[None]:
    started = asyncio.Event()
    config = load_kubeconfig(path)
    task = asyncio.create_task(
        run_controllers(config, nodes=parse_nodes(str(nodes)), started=started.set), name="controllers"
    )
    waiting = asyncio.create_task(started.wait(), name="controllers start")
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert started.is_set(), "the controllers did not start"
        yield
    finally:
        for each in (task, waiting):
            each.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)


@asynccontextmanager
async def _real(folder: Path) -> AsyncIterator[Path]:
    """etcd and kube-apiserver with certificates of our own; the path of an administrator's kubeconfig."""
    authority = Authority(folder / "pki", time.time())
    serving = authority.serving(["127.0.0.1", "localhost"])
    certificate, key = authority.client("admin", ["system:masters"])
    account_key = folder / "pki" / "accounts.key"
    account_key.write_bytes(
        rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    client, peer, port = free_port(), free_port(), free_port()
    etcd = [
        f"{ASSETS}/etcd",
        f"--data-dir={folder}/etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
    ]
    apiserver = [
        f"{ASSETS}/kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{client}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority.ca_cert}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={account_key}",
        f"--service-account-signing-key-file={account_key}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]
    url = f"https://127.0.0.1:{port}"
    path = folder / "admin.kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": str(authority.ca_cert)}}],
        "users": [{"name": "u", "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    context = ssl.create_default_context(cafile=authority.ca_cert)
    context.load_cert_chain(certificate, key)
    processes: list[asyncio.subprocess.Process] = []
    with (folder / "servers.log").open("wb") as log:
        try:
            processes.append(await asyncio.create_subprocess_exec(*etcd, stdout=log, stderr=log))
            processes.append(await asyncio.create_subprocess_exec(*apiserver, stdout=log, stderr=log))
            await _ready(url, context)
            yield path
        finally:
            for process in reversed(processes):
                if process.returncode is None:
                    process.terminate()
                await process.wait()


async def _ready(url: str, context: ssl.SSLContext) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/readyz", ssl=context) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
