"""The wire under `RestClient`: one object behind a small interface, so that tests inject faults and hot verbs can move.

`HttpTransport` presents the credentials, renews them when they expire or are refused, and re-reads rotated certificate
files. Requests go over the plain connections of `http1`; watches, and all that goes through a proxy, over aiohttp.
Errors of either become this package's own here.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import (
    CertificateError,
    ClientError,
    ConnectionFailed,
    ConnectionLost,
    ConnectionRefused,
    KubeconfigError,
    RequestTimeout,
    one_line,
)
from skedge.client.http1 import CONNECT_TIMEOUT, BrokenConnection, NotAllowed, Pool, Response, keepalive_socket
from skedge.clock import Clock, RealClock

DEFAULT_CONNECTIONS = 48
CERTIFICATE_CHECK_PERIOD = 60.0
"""Seconds between looks at the certificate files."""
_LARGE_BODY = 1 << 20
_NO_BODY = "Content-Length: 0\r\n"


class Stream(Protocol):
    """An answer whose body is still coming."""

    status: int
    headers: Mapping[str, str]

    async def next_chunk(self) -> bytes:
        """What has arrived of the body, in pieces of any size; empty at its end. Raises when the connection breaks."""
        ...

    async def read(self) -> bytes:
        """The rest of the body."""
        ...


class Transport(Protocol):
    """How requests reach a server. `target` is path and query, already percent-encoded.

    Raises the `ConnectionFailed` family and `RequestTimeout`; an HTTP error status is an answer, not an error.
    """

    host: str

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response: ...

    def stream(self, target: str, idle_timeout: float) -> AbstractAsyncContextManager[Stream]:
        """GET `target`; no byte for `idle_timeout` seconds raises RequestTimeout."""
        ...

    async def close(self) -> None: ...


class _Ready:
    """The headers to send, for aiohttp and as text, and the generation of the credentials in them."""

    __slots__ = ("generation", "head", "headers")

    def __init__(self, generation: int, headers: CIMultiDict[str], host: str) -> None:
        for name, value in headers.items():
            if "\r" in value or "\n" in value:
                raise KubeconfigError(f"the value of the header {name} has a line break in it")
        self.generation, self.headers = generation, headers
        self.head = f"Host: {host}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())


class HttpTransport:
    """HTTP to one server. Must be created and closed on the event loop that uses it."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        user_agent: str = "skedge",
        connections: int = DEFAULT_CONNECTIONS,
        clock: Clock | None = None,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """`may_send` is asked just before a request that is no GET is written; if not, `request` raises NotAllowed."""
        self._may_send = may_send
        self._config, self._credentials = config, config.credentials
        self._clock: Clock = clock or RealClock()
        self._base = config.server
        self.host = config.server.partition("://")[2].partition("/")[0]
        self._headers = CIMultiDict([("User-Agent", user_agent), ("Accept", "application/json"), *config.headers])
        self._prefix = config.server.partition("://")[2].removeprefix(self.host)
        self._prepared = _Ready(-1, self._headers, self.host)
        self._tls = config.server.startswith("https:")
        self._ssl: ssl.SSLContext | bool = True
        self._certificate = config.credentials.certificate
        self._fingerprint: tuple[tuple[str, int, int], ...] = ()
        self._next_check = -1.0
        self._tls_lock = asyncio.Lock()
        self._server_name = config.tls.server_name or None
        self._proxy = URL(config.proxy) if config.proxy else None
        url = URL(config.server)
        self._host_name = url.host or ""
        self._pool = None if config.proxy else Pool(self._host_name, url.port or 80, connections)
        self._turns = asyncio.Semaphore(connections)
        # A watch holds its connection for minutes: it must not take one from those that bindings wait for.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=keepalive_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            read_bufsize=1 << 18,
        )

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        ready = self._prepared if self._is_ready() else await self._get_ready()
        response = await self._send(ready, method, target, body, content_type, timeout)
        if response.status == 401 and await self._credentials.refresh(ready.generation):
            response = await self._send(await self._get_ready(), method, target, body, content_type, timeout)
        return response

    async def _send(
        self,
        ready: _Ready,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        timeout: float | None,
    ) -> Response:
        pool = self._pool
        if pool is None:
            return await self._send_by_proxy(ready, method, target, body, content_type, timeout)
        target = self._prefix + target
        if " " in target or not (target.isascii() and target.isprintable()):
            raise ValueError(f"not a percent-encoded path: {target!r}")
        head = f"{method} {target} HTTP/1.1\r\n{ready.head}"
        if body is not None:
            data = f"{head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode("latin-1") + body
        else:
            data = f"{head}{'' if method == 'GET' else _NO_BODY}\r\n".encode("latin-1")
        try:
            reads = method == "GET"
            may_send = None if reads else self._may_send
            if timeout is None:
                return await pool.request(data, repeatable=reads, may_send=may_send)
            async with asyncio.timeout(timeout):
                return await pool.request(data, repeatable=reads, may_send=may_send)
        except (OSError, BrokenConnection) as error:
            raise self._translate(error, f"{method} {target.partition('?')[0]}") from error

    async def _send_by_proxy(
        self, ready: _Ready, method: str, target: str, body: bytes | None, content_type: str, timeout: float | None
    ) -> Response:
        headers = ready.headers
        if body is not None:
            headers = headers.copy()
            headers["Content-Type"] = content_type
        try:
            async with self._turns:
                if method != "GET" and self._may_send is not None and not self._may_send():
                    raise NotAllowed
                async with self._session.request(
                    method,
                    URL(self._base + target, encoded=True),
                    data=body if body is None or len(body) < _LARGE_BODY else io.BytesIO(body),
                    headers=headers,
                    ssl=self._ssl,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT),
                ) as response:
                    received = {name.lower(): value for name, value in response.headers.items()}
                    return Response(response.status, received, await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise self._translate(error, f"{method} {target.partition('?')[0]}") from error

    @asynccontextmanager
    async def stream(self, target: str, idle_timeout: float) -> AsyncIterator[Stream]:
        what = f"GET {target.partition('?')[0]}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=idle_timeout)
        for attempt in (0, 1):
            ready = await self._get_ready()
            try:
                response = await self._session.get(
                    URL(self._base + target, encoded=True),
                    headers=ready.headers,
                    ssl=self._ssl,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    allow_redirects=False,
                    timeout=timeout,
                )
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._translate(error, what) from error
            if response.status == 401 and attempt == 0:
                async with response:
                    body = await response.read()
                if await self._credentials.refresh(ready.generation):
                    continue
                yield _Answered(response.status, response.headers, body)
                return
            break
        try:
            yield _HttpStream(self, response, what)
        finally:
            response.close()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        await self._session.close()

    def _is_ready(self) -> bool:
        """Whether a request can go out as things stand; cheap."""
        credentials = self._credentials
        return (
            self._prepared.generation == credentials.generation
            and credentials.fresh()
            and not (self._tls and self._tls_due())
        )

    async def _get_ready(self) -> _Ready:
        """Bring credentials, TLS context and headers up to date where that is due."""
        credentials = self._credentials
        if not credentials.fresh():
            await credentials.refresh()
        if self._tls and self._tls_due():
            await self._renew_tls()
        if self._prepared.generation != credentials.generation:
            headers = self._headers.copy()
            if credentials.authorization:
                headers["Authorization"] = credentials.authorization
            self._prepared = _Ready(credentials.generation, headers, self.host)
        return self._prepared

    def _tls_due(self) -> bool:
        return self._clock.monotonic() >= self._next_check or self._credentials.certificate is not self._certificate

    async def _renew_tls(self) -> None:
        async with self._tls_lock:
            if not self._tls_due():
                return  # somebody else did it meanwhile
            certificate = self._credentials.certificate
            fingerprint = self._config.tls.fingerprint()
            needed = self._ssl is True or certificate is not self._certificate
            if needed or fingerprint != self._fingerprint:
                # A new context means new connections; those of the old one finish their requests and are dropped.
                try:
                    self._ssl = await asyncio.to_thread(self._config.tls.context, certificate)
                    self._certificate, self._fingerprint = certificate, fingerprint
                    if self._pool is not None:
                        self._pool.use_tls(self._ssl, self._server_name or self._host_name)
                except ClientError:
                    if needed:
                        raise
                    # Half-written files: the old ones still serve, look again at the next check.
            self._next_check = self._clock.monotonic() + CERTIFICATE_CHECK_PERIOD

    def _translate(self, error: Exception, what: str) -> ClientError:
        host = self.host
        if isinstance(error, TimeoutError):  # aiohttp's timeouts are TimeoutErrors too
            return RequestTimeout(f"{what}: {host} did not answer in time")
        tls_error = next((e for e in (error.__cause__, error) if isinstance(e, ssl.SSLError)), None)
        if tls_error is not None:
            self._next_check = -1.0
            return CertificateError(f"cannot connect to {host}: {_tls_problem(tls_error)}")
        if isinstance(error, BrokenConnection):
            how = "closed the connection" if error.__cause__ is None else f"broke the connection: {one_line(error)}"
            return ConnectionLost(f"{what}: {host} {how}")
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            return ConnectionFailed(f"cannot connect to the proxy {self._proxy_name()}: {_os_problem(error.os_error)}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return ConnectionFailed(f"the proxy {self._proxy_name()} answered {error.status} {error.message}")
        cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        if isinstance(cause, OSError) and not isinstance(cause, aiohttp.ClientOSError):
            problem = f"cannot connect to {host}: {_os_problem(cause)}"
            return ConnectionRefused(problem) if cause.errno == errno.ECONNREFUSED else ConnectionFailed(problem)
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return ConnectionLost(f"{what}: {host} closed the connection")
        return ConnectionLost(f"{what}: the connection to {host} broke: {one_line(error)}")

    def _proxy_name(self) -> str:
        return str(self._proxy.with_user(None)) if self._proxy else ""


class _HttpStream:
    def __init__(self, transport: HttpTransport, response: aiohttp.ClientResponse, what: str) -> None:
        self._transport, self._response, self._what = transport, response, what
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    async def next_chunk(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._translate(error, self._what) from error

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._translate(error, self._what) from error


@dataclass(slots=True)
class _Answered:
    """A stream that was read to its end already."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def next_chunk(self) -> bytes:
        body, self.body = self.body, b""
        return body

    async def read(self) -> bytes:
        return self.body


def _os_problem(cause: OSError) -> str:
    if isinstance(cause, socket.gaierror):
        return "the host name is not known"
    if cause.errno:
        return os.strerror(cause.errno).lower()
    return one_line(cause)


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not accepted: {error.verify_message}"
    return f"TLS failed: {(error.reason or one_line(error)).replace('_', ' ').lower()}"
