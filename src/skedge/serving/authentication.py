"""Who sends a request: a front proxy's headers, a client certificate, a bearer token, or nobody known.

Upstream: `apiserver/pkg/authentication/request/{headerrequest,x509,bearertoken,union,anonymous}`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from skedge.clock import Clock
from skedge.serving.reviews import ExpiringCache, Retrying, SingleFlight
from skedge.serving.users import ANONYMOUS, Reviewer, ReviewError, TokenReview, UserInfo
from skedge.telemetry.logs import get_logger
from skedge.telemetry.metrics import Metrics

log = get_logger(__name__)

_CACHED_TOKENS: Final = 4096
_FAMILIAR_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)


class AuthenticationError(Exception):
    """Credentials were shown and are not good; the request is answered with 401."""


@dataclass(frozen=True)
class RequestHeaderConfig:
    """What a front proxy may say about a user, and whose certificate (CA bundle in PEM, common names) it must show.

    `allowed_names` empty: any certificate of the CA.
    """

    ca: str
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True)
class ClientTrust:
    """Whose certificates count: a client CA bundle (PEM, may be empty) and a front proxy. Replaced as a whole."""

    client_ca: str = ""
    request_header: RequestHeaderConfig | None = None

    def bundle(self) -> str:
        """All CAs the TLS layer has to know, in ASCII: what is not is in the comments between them."""
        parts = [self.client_ca, self.request_header.ca if self.request_header else ""]
        return "\n".join(part.strip() for part in parts if part.strip()).encode("ascii", "ignore").decode()


@dataclass(frozen=True)
class PeerCertificate:
    """A client's certificate that the TLS layer has verified: its subject, and every certificate (DER) of its chain.

    `expires`: seconds since 1970.
    """

    common_name: str
    organizations: tuple[str, ...]
    chain: frozenset[bytes]
    expires: float


def peer_certificate(connection: Any) -> PeerCertificate | None:
    """The certificate of the client at the other end of an `ssl.SSLObject`, or None."""
    if connection is None or not (described := connection.getpeercert()):
        return None
    subject = [pair for part in described.get("subject", ()) for pair in part]
    # Public only from Python 3.13 on.
    source = connection if hasattr(connection, "get_verified_chain") else connection._sslobj
    chain = source.get_verified_chain() or ()
    return PeerCertificate(
        next((value for name, value in subject if name == "commonName"), ""),
        tuple(value for name, value in subject if name == "organizationName"),
        frozenset(each if isinstance(each, bytes) else ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in chain),
        ssl.cert_time_to_seconds(described["notAfter"]),
    )


def certificates(bundle: str) -> frozenset[bytes]:
    """The certificates of a PEM bundle, as DER."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = []
    for part in bundle.split(begin)[1:]:
        body, closed, _ = part.partition(end)
        if closed:
            found.append(ssl.PEM_cert_to_DER_cert(f"{begin}{body}{end}"))
    return frozenset(found)


