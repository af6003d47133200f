"""Who we are: bearer tokens, token files, basic auth, and their renewal; impersonation headers.

Exec plugins are in `exec_plugin`, OIDC in `oidc`, the choice among them in `clientconfig`.
Upstream: `client-go/transport` (round_trippers.go, token_source.go).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from skedge.client.errors import KubeconfigError, one_line
from skedge.clock import Clock, RealClock
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

TOKEN_FILE_PERIOD = 60.0
"""Seconds after which a token file is read again."""


class Credentials(Protocol):
    """What a transport sends along. Reading the attributes is free; `refresh` may run a plugin or ask a server.

    `generation` grows with every renewal, so that of many requests refused together one renews and the others see it.
    """

    authorization: str
    certificate: tuple[bytes, bytes] | None
    generation: int

    def fresh(self) -> bool:
        """False when `refresh` must be awaited before the next request."""
        ...

    async def refresh(self, rejected: int | None = None) -> bool:
        """Renew. `rejected` is the generation a 401 came back for. True when it is worth trying again."""
        ...


class StaticCredentials:
    """Nothing, a fixed token, or basic auth: what never changes."""

    certificate: tuple[bytes, bytes] | None = None
    generation = 0

    def __init__(self, authorization: str = "") -> None:
        self.authorization = authorization

    def fresh(self) -> bool:
        return True

    async def refresh(self, rejected: int | None = None) -> bool:
        return False


class RenewingCredentials:
    """Base of credentials that are fetched: one fetch at a time, renewed when due and after a 401.

    A subclass implements `_fetch`, which sets the attributes, and `_due`.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.authorization = ""
        self.certificate: tuple[bytes, bytes] | None = None
        self.generation = 0
        self._clock: Clock = clock or RealClock()
        self._lock = asyncio.Lock()

    def fresh(self) -> bool:
        return self.generation > 0 and not self._due()

    async def refresh(self, rejected: int | None = None) -> bool:
        async with self._lock:
            if rejected is None:
                if self.fresh():
                    return True
            elif self.generation != rejected:
                return True
            before = (self.authorization, self.certificate)
            await self._fetch(rejected is not None)
            self.generation += 1
            return (self.authorization, self.certificate) != before

    def _due(self) -> bool:
        raise NotImplementedError

    async def _fetch(self, rejected: bool) -> None:
        raise NotImplementedError


class TokenFile(RenewingCredentials):
    """A bearer token in a file that somebody else rotates: read every minute and after a 401."""

    def __init__(self, path: str, origin: str, *, fallback: str = "", clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._path, self._origin = path, origin
        self._fallback = fallback
        self._read_at = 0.0

    def _due(self) -> bool:
        return self._clock.monotonic() - self._read_at >= TOKEN_FILE_PERIOD

    async def _fetch(self, rejected: bool) -> None:
        self._read_at = self._clock.monotonic()
        try:
            token = (await asyncio.to_thread(Path(self._path).read_text, "utf-8")).strip()
            if not token:
                raise KubeconfigError(f"{self._origin}: {self._path}: the file holds no token")
        except (OSError, UnicodeDecodeError, KubeconfigError) as error:
            why = error.strerror.lower() if isinstance(error, OSError) and error.strerror else one_line(error)
            problem = why if isinstance(error, KubeconfigError) else f"{self._origin}: {self._path}: {why}"
            if not (self.authorization or self._fallback):
                raise KubeconfigError(problem) from None
            log.error(problem, "Unable to rotate token, keeping the last one")
            self.authorization = self.authorization or bearer(self._fallback)
            return
        self.authorization = bearer(token)


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")


_TOKEN_CHARACTERS = frozenset(b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def impersonation(
    user: str, uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, str], ...]:
    """The headers that ask the server to act as somebody else; none without `user`."""
    if not user:
        return ()
    headers = [("Impersonate-User", user)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    for key, values in extra.items():
        name = "".join(chr(c) if c in _TOKEN_CHARACTERS else f"%{c:02X}" for c in key.lower().encode())
        headers += [(f"Impersonate-Extra-{name}", value) for value in values]
    return tuple(headers)
