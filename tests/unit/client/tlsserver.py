"""A TLS server that writes down who asked for what, certificates for it, and a CONNECT proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    cert: bytes
    key: bytes


class Authority:
    """A certificate authority that signs server and client certificates."""

    def __init__(self, name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def issue(self, name: str, *hosts: str) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        names: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts
        ]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        pem = serialization.Encoding.PEM
        return Pair(
            builder.sign(self._key, hashes.SHA256()).public_bytes(pem),
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    user: str
    server_name: str

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def all(self, prefix: str) -> list[tuple[str, str]]:
        return [(k.lower(), v) for k, v in self.headers if k.lower().startswith(prefix.lower())]


@dataclass
class Recorder:
    """Answers every request with 200 `{}`, or as `answer` says; `user` is the client certificate's name."""

    answer: Callable[[Seen], tuple[int, Any]] = lambda seen: (200, {})
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    host: str = ""
    sni: str = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        user = peer["subject"][0][0][1] if peer else ""
        seen = Seen(request.method, request.path_qs, list(request.headers.items()), user, self.sni)
        self.seen.append(seen)
        await request.read()
        status, body = self.answer(seen)
        return web.json_response(body, status=status)


@asynccontextmanager
async def recording(directory: Path, ca: Authority, *hosts: str) -> AsyncIterator[Recorder]:
    """A TLS server on 127.0.0.1 with a certificate for `hosts` (default 127.0.0.1) that accepts client certificates."""
    pair = ca.issue("server", *(hosts or ("127.0.0.1",)))
    chain = directory / "server.pem"
    chain.write_bytes(pair.cert + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    context.load_verify_locations(cadata=ca.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    recorder = Recorder()

    def note_name(sock: object, name: str | None, _: object) -> None:
        recorder.sni = name or ""

    context.sni_callback = note_name  # type: ignore[assignment]
    runner = web.ServerRunner(web.Server(recorder.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    recorder.host = f"127.0.0.1:{port}"
    recorder.url = f"https://{recorder.host}"
    try:
        yield recorder
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connect_proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """An HTTP proxy that knows CONNECT; yields its URL and the list of targets asked for."""
    targets: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split()[1]
        targets.append(target)
        host, _, port = target.rpartition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        up_writer.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", targets
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
