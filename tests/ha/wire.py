"""A replica's network: a proxy that can be cut, and writes down which request came when, and what became of it."""

from __future__ import annotations

import asyncio
import json
import time
from enum import Enum
from typing import Any

import aiohttp
from aiohttp import web


class Cut(Enum):
    """How a network fails."""

    NOT = "not"
    REFUSE = "refuse"  # connections break, new ones too
    SILENT = "silent"  # nothing passes and nobody is told; what was under way is lost


class Entry:
    """One request. Times are `time.monotonic()`; `status` is None if no answer came back from the server."""

    __slots__ = ("answered", "body", "came", "method", "path", "replica", "status")

    def __init__(self, replica: int, method: str, path: str, body: Any) -> None:
        self.replica, self.method, self.path, self.body = replica, method, path, body
        self.came = time.monotonic()
        self.answered: float | None = None
        self.status: int | None = None

    def __repr__(self) -> str:
        return f"replica {self.replica} at {self.came:.3f}: {self.method} {self.path} -> {self.status}"


class Wire:
    """Forwards to `target`; an async context manager. `log` may be shared by several."""

    def __init__(self, replica: int, target: str, log: list[Entry]) -> None:
        self._replica, self._target, self._log = replica, target, log
        self._cut = Cut.NOT
        self._changed = asyncio.Event()
        self._open: set[asyncio.Transport] = set()
        self._handling: set[asyncio.Task[Any]] = set()
        self.url = ""

    async def __aenter__(self) -> Wire:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
        self._runner = web.ServerRunner(web.Server(self._handle), access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.cut(Cut.REFUSE)
        for task in self._handling:
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        await self._session.close()
        await self._runner.cleanup()

    def cut(self, how: Cut) -> None:
        """Fail like this from now on; `Cut.NOT` heals. Connections that lived through a cut are broken by then."""
        self._cut = how
        if how is not Cut.SILENT:
            for transport in self._open:
                transport.abort()
            self._open.clear()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        data = await request.read()
        transport = request.transport
        assert transport is not None
        self._open.add(transport)
        entry = Entry(self._replica, request.method, request.raw_path, json.loads(data) if data else None)
        self._log.append(entry)
        try:
            await self._pass(transport)
            return await self._forward(request, entry, data, transport)
        except (aiohttp.ClientError, ConnectionError):
            transport.abort()
            return web.Response(status=503)

    async def _pass(self, transport: asyncio.Transport) -> None:
        """Raises ConnectionError if nothing passes, at once or when the network is back."""
        cut = self._cut
        while self._cut is Cut.SILENT:
            await self._changed.wait()
        if cut is not Cut.NOT or transport.is_closing():
            raise ConnectionError

    async def _forward(
        self, request: web.BaseRequest, entry: Entry, data: bytes, transport: asyncio.Transport
    ) -> web.StreamResponse:
        kept = {k: v for k, v in request.headers.items() if k.lower() in ("content-type", "accept", "user-agent")}
        async with self._session.request(
            request.method,
            self._target + request.raw_path,
            data=data or None,
            headers=kept,
            skip_auto_headers=("Content-Type", "Accept-Encoding"),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            entry.answered, entry.status = time.monotonic(), response.status
            headers = {k: v for k, v in response.headers.items() if k in ("Content-Type", "Retry-After")}
            if "watch=true" not in request.query_string:
                body = await response.read()
                await self._pass(transport)
                return web.Response(status=response.status, body=body, headers=headers)
            await self._pass(transport)
            stream = web.StreamResponse(status=response.status, headers=headers)
            await stream.prepare(request)
            async for chunk in response.content.iter_any():
                await self._pass(transport)
                await stream.write(chunk)
            return stream
