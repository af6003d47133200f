"""The listener: HTTPS with certificates that may change while it runs, or plain HTTP on loopback.

server = EndpointServer(guard, address, settings...)
await server.start()      # CertificateError, TlsError, ListenError
server.port
await server.stop()
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from skedge.clock import Clock
from skedge.names import COMPONENT_NAME
from skedge.serving.answers import BodyTooLarge, Request
from skedge.serving.authentication import Authenticator, ClientTrust, peer_certificate
from skedge.serving.certificates import (
    SNI_PAIR,
    CertificateError,
    KeyPair,
    load_pair,
    pair_in_directory,
    read_pem,
    self_signed_pair,
    write_pair,
)
from skedge.serving.guard import Guard
from skedge.serving.tls import SniPair, TlsError, TlsSettings, server_context
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

_LARGEST_HEADER: Final = 1 << 20
_IDLE_SECONDS: Final = 90.0
_HEADER_SECONDS: Final = 32.0
_PROBE_SECONDS: Final = 180
_SHUTDOWN_SECONDS: Final = 5.0
_RELOAD_SECONDS: Final = 10.0
_BACKLOG: Final = 128


class ListenError(Exception):
    """The address cannot be listened on."""


@dataclass(frozen=True)
class Listen:
    """Where to listen; port 0: any free one. An unspecified address (0.0.0.0, ::) means all interfaces.

    `share_port`: SO_REUSEPORT. (An address is always shared with closing connections, as Go's listeners do.)
    """

    address: str = "0.0.0.0"
    port: int = 10259
    share_port: bool = False


@dataclass(frozen=True)
class SniFiles:
    """One `--tls-sni-cert-key`."""

    certificate: str
    key: str
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Secure:
    """How HTTPS is served. Without files: the pair of `directory` if there is one, else a new one (kept there)."""

    settings: TlsSettings = field(default_factory=TlsSettings)
    certificate_file: str = ""
    key_file: str = ""
    directory: str = ""
    sni: tuple[SniFiles, ...] = ()
    client_ca_file: str = ""
    """Added to the client CAs of the trust in effect."""


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record of the HTTP library tells of more than a client that does not speak HTTP."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_wire_log = logging.getLogger(f"{__name__}.wire")
_wire_log.addFilter(_is_ours)


class _Server(web.Server):
    """Hangs up on whoever connects and then does not get a first request out in time."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **options: Any) -> None:
        super().__init__(self._heard_first(handler), **options)
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._silent[handler] = asyncio.get_running_loop().call_later(_HEADER_SECONDS, transport.abort)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._heard(handler)
        super().connection_lost(handler, exc)

    def _heard(self, handler: web.RequestHandler) -> None:
        if (timer := self._silent.pop(handler, None)) is not None:
            timer.cancel()

    def _heard_first(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            self._heard(request.protocol)
            return await handler(request)

        return handle


class _Material(NamedTuple):
    """What the files hold now."""

    pair: KeyPair
    sni: tuple[SniPair, ...]
    client_ca: str


class EndpointServer:
    """Serves a guard's answers. `secure` None: plain HTTP, which only a loopback address may have."""

    def __init__(
        self,
        guard: Guard,
        listen: Listen,
        clock: Clock,
        secure: Secure | None = None,
        authenticator: Authenticator | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if secure is None and not _is_loopback(listen.address):
            raise ListenError(f"plain HTTP is served on a loopback address only, not on {listen.address}")
        self._guard = guard
        self._listen = listen
        self._clock = clock
        self._secure = secure
        self._authenticator = authenticator
        self._sleep = sleep
        self._trust = ClientTrust()
        self._made: KeyPair | None = None
        self._material: _Material | None = None
        self._socket: socket.socket | None = None
        self._runner: web.ServerRunner | None = None
        self._site: web.SockSite | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._applying = asyncio.Lock()

    @property
    def port(self) -> int:
        """The port listened on; only while running."""
        if self._socket is None:
            raise ListenError("the server does not run")
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Load or make certificates, listen, and begin to watch the files for changes."""
        context = None
        if self._secure is not None:
            self._material = await asyncio.to_thread(self._read, self._secure)
            context = self._context(self._secure, self._material)
            self._believe(self._material)
        self._socket = _listening_socket(self._listen)
        server = _Server(
            self._handle,
            access_log=None,
            logger=_wire_log,
            keepalive_timeout=_IDLE_SECONDS,
            max_line_size=_LARGEST_HEADER,
            max_field_size=_LARGEST_HEADER,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        await self._open(context)
        if self._secure is not None:
            self._reloading = asyncio.create_task(self._watch_files(), name="serving certificates")
        log.info("Serving securely" if context else "Serving insecurely", address=self._listen.address, port=self.port)

    async def stop(self) -> None:
        """Close the listener, wait up to 5 s for open requests, end."""
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.gather(self._reloading, return_exceptions=True)
            self._reloading = None
        if self._site is not None:
            await self._site.stop()
            self._site = None
            log.info("[graceful-termination] secure server has stopped listening")
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            log.info("[graceful-termination] secure server is exiting")

    async def trust(self, trust: ClientTrust) -> None:
        """Believe other client certificates from now on (the cluster's ConfigMap changed)."""
        self._trust = trust
        await self._apply()

    async def reload(self) -> bool:
        """Read the certificate files again; whether they changed. Files that cannot be used change nothing."""
        if self._secure is None:
            return False
        try:
            material = await asyncio.to_thread(self._read, self._secure)
            if material == self._material:
                return False
            self._context(self._secure, material)
        except (CertificateError, TlsError) as error:
            log.error(error, "Failed to reload serving certificates; the former ones stay in use")
            return False
        self._material = material
        await self._apply()
        log.info("Reloaded serving certificates")
        return True

    async def _apply(self) -> None:
        """Have new connections use the material and trust of now; open ones go on as they are."""
        if self._secure is None or self._material is None:
            return
        try:
            context = self._context(self._secure, self._material)
        except CertificateError as error:
            log.error(error, "Failed to take over client CAs; the former ones stay in use")
            return
        self._believe(self._material)
        async with self._applying:
            former = self._site
            if self._runner is None or former is None:
                return
            await self._open(context)
            await former.stop()

    def _believe(self, material: _Material) -> None:
        if self._authenticator is not None:
            self._authenticator.trust(self._joined_trust(material.client_ca))

    async def _open(self, context: ssl.SSLContext | None) -> None:
        """Accept connections under `context`, on a copy of the listening socket: closing one leaves the others open."""
        assert self._socket is not None
        assert self._runner is not None
        self._site = web.SockSite(self._runner, self._socket.dup(), ssl_context=context, backlog=_BACKLOG)
        await self._site.start()

    async def _watch_files(self) -> None:
        while True:
            await self._sleep(_RELOAD_SECONDS)
            await self.reload()

    def _read(self, secure: Secure) -> _Material:
        """Pair, SNI pairs and static client CA, as they are in their files now."""
        sni = tuple(SniPair(load_pair(each.certificate, each.key, SNI_PAIR), each.patterns) for each in secure.sni)
        client_ca = ""
        if secure.client_ca_file:
            try:
                client_ca = read_pem(secure.client_ca_file)
            except OSError as error:
                message = f"unable to load client CA file: {secure.client_ca_file}: {error.strerror}"
                raise CertificateError(message) from None
        return _Material(self._pair(secure), sni, client_ca)

    def _pair(self, secure: Secure) -> KeyPair:
        if secure.certificate_file or secure.key_file:
            return load_pair(secure.certificate_file, secure.key_file)
        if secure.directory:
            with suppress(CertificateError):
                return load_pair(*pair_in_directory(secure.directory))
        if self._made is not None:
            return self._made
        self._made = self_signed_pair(self._clock, self._listen.address)
        if secure.directory:
            write_pair(self._made, *pair_in_directory(secure.directory))
        else:
            log.info("Generated self-signed cert in-memory")
        return self._made

    def _joined_trust(self, static_ca: str) -> ClientTrust:
        parts = [part.strip() for part in (static_ca, self._trust.client_ca) if part.strip()]
        return ClientTrust("\n".join(parts), self._trust.request_header)

    def _context(self, secure: Secure, material: _Material) -> ssl.SSLContext:
        bundle = self._joined_trust(material.client_ca).bundle()
        return server_context(material.pair, secure.settings, bundle, material.sni)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        peer = peer_certificate(request.get_extra_info("ssl_object"))
        asked = Request(request.method, request.path, request.query_string, request.headers, partial(_body, request))
        answer = await self._guard(asked, request.headers, peer)
        headers = {"Content-Type": answer.content_type, "Server": COMPONENT_NAME, **answer.headers}
        return web.Response(body=answer.body, status=answer.status, headers=headers)


async def _body(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge from None


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _listening_socket(listen: Listen) -> socket.socket:
    """The bound socket; an unspecified address of either family means both, where the machine has both."""
    where = f"{listen.address}:{listen.port}"
    try:
        address = ipaddress.ip_address(listen.address)
    except ValueError:
        raise ListenError(f"failed to create listener: failed to listen on {where}: not an IP address") from None
    both = address.is_unspecified and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or address.version == 6 else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listen.share_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Inherited by the connections, whose keep-alive the HTTP library switches on.
        if hasattr(socket, "TCP_KEEPIDLE"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        if both:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(("::" if both else listen.address, listen.port))
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        reason = error.strerror or str(error)
        raise ListenError(f"failed to create listener: failed to listen on {where}: {reason}") from None
    return made