class Authenticator:
    """Tries the ways of showing who one is, in upstream's order; `reviewer` None: tokens are not looked at."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        random: Random,
        reviewer: Reviewer | None = None,
        cache_ttl: float = 10.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._reviewer = reviewer
        self._ttl = cache_ttl
        self._cache: ExpiringCache[bytes, TokenReview] = ExpiringCache(clock, _CACHED_TOKENS)
        self._flights: SingleFlight[bytes, TokenReview] = SingleFlight("token review")
        self._retrying = Retrying(
            clock,
            random,
            sleep,
            metrics.counter("apiserver_delegated_authn_request_total"),
            metrics.histogram("apiserver_delegated_authn_request_duration_seconds"),
        )
        self._attempts = metrics.counter("authentication_attempts")
        self._seconds = metrics.histogram("authentication_duration_seconds")
        self._users = metrics.counter("authenticated_user_requests")
        self._expiration = metrics.histogram("apiserver_client_certificate_expiration_seconds").only
        self._cache_requests = metrics.counter("authentication_token_cache_request_total")
        self._cache_seconds = metrics.histogram("authentication_token_cache_request_duration_seconds")
        self._fetches = metrics.counter("authentication_token_cache_fetch_total")
        if reviewer is not None:
            flights = self._flights
            metrics.gauge("authentication_token_cache_active_fetch_count").read_from(
                lambda: {("blocked",): flights.waiting, ("in_flight",): flights.flying}
            )
        self.trust(ClientTrust())

    def trust(self, trust: ClientTrust) -> None:
        """Take over other CAs and proxy rules."""
        self._header = trust.request_header
        self._client_cas = certificates(trust.client_ca)
        self._header_cas = certificates(trust.request_header.ca) if trust.request_header else frozenset()

    async def authenticate(self, headers: CIMultiDictProxy[str], peer: PeerCertificate | None) -> UserInfo:
        """The user; anonymous when no credentials are shown; AuthenticationError when those shown are not good."""
        begin = self._clock.monotonic()
        result = "success"
        try:
            user = await self._find(headers, peer)
        except AuthenticationError:
            result = "error"
            raise
        finally:
            self._attempts.labels(result).inc()
            self._seconds.labels(result).observe(self._clock.monotonic() - begin)
        self._users.labels(_class_of(user.name)).inc()
        return user

    async def _find(self, headers: CIMultiDictProxy[str], peer: PeerCertificate | None) -> UserInfo:
        errors = []
        if peer is not None and self._header is not None:
            if not peer.chain & self._header_cas:
                errors.append("x509: certificate signed by unknown authority")
            elif self._header.allowed_names and peer.common_name not in self._header.allowed_names:
                errors.append(f"x509: subject with cn={peer.common_name} is not in the allowed list")
            elif user := _from_headers(headers, self._header):
                return user.authenticated()
        if peer is not None and self._client_cas:
            self._expiration.observe(max(0.0, peer.expires - self._clock.now()))
            if peer.chain & self._client_cas:
                if peer.common_name:
                    return UserInfo(peer.common_name, groups=peer.organizations).authenticated()
            else:
                errors.append("x509: certificate signed by unknown authority")
        token = _bearer_token(headers)
        if token and self._reviewer is not None:
            try:
                review = await self._review(token, self._reviewer)
            except ReviewError as error:
                errors.append(str(error))
            else:
                if review.user is not None:
                    return review.user.authenticated()
                errors.append("invalid bearer token")
        if errors:
            log.error("; ".join(errors), "Unable to authenticate the request")
            raise AuthenticationError("; ".join(errors))
        return ANONYMOUS

    async def _review(self, token: str, reviewer: Reviewer) -> TokenReview:
        begin = self._clock.monotonic()
        # The cache must not be a store of tokens.
        key = sha256(token.encode()).digest()
        review = self._cache.get(key)
        status = "miss" if review is None else "hit"
        try:
            if review is None:
                review = await self._flights.ask(key, lambda: self._fetch(key, token, reviewer))
        finally:
            self._cache_requests.labels(status).inc()
            self._cache_seconds.labels(status).observe(self._clock.monotonic() - begin)
        return review

    async def _fetch(self, key: bytes, token: str, reviewer: Reviewer) -> TokenReview:
        try:
            review = await self._retrying.ask(lambda: reviewer.review_token(token))
        except ReviewError:
            self._fetches.labels("error").inc()
            raise
        self._fetches.labels("ok").inc()
        self._cache.put(key, review, self._ttl)
        return review

    async def close(self) -> None:
        """Give up reviews under way."""
        await self._flights.close()


def _bearer_token(headers: CIMultiDictProxy[str]) -> str:
    scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _from_headers(headers: CIMultiDictProxy[str], config: RequestHeaderConfig) -> UserInfo | None:
    name = _first(headers, config.username_headers)
    if not name:
        return None
    groups = tuple(value for header in config.group_headers for value in headers.getall(header, ()))
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        for prefix in config.extra_prefixes:
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :]).lower()
                extra[key] = (*extra.get(key, ()), value)
    return UserInfo(name, _first(headers, config.uid_headers), groups, extra)


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def _class_of(name: str) -> str:
    """The label of a user: few values, whoever comes."""
    if name in _FAMILIAR_USERS:
        return name
    return "email_id" if "@" in name else "other"
