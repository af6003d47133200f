"""`RestClient`: verbs on paths, over a transport, with rate limit, retries and typed errors.

The hot path (`request`) takes and returns bytes. The verb helpers speak plain JSON values, whole, so that an object
read with them can be changed and written back without losing fields. Upstream: `client-go/rest`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from skedge.client import aio
from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import ClientError, ConnectionLost, DecodeError, api_error
from skedge.client.hooks import ClientHooks
from skedge.client.limiter import rate_limiter
from skedge.client.transport import DEFAULT_CONNECTIONS, HttpTransport, Stream, Transport
from skedge.clock import Clock, RealClock

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAX_RETRIES = 10

T = TypeVar("T")
Params = Mapping[str, str | int | bool]
Body = Any
"""Bytes are sent as they are, anything else is encoded as JSON."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class RestClient:
    """A client of one API server.

        async with RestClient.connect(load_kubeconfig()) as client:
            pods = await client.get("/api/v1/pods")

    Every method raises `ApiError` (see `errors`) when the server refuses, `ConnectionFailed` or `RequestTimeout` when
    it does not answer. Requests answered 429 or 5xx with Retry-After are sent again up to 10 times.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        qps: float = 50.0,
        burst: int = 100,
        timeout: float | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        hooks: ClientHooks | None = None,
    ) -> None:
        """`qps` < 0 means no limit. `timeout` (seconds) applies to requests that name none; the server is told."""
        self.transport = transport
        self.clock: Clock = clock or RealClock()
        self.rng = rng or random.Random()
        self.hooks = hooks
        self._timeout = timeout
        self._limiter = rate_limiter(qps, burst, self.clock)

    @classmethod
    def connect(
        cls,
        config: ClientConfig,
        *,
        user_agent: str = "skedge",
        connections: int = DEFAULT_CONNECTIONS,
        qps: float = 50.0,
        burst: int = 100,
        timeout: float | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        hooks: ClientHooks | None = None,
    ) -> RestClient:
        """A client over HTTP with its own pool of `connections`. Call it on the event loop; close it there."""
        transport = HttpTransport(config, user_agent=user_agent, connections=connections, clock=clock)
        return cls(transport, qps=qps, burst=burst, timeout=timeout, clock=clock, rng=rng, hooks=hooks)

    async def __aenter__(self) -> RestClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Body = None,
        content_type: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """Send one request; the body of the answer. `path` is percent-encoded already, `timeout` is in seconds."""
        if body is not None and type(body) is not bytes:
            body = _encode(body)
        if self._timeout is not None:
            if timeout is None:
                timeout = self._timeout
            params = {**(params or {}), "timeout": go_duration(timeout)}
        target = f"{path}?{encode_params(params)}" if params else path
        hooks, host = self.hooks, self.transport.host
        attempt = 0
        while True:
            if self._limiter is not None:
                waited = await self._limiter.wait()
                if hooks is not None:
                    hooks.throttled(method, host, waited)
            start = self.clock.monotonic() if hooks is not None else 0.0
            try:
                response = await self.transport.request(method, target, body, content_type, timeout)
            except ClientError as error:
                if hooks is not None:
                    hooks.request(method, host, "<error>", self.clock.monotonic() - start, len(body or b""), 0)
                if method != "GET" or not isinstance(error, ConnectionLost) or attempt >= MAX_RETRIES:
                    raise
                delay, code = 1.0, "<error>"
            else:
                status = response.status
                if hooks is not None:
                    seconds = self.clock.monotonic() - start
                    hooks.request(method, host, str(status), seconds, len(body or b""), len(response.body))
                if 200 <= status < 300:
                    return response.body
                after = retry_after(response.headers.get("retry-after"))
                if after is None or not (status == 429 or status >= 500) or attempt >= MAX_RETRIES:
                    raise api_error(status, response.body, retry_after=after, what=f"{method} {path}")
                delay, code = after, str(status)
            attempt += 1
            if hooks is not None:
                hooks.retried(method, host, code)
            await aio.sleep(self.clock, delay)

    async def stream(self, path: str, params: Params, *, idle_timeout: float) -> AbstractAsyncContextManager[Stream]:
        """Open a streaming GET once the rate limit allows; used by watches. An error status is left to the caller."""
        if self._limiter is not None:
            await self._limiter.wait()
        return self.transport.stream(f"{path}?{encode_params(params)}", idle_timeout)

    async def get(self, path: str, params: Params | None = None) -> Any:
        """One object, whole, as plain JSON values."""
        return decode(await self.request("GET", path, params=params))

    async def get_as(self, kind: type[T], path: str, params: Params | None = None) -> T:
        """One object, or a list, decoded into `kind`; fields `kind` does not know are dropped: never write it back."""
        return decode_as(kind, await self.request("GET", path, params=params))

    async def list(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> dict[str, Any]:
        """All objects at a path, fetched in pages of `limit`, as one list (`items`, `metadata.resourceVersion`)."""
        params: dict[str, str | int] = {"limit": limit} if limit > 0 else {}
        if label_selector:
            params["labelSelector"] = label_selector
        if field_selector:
            params["fieldSelector"] = field_selector
        first: dict[str, Any] = await self.get(path, params)
        items = first["items"] = first.get("items") or []
        page = first
        while token := (page.get("metadata") or {}).get("continue"):
            page = await self.get(path, {**params, "continue": token})
            items.extend(page.get("items") or [])
        for name in ("continue", "remainingItemCount"):
            first.get("metadata", {}).pop(name, None)
        return first

    async def create(self, path: str, body: Body, params: Params | None = None) -> Any:
        """POST `body` to a collection (or a subresource such as `binding`)."""
        return decode(await self.request("POST", path, body=body, params=params))

    async def update(self, path: str, body: Body, params: Params | None = None) -> Any:
        """PUT the whole object; with the resourceVersion it was read at, a change in between is a `Conflict`."""
        return decode(await self.request("PUT", path, body=body, params=params))

    async def patch(
        self, path: str, body: Body, *, content_type: str = MERGE_PATCH, params: Params | None = None
    ) -> Any:
        """PATCH; `content_type` names the patch format."""
        return decode(await self.request("PATCH", path, body=body, content_type=content_type, params=params))

    async def delete(self, path: str, body: Body = None, params: Params | None = None) -> Any:
        """DELETE; `body` are DeleteOptions (preconditions, grace period)."""
        return decode(await self.request("DELETE", path, body=body, params=params))


def decode(body: bytes) -> Any:
    """JSON as plain values. Raises DecodeError."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError(f"the server's answer is not JSON: {error}") from None


def decode_as(kind: type[T], body: bytes) -> T:
    """JSON into `kind`. Raises DecodeError with the path of the field that does not fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError(f"the server's answer is no {kind.__name__}: {error}") from None


def encode_params(params: Params) -> str:
    """A query string, sorted by name, booleans as `true` and `false`."""
    parts = []
    for name in sorted(params):
        value = params[name]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        parts.append(f"{name}={quote(text, safe='')}")
    return "&".join(parts)


def go_duration(seconds: float) -> str:
    """`318` → `5m18s`, as the server's `timeout` parameter is written; whole seconds, at least one."""
    minutes, rest = divmod(max(1, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


def retry_after(header: str | None) -> float | None:
    """A Retry-After header in seconds; None when absent or not a number."""
    if header is None or not header.strip().isdigit():
        return None
    return float(header)
