"""API servers to run against: the embedded one, and a real one where `KUBEBUILDER_ASSETS` names its binaries.

Three users, by token: an administrator, the scheduler with its stock roles, and one who may nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from skedge.client.clientconfig import ClientConfig
from skedge.client.credentials import StaticCredentials, bearer
from skedge.controlplane.access import Access, User
from skedge.controlplane.server import ControlPlane

ADMIN, SCHEDULER, PLAIN = "admintoken", "schedtoken", "plaintoken"
USERS = {
    ADMIN: User("admin", ("system:masters",)),
    SCHEDULER: User("system:kube-scheduler"),
    PLAIN: User("jane", ("readers",)),
}
ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
BACKENDS = ["embedded", "kube-apiserver"] if ASSETS else ["embedded"]


@asynccontextmanager
async def running(backend: str) -> AsyncIterator[str]:
    """The URL of a fresh server."""
    async with _embedded() if backend == "embedded" else _real() as url:
        yield url


def access() -> Access:
    """Who may do what on an embedded server."""
    return Access(dict(USERS))


@asynccontextmanager
async def _embedded() -> AsyncIterator[str]:
    plane = ControlPlane(access=access(), rng=random.Random(1))
    await plane.start()
    try:
        yield plane.url
    finally:
        await plane.stop()


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@asynccontextmanager
async def _real() -> AsyncIterator[str]:
    """etcd and kube-apiserver in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="skedge-e2e-") as name:
        folder = Path(name)
        client, peer, port = free_port(), free_port(), free_port()
        tokens = "".join(
            f'{token},{user.name},{token}-uid,"{",".join(user.groups)}"\n' for token, user in USERS.items()
        )
        (folder / "tokens.csv").write_text(tokens)
        key = folder / "sa.key"
        key.write_bytes(_signing_key())
        etcd = [
            f"{ASSETS}/etcd",
            f"--data-dir={folder}/etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
        ]
        apiserver = [
            f"{ASSETS}/kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{client}",
            f"--cert-dir={folder}/certs",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://localhost",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--runtime-config=api/all=true",
        ]
        processes: list[asyncio.subprocess.Process] = []
        try:
            processes += [await _start(command) for command in (etcd, apiserver)]
            url = f"https://127.0.0.1:{port}"
            await _ready(url)
            yield url
        finally:
            for process in reversed(processes):
                if process.returncode is None:
                    process.terminate()
                await process.wait()


async def _start(command: list[str]) -> asyncio.subprocess.Process:
    nowhere = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*command, stdout=nowhere, stderr=nowhere)


def _signing_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


async def _ready(url: str) -> None:
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=False)) as session:
        for _ in range(300):
            try:
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
    raise AssertionError("kube-apiserver did not become ready")


class Operator:
    """Whoever changes the cluster: an administrator's requests."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url, self._session = url, session

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        async with self._session.request(
            method,
            self._url + path,
            json=body,
            headers={"Authorization": f"Bearer {ADMIN}", "Content-Type": content_type},
        ) as answer:
            assert answer.status < 300, f"{method} {path}: {await answer.text()}"
            return await answer.json()


@asynccontextmanager
async def operator(url: str) -> AsyncIterator[Operator]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        yield Operator(url, session)


def as_user(url: str, token: str) -> ClientConfig:
    """How a user reaches a server (through a plain proxy, if it speaks TLS)."""
    return ClientConfig(url, credentials=StaticCredentials(bearer(token)))
