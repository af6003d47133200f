"""The process's own endpoints: listeners, who may ask, whose word counts.

Upstream: `cmd/kube-scheduler/app/options`, `apiserver/pkg/server/options`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final

from skedge.app.reviewer import RestReviewer
from skedge.app.trust import ClusterTrust
from skedge.client.clientconfig import ClientConfig, load_in_cluster, load_kubeconfig
from skedge.client.errors import KubeconfigError
from skedge.client.hooks import ClientHooks
from skedge.client.rest import RestClient
from skedge.clock import Clock
from skedge.config.fields import ConfigError
from skedge.config.options import Options
from skedge.config.options_validation import INSECURE_CIPHER_SUITES
from skedge.serving.authentication import Authenticator, ClientTrust, RequestHeaderConfig
from skedge.serving.authorization import DEFAULT_ALLOWED, AllowedPaths, Authorizer
from skedge.serving.certificates import read_pem
from skedge.serving.endpoints import Sources, build_mux
from skedge.serving.guard import Guard
from skedge.serving.server import EndpointServer, Listen, Secure, SniFiles
from skedge.serving.tls import TlsSettings
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

_QPS: Final = 200.0
_BURST: Final = 400
_CONNECTIONS: Final = 4


@dataclass(frozen=True)
class ServingSettings:
    """What the command line says of serving. Times are in seconds."""

    secure: Secure = field(default_factory=Secure)
    listen: Listen | None = None
    """Where HTTPS is served; None: nowhere."""
    insecure: Listen | None = None
    """Where plain HTTP without any questions is served: loopback only."""
    authentication: ClientConfig | None = None
    authorization: ClientConfig | None = None
    """The API servers to ask; None: tokens are not looked at, and nobody but the privileged may."""
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    request_header: RequestHeaderConfig | None = None
    token_ttl: float = 10.0
    allowed_ttl: float = 10.0
    denied_ttl: float = 10.0
    allowed_paths: tuple[str, ...] = DEFAULT_ALLOWED


def serving_settings(options: Options) -> ServingSettings:
    """The settings of a command line. Raises ConfigError or KubeconfigError for files that cannot be used."""
    listen = insecure = None
    if options.secure_port:
        listen = Listen(options.bind_address, options.secure_port, options.permit_port_sharing)
    if options.port:
        insecure = Listen(options.address, options.port)
    for suite in options.tls_cipher_suites:
        if suite in INSECURE_CIPHER_SUITES:
            log.warning("Use of insecure cipher detected.", cipher=suite)
    secure = Secure(
        TlsSettings(options.tls_min_version, tuple(options.tls_cipher_suites), tuple(options.tls_curve_preferences)),
        options.tls_cert_file,
        options.tls_private_key_file,
        options.cert_dir,
        tuple(SniFiles(pair.cert, pair.key, tuple(pair.names)) for pair in options.tls_sni_cert_key),
        options.client_ca_file,
    )
    return ServingSettings(
        secure,
        listen,
        insecure,
        _delegate(options.authentication_kubeconfig, "authentication") if listen else None,
        _delegate(options.authorization_kubeconfig, "authorization") if listen else None,
        options.authentication_skip_lookup,
        options.authentication_tolerate_lookup_failure,
        _own_request_header(options),
        options.authentication_token_webhook_cache_ttl.seconds,
        options.authorization_webhook_cache_authorized_ttl.seconds,
        options.authorization_webhook_cache_unauthorized_ttl.seconds,
        tuple(options.authorization_always_allow_paths),
    )


def _delegate(kubeconfig: str, what: str) -> ClientConfig | None:
    """Whom to ask: the kubeconfig's server, that of the cluster we run in, or nobody."""
    if kubeconfig:
        return load_kubeconfig(kubeconfig)
    try:
        return load_in_cluster()
    except KubeconfigError:
        flag = f"--{what}-kubeconfig"
        log.warning(f"No {what}-kubeconfig provided in order to lookup, so {what} by it won't work.", flag=flag)
        return None


