"""What every request goes through before its handler: recovery, logging, authentication, authorisation.

Upstream: `cmd/kube-scheduler/app/server.go: buildHandlerChain`, `apiserver/pkg/endpoints/filters`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from multidict import CIMultiDictProxy

from skedge.clock import Clock
from skedge.serving import answers
from skedge.serving.answers import Answer, BodyTooLarge, Handler, Request
from skedge.serving.authentication import AuthenticationError, PeerCertificate
from skedge.serving.authorization import Decision
from skedge.serving.users import ReviewError, UserInfo
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

_NO_CACHING: Final = {"Cache-Control": "no-cache, private"}


class AuthenticatorPort(Protocol):
    """Finds out who asks: `authentication.Authenticator`, or a test's."""

    async def authenticate(self, headers: CIMultiDictProxy[str], peer: PeerCertificate | None) -> UserInfo: ...


class AuthorizerPort(Protocol):
    """Decides whether he may: `authorization.Authorizer`, or a test's."""

    async def authorize(self, user: UserInfo, verb: str, path: str) -> Decision: ...


class Guard:
    """Answers a request itself, or lets the handler do it. Without an authenticator (plain loopback) all may pass."""

    def __init__(
        self,
        handler: Handler,
        clock: Clock,
        authenticator: AuthenticatorPort | None = None,
        authorizer: AuthorizerPort | None = None,
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def __call__(
        self, request: Request, headers: CIMultiDictProxy[str], peer: PeerCertificate | None = None
    ) -> Answer:
        """The answer; no exception leaves here."""
        begin = self._clock.monotonic()
        try:
            answer = await self._check(request, headers, peer)
        except BodyTooLarge:
            answer = answers.error("http: request body too large", 413)
        except Exception as error:
            log.error(error, "Request handler broke", path=request.path, kind=type(error).__name__)
            answer = answers.error("This request made the handler break; see the log", 500)
        if log.v(3):
            latency = f"{(self._clock.monotonic() - begin) * 1000:.3f}ms"
            log.info("HTTP", verb=request.method, URI=request.path, latency=latency, resp=answer.status)
        return replace(answer, headers={**_NO_CACHING, **answer.headers})

    async def _check(self, request: Request, headers: CIMultiDictProxy[str], peer: PeerCertificate | None) -> Answer:
        if self._authenticator is None or self._authorizer is None:
            return await self._handler(request)
        try:
            user = await self._authenticator.authenticate(headers, peer)
        except AuthenticationError:
            return answers.status(401, "Unauthorized", "Unauthorized")
        verb = request.method.lower()
        try:
            decision = await self._authorizer.authorize(user, verb, request.path)
        except ReviewError as error:
            return answers.error(f"Internal Server Error: {_quoted(request.path)}: {error}", 500)
        if not decision.allowed:
            message = f"forbidden: User {_quoted(user.name)} cannot {verb} path {_quoted(request.path)}"
            no_details: Mapping[str, Any] = {}
            message += f": {decision.reason}" if decision.reason else ""
            return answers.status(403, "Forbidden", message, no_details)
        return await self._handler(request)


def _quoted(text: str) -> str:
    """As Go's %q has it, without what a browser could take for markup."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps(plain, ensure_ascii=False)
