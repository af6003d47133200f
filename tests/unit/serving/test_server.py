"""The listener: certificates of both sides, reload, limits, plain HTTP."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from serving_authority import authority
from skedge.clock import RealClock
from skedge.serving.answers import Answer, Request, text
from skedge.serving.answers import json as as_json
from skedge.serving.authentication import Authenticator, ClientTrust, RequestHeaderConfig
from skedge.serving.authorization import AllowedPaths, Authorizer
from skedge.serving.certificates import CertificateError, KeyPair, load_pair, pair_in_directory, write_pair
from skedge.serving.guard import Guard
from skedge.serving.server import EndpointServer, Listen, ListenError, Secure, SniFiles
from skedge.serving.tls import TlsSettings
from skedge.telemetry.metrics import Metrics

Serve = Callable[..., AbstractAsyncContextManager[EndpointServer]]


class Whoami(Authorizer):
    """Lets everybody in and remembers who it was."""

    async def authorize(self, user: Any, verb: str, path: str) -> Any:
        self.user = user
        return await super().authorize(user, verb, path)


@asynccontextmanager
async def serving(
    secure: Secure | None = None, trust: ClientTrust | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[EndpointServer]:
    """A server that answers who asks."""
    metrics, clock = Metrics("1.36.2"), RealClock()
    authenticator = Authenticator(metrics, clock, Random(0))
    authorizer = Whoami(metrics, clock, Random(0), allowed_paths=AllowedPaths(["*"]))

    async def handler(request: Request) -> Answer:
        if request.path == "/body":
            return text((await request.read()).decode())
        return as_json({"name": authorizer.user.name, "groups": authorizer.user.groups})

    guard = Guard(handler, clock, authenticator, authorizer)
    server = EndpointServer(guard, Listen(address, 0), clock, secure, authenticator)
    if trust is not None:
        await server.trust(trust)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def client_context(tmp_path: Path, pair: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority("serving").pem)
    if pair is not None:
        files = str(tmp_path / "client.crt"), str(tmp_path / "client.key")
        write_pair(pair, *files)
        context.load_cert_chain(*files)
    return context


def serving_files(directory: Path, name: str = "localhost", pattern: str = "") -> tuple[str, str]:
    files = pair_in_directory(str(directory))
    write_pair(authority("serving").issue(name, dns=(pattern or "localhost",)), *files)
    return files


async def get(
    server: EndpointServer, context: ssl.SSLContext | bool, headers: dict[str, str] | None = None, path: str = "/"
) -> Any:
    url = f"https://localhost:{server.port}{path}"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(family=socket.AF_INET)) as session,
        session.get(url, ssl=context, headers=headers) as response,
    ):
        return await response.json()


@pytest.mark.asyncio
async def test_given_files(tmp_path: Path) -> None:
    files = serving_files(tmp_path)
    async with serving(Secure(certificate_file=files[0], key_file=files[1])) as server:
        assert (await get(server, client_context(tmp_path)))["name"] == "system:anonymous"


@pytest.mark.asyncio
async def test_a_pair_is_kept_in_a_directory_and_found_there_again(tmp_path: Path) -> None:
    directory = tmp_path / "certs"
    files = pair_in_directory(str(directory))
    async with serving(Secure(directory=str(directory))):
        made = load_pair(*files)
    async with serving(Secure(directory=str(directory))) as server:
        assert load_pair(*files) == made
        presented = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", server.port))
        assert presented in made.certificate
        serving_files(directory)
        assert await server.reload()
        assert await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", server.port)) != presented


@pytest.mark.asyncio
async def test_client_certificates_and_front_proxies(tmp_path: Path) -> None:
    clients, below, proxies = authority("clients"), authority("below clients"), authority("proxies")
    trust = ClientTrust(clients.pem, RequestHeaderConfig(proxies.pem, ("front",)))
    files = serving_files(tmp_path / "s")
    speaks_for = {"X-Remote-User": "mary", "X-Remote-Group": "dev"}
    cases = [
        (None, {}, "system:anonymous", ["system:unauthenticated"]),
        (clients.issue("admin", "system:masters"), {}, "admin", ["system:masters", "system:authenticated"]),
        (below.issue("deep", chain=below.pem), {}, "deep", ["system:authenticated"]),
        (proxies.issue("front"), speaks_for, "mary", ["dev", "system:authenticated"]),
        (clients.issue("front"), speaks_for, "front", ["system:authenticated"]),
    ]
    async with serving(Secure(certificate_file=files[0], key_file=files[1]), trust) as server:
        for pair, headers, name, groups in cases:
            got = await get(server, client_context(tmp_path, pair), headers)
            assert got == {"name": name, "groups": groups}
        stranger = client_context(tmp_path, authority("strangers").issue("admin", "system:masters"))
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await get(server, stranger)


@pytest.mark.asyncio
async def test_without_a_ca_certificates_of_clients_mean_nothing(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")
    async with serving(Secure(certificate_file=files[0], key_file=files[1])) as server:
        context = client_context(tmp_path, authority("clients").issue("admin"))
        assert (await get(server, context))["name"] == "system:anonymous"


@pytest.mark.asyncio
async def test_trust_changes_while_serving(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")
    context = client_context(tmp_path, authority("clients").issue("admin"))
    async with serving(Secure(certificate_file=files[0], key_file=files[1])) as server:
        port = server.port
        assert (await get(server, context))["name"] == "system:anonymous"
        await server.trust(ClientTrust(authority("clients").pem))
        assert (await get(server, context))["name"] == "admin"
        await server.trust(ClientTrust("rubbish"))
        assert (await get(server, context))["name"] == "admin", "what cannot be read changes nothing"
        await server.trust(ClientTrust(authority("strangers").pem))
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await get(server, context)
        assert server.port == port


@pytest.mark.asyncio
async def test_the_static_client_ca_stays_beside_the_clusters(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")
    (tmp_path / "ca.pem").write_text(f"# Autorité\n{authority('clients').pem}", encoding="utf-8")
    secure = Secure(certificate_file=files[0], key_file=files[1], client_ca_file=str(tmp_path / "ca.pem"))
    async with serving(secure, ClientTrust(f"# Fremde, größere\n{authority('strangers').pem}")) as server:
        for name in ("clients", "strangers"):
            context = client_context(tmp_path, authority(name).issue("one"))
            assert (await get(server, context))["name"] == "one"


@pytest.mark.asyncio
async def test_changed_files_are_taken_over_and_broken_ones_not(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")

    async def presented(server: EndpointServer) -> str:
        return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", server.port))

    async with serving(Secure(certificate_file=files[0], key_file=files[1])) as server:
        first = await presented(server)
        assert not await server.reload()
        serving_files(tmp_path / "s")
        assert await server.reload()
        second = await presented(server)
        assert second != first
        write_pair(KeyPair(second, "half a ke"), *files)
        assert not await server.reload()
        assert await presented(server) == second
        os.unlink(files[1])
        assert not await server.reload()
        assert (await get(server, client_context(tmp_path)))["name"] == "system:anonymous"


@pytest.mark.asyncio
async def test_a_connection_outlives_the_certificate_it_began_with(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")
    async with (
        serving(Secure(certificate_file=files[0], key_file=files[1])) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(family=socket.AF_INET, limit=1)) as session,
    ):
        context = client_context(tmp_path)
        for _ in range(2):
            async with session.get(f"https://localhost:{server.port}/", ssl=context) as response:
                assert response.status == 200
                await response.read()
            serving_files(tmp_path / "s")
            await server.reload()


@pytest.mark.asyncio
async def test_server_names_choose_certificates(tmp_path: Path) -> None:
    files = serving_files(tmp_path / "s")
    exact = serving_files(tmp_path / "exact", "exact", "exact.test")
    wild = serving_files(tmp_path / "wild", "wild", "*.wild.test")
    secure = Secure(certificate_file=files[0], key_file=files[1], sni=(SniFiles(*exact), SniFiles(*wild)))
    async with serving(secure) as server:
        for name, common in (
            ("exact.test", "exact"),
            ("a.wild.test", "wild"),
            ("a.b.wild.test", "localhost"),
            ("other.test", "localhost"),
        ):
            context = client_context(tmp_path)
            context.check_hostname = False
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context, server_hostname=name)
            subject = dict(pair for part in writer.get_extra_info("peercert")["subject"] for pair in part)
            writer.close()
            await writer.wait_closed()
            assert subject["commonName"] == common, name


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("minimum", "offered", "accepted"),
    [
        ("", "TLSv1_1", False),
        ("", "TLSv1_2", True),
        ("VersionTLS13", "TLSv1_2", False),
        ("VersionTLS13", "TLSv1_3", True),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_the_lowest_version(tmp_path: Path, minimum: str, offered: str, accepted: bool) -> None:
    files = serving_files(tmp_path / "s")
    secure = Secure(TlsSettings(minimum), certificate_file=files[0], key_file=files[1])
    async with serving(secure) as server:
        context = client_context(tmp_path)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion[offered]
        if accepted:
            assert await get(server, context)
        else:
            with pytest.raises(aiohttp.ClientError):
                await get(server, context)


@pytest.mark.asyncio
async def test_plain_http_on_loopback_only() -> None:
    guard = Guard(lambda request: _plain(request), RealClock())
    with pytest.raises(ListenError, match=r"plain HTTP is served on a loopback address only, not on 0\.0\.0\.0"):
        EndpointServer(guard, Listen("0.0.0.0", 0), RealClock())
    server = EndpointServer(guard, Listen("127.0.0.1", 0), RealClock())
    assert not await server.reload()
    await server.start()
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"http://127.0.0.1:{server.port}/a%20b?x=1", data=b"body") as response,
    ):
        assert await response.text() == "PUT /a b x=1 body"
    await server.stop()
    with pytest.raises(ListenError, match="the server does not run"):
        _ = server.port


async def _plain(request: Request) -> Answer:
    return text(f"{request.method} {request.path} {request.query} {(await request.read()).decode()}")


@pytest.mark.asyncio
async def test_addresses_that_cannot_be_listened_on() -> None:
    guard = Guard(_plain, RealClock())
    first = EndpointServer(guard, Listen("127.0.0.1", 0), RealClock())
    await first.start()
    second = EndpointServer(guard, Listen("127.0.0.1", first.port), RealClock())
    with pytest.raises(
        ListenError, match=r"^failed to create listener: failed to listen on 127\.0\.0\.1:\d+: Address al"
    ):
        await second.start()
    await first.stop()
    with pytest.raises(ListenError, match="failed to listen on localhost:0: not an IP address"):
        await EndpointServer(guard, Listen("localhost", 0), RealClock(), Secure()).start()


@pytest.mark.asyncio
async def test_an_unspecified_address_means_every_interface() -> None:
    async with serving(Secure(), address="0.0.0.0") as server:
        assert (await get(server, False))["name"] == "system:anonymous"
        if socket.has_dualstack_ipv6():
            _, writer = await asyncio.open_connection("::1", server.port)
            writer.close()
            await writer.wait_closed()


@pytest.mark.asyncio
async def test_no_certificates_no_start(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="unable to load server certificate"):
        async with serving(Secure(certificate_file=str(tmp_path / "x"), key_file=str(tmp_path / "y"))):
            pass
    with pytest.raises(CertificateError, match="failed to load SNI cert and key: /no/pair: No such file"):
        async with serving(Secure(sni=(SniFiles("/no/pair", "/no/key"),))):
            pass
    with pytest.raises(CertificateError, match=r"unable to load client CA file: .*/x: No such file"):
        async with serving(Secure(client_ca_file=str(tmp_path / "x"))):
            pass


@pytest.mark.asyncio
async def test_large_bodies_are_refused() -> None:
    async with (
        serving(Secure()) as server,
        aiohttp.ClientSession() as session,
        session.put(f"https://127.0.0.1:{server.port}/body", data=io.BytesIO(b"x" * 1_100_000), ssl=False) as response,
    ):
        assert (response.status, await response.text()) == (413, "http: request body too large\n")


@pytest.mark.asyncio
async def test_who_connects_and_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skedge.serving.server._HEADER_SECONDS", 0.02)
    server = EndpointServer(Guard(_plain, RealClock()), Listen("127.0.0.1", 0), RealClock())
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HT")
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    await server.stop()


def test_on_uvloop(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")
    files = serving_files(tmp_path / "s")
    context = client_context(tmp_path, authority("clients").issue("admin"))

    async def serve() -> None:
        secure = Secure(certificate_file=files[0], key_file=files[1])
        async with serving(secure, ClientTrust(authority("clients").pem)) as server:
            assert (await get(server, context))["name"] == "admin"
            serving_files(tmp_path / "s")
            assert await server.reload()
            assert (await get(server, context))["name"] == "admin"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "said", [b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/1.1\r\na b: c\r\n\r\n"]
)
async def test_who_speaks_no_http_is_answered_and_not_logged(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Secure()) as server:
        context = ssl._create_unverified_context()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(said)
        assert (await reader.read()).startswith(b"HTTP/1.0 400 Bad Request\r\n")
        writer.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