def _own_request_header(options: Options) -> RequestHeaderConfig | None:
    path = options.requestheader_client_ca_file
    if not path:
        return None
    try:
        ca = read_pem(path)
    except OSError as error:
        raise ConfigError(f"--requestheader-client-ca-file: {path}: {error.strerror}") from None
    return RequestHeaderConfig(
        ca,
        tuple(options.requestheader_allowed_names),
        tuple(options.requestheader_username_headers),
        tuple(options.requestheader_uid_headers),
        tuple(options.requestheader_group_headers),
        tuple(options.requestheader_extra_headers_prefix),
    )


class Serving:
    """The listeners of one process; `run` them as a task, cancel it to close them in order."""

    def __init__(
        self,
        settings: ServingSettings,
        sources: Sources,
        *,
        user_agent: str,
        clock: Clock,
        rng: Random,
        client_hooks: ClientHooks | None = None,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._user_agent = user_agent
        self._clock, self._rng, self._client_hooks = clock, rng, client_hooks
        self._servers: list[EndpointServer] = []
        self.ports: Mapping[str, int] = {}
        """`https` and `http`: the ports listened on, once `started`."""
        self.started = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled. Raises ListenError, CertificateError, TlsError or TrustError when that cannot be."""
        settings = self._settings
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            try:
                mux = build_mux(self._sources)
                ports = {}
                if settings.insecure is not None:
                    ports["http"] = await self._start(
                        EndpointServer(Guard(mux, self._clock), settings.insecure, self._clock)
                    )
                if settings.listen is not None:
                    reviewer = self._connected(stack, settings.authentication)
                    judge = self._connected(stack, settings.authorization)
                    authenticator, authorizer = self._guards(reviewer, judge)
                    stack.push_async_callback(authenticator.close)
                    stack.push_async_callback(authorizer.close)
                    guard = Guard(mux, self._clock, authenticator, authorizer)
                    server = EndpointServer(guard, settings.listen, self._clock, settings.secure, authenticator)
                    trust = self._trust(reviewer, server.trust)
                    if trust is not None:
                        await trust.look_up(tolerate=settings.tolerate_lookup_failure)
                    elif settings.request_header is not None:
                        await server.trust(ClientTrust(request_header=settings.request_header))
                    ports["https"] = await self._start(server)
                    if trust is not None:
                        group.create_task(trust.follow(), name="cluster trust")
                self.ports = ports
                self.started.set()
                await asyncio.get_running_loop().create_future()
            finally:
                for each in self._servers:
                    await each.stop()

    async def _start(self, server: EndpointServer) -> int:
        self._servers.append(server)
        await server.start()
        return server.port

    def _connected(self, stack: AsyncExitStack, config: ClientConfig | None) -> RestClient | None:
        if config is None:
            return None
        client = RestClient.connect(
            config,
            user_agent=self._user_agent,
            connections=_CONNECTIONS,
            qps=_QPS,
            burst=_BURST,
            clock=self._clock,
            hooks=self._client_hooks,
        )
        stack.push_async_callback(client.close)
        return client

    def _guards(self, reviewer: RestClient | None, judge: RestClient | None) -> tuple[Authenticator, Authorizer]:
        settings, metrics = self._settings, self._sources.metrics
        authenticator = Authenticator(
            metrics,
            self._clock,
            self._rng,
            None if reviewer is None else RestReviewer(reviewer),
            settings.token_ttl,
        )
        authorizer = Authorizer(
            metrics,
            self._clock,
            self._rng,
            None if judge is None else RestReviewer(judge),
            AllowedPaths(settings.allowed_paths),
            settings.allowed_ttl,
            settings.denied_ttl,
        )
        return authenticator, authorizer

    def _trust(self, client: RestClient | None, apply: Callable[[ClientTrust], Awaitable[None]]) -> ClusterTrust | None:
        settings = self._settings
        if client is None or settings.skip_lookup:
            return None
        return ClusterTrust(
            client,
            apply,
            own_client_ca=bool(settings.secure.client_ca_file),
            own_header=settings.request_header,
        )
