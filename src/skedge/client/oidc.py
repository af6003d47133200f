"""The `oidc` auth provider of a kubeconfig: an ID token, renewed with a refresh token at the issuer.

New tokens are written back to the kubeconfig, as kubectl does: issuers that rotate refresh tokens invalidate the old.
Upstream: `client-go/plugin/pkg/client/auth/oidc`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
import yaml

from skedge.client.credentials import RenewingCredentials, bearer
from skedge.client.errors import one_line
from skedge.client.kubeconfig import Fields
from skedge.client.tls import TlsConfig
from skedge.clock import Clock
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

EXPIRY_MARGIN = 10.0
"""Seconds before its end at which an ID token counts as expired."""


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""
    error: str = ""
    error_description: str = ""


class OidcProvider(RenewingCredentials):
    """`users[].user.auth-provider` with name `oidc`."""

    def __init__(self, config: Fields, user: str, *, clock: Clock | None = None) -> None:
        """`config` is the provider's `config` mapping, `user` the name of the user it belongs to."""
        super().__init__(clock)
        self._config, self._user = config, user
        self._issuer, self._client_id = config.text("idp-issuer-url"), config.text("client-id")
        for key, value in (("idp-issuer-url", self._issuer), ("client-id", self._client_id)):
            if not value:
                raise config.error(key, "must be set")
        self._secret = config.text("client-secret")
        self._id_token, self._refresh_token = config.text("id-token"), config.text("refresh-token")
        ca = "idp-certificate-authority"
        self._tls = TlsConfig(
            ca_data=config.data(f"{ca}-data"),
            ca_file=config.file_path(ca),
            origin=(("ca", config.where(f"{ca}-data" if f"{ca}-data" in config else ca)),),
        )
        config.text("extra-scopes")  # a refresh keeps the scopes that were granted
        config.refuse_rest()
        self._expires = _expiry(self._id_token) if self._id_token else 0.0

    def _due(self) -> bool:
        return self._clock.now() >= self._expires - EXPIRY_MARGIN

    async def _fetch(self, rejected: bool) -> None:
        if self._id_token and not rejected and not self._due():
            self.authorization = bearer(self._id_token)
            return
        if not self._refresh_token:
            if rejected:
                return
            raise self._config.error(
                "id-token", "is missing or expired, and there is no refresh-token to renew it with"
            )
        try:
            tokens = await self._ask_issuer()
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError) as error:
            raise self._config.error("idp-issuer-url", f"cannot renew the token: {one_line(error)}") from None
        self._id_token = tokens.id_token
        self._refresh_token = tokens.refresh_token or self._refresh_token
        self._expires = _expiry(self._id_token)
        self.authorization = bearer(self._id_token)
        try:
            await asyncio.to_thread(self._persist)
        except (OSError, yaml.YAMLError) as error:
            log.warning("Failed to write the renewed token", file=self._config.file, err=one_line(error))

    async def _ask_issuer(self) -> _Tokens:
        timeout = aiohttp.ClientTimeout(total=30)
        connector = aiohttp.TCPConnector(ssl=self._tls.context())
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=True) as session:
            discovery = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
            async with session.get(discovery) as response:
                body = await response.read()
                if response.status != 200:
                    raise self._config.error("idp-issuer-url", f"{discovery} answered {response.status}")
            metadata: Any = msgspec.json.decode(body)
            endpoint = metadata.get("token_endpoint") if isinstance(metadata, dict) else None
            if not isinstance(endpoint, str) or not endpoint:
                raise self._config.error("idp-issuer-url", f"{discovery} names no token_endpoint")
            form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
            pair = f"{quote(self._client_id, safe='')}:{quote(self._secret, safe='')}".encode()
            headers = {"Authorization": "Basic " + base64.b64encode(pair).decode()}
            status, tokens = await self._post(session, endpoint, form, headers)
            if status in (400, 401):  # some issuers take the client's secret in the form only
                form |= {"client_id": self._client_id} | ({"client_secret": self._secret} if self._secret else {})
                status, tokens = await self._post(session, endpoint, form, {})
        if status != 200 or not tokens.id_token:
            why = tokens.error_description or tokens.error or "no id_token in the answer"
            raise self._config.error("refresh-token", f"{endpoint} answered {status}: {why}")
        return tokens

    async def _post(
        self, session: aiohttp.ClientSession, url: str, form: dict[str, str], headers: dict[str, str]
    ) -> tuple[int, _Tokens]:
        async with session.post(url, data=form, headers=headers, allow_redirects=False) as response:
            body = await response.read()
        try:
            return response.status, msgspec.json.decode(body, type=_Tokens)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return response.status, _Tokens(error="the answer is not JSON")

    def _persist(self) -> None:
        """Put the tokens into the file the user came from; the file is replaced in one step."""
        file = Path(os.path.realpath(self._config.file))
        whole = yaml.safe_load(file.read_bytes())
        for entry in whole.get("users") or []:
            if entry.get("name") == self._user:
                entry["user"]["auth-provider"]["config"].update(
                    {"id-token": self._id_token, "refresh-token": self._refresh_token}
                )
                break
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                yaml.safe_dump(whole, out, sort_keys=False)
            os.chmod(name, file.stat().st_mode & 0o777)
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _expiry(token: str) -> float:
    """The `exp` claim of a JWT in epoch seconds; 0 when it cannot be read. The signature is the server's business."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0
