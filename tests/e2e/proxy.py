"""A proxy between scheduler and API server that writes down what passes, and can answer in the server's place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import web

Answer = tuple[int, Any]


class Recorded:
    """One request. `body` is decoded JSON, None without one."""

    __slots__ = ("agent", "body", "method", "path")

    def __init__(self, method: str, path: str, body: Any, agent: str) -> None:
        self.method, self.path, self.body, self.agent = method, path, body, agent

    def __repr__(self) -> str:
        return f"{self.method} {self.path}"


class RecordingProxy:
    """Forwards to `target`; an async context manager. `requests` are in the order in which they came.

    `answer` may answer in the server's place: None lets a request pass; `delay` is how many seconds it waits first.
    `down` cuts connections off instead.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.requests: list[Recorded] = []
        self.answer: Callable[[Recorded], Answer | None] = lambda request: None
        self.delay: Callable[[Recorded], float] = lambda request: 0.0
        self.down = False
        self.url = ""
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> RecordingProxy:
        connector = aiohttp.TCPConnector(limit=0, ssl=False)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        self._handlers: set[asyncio.Task[Any]] = set()
        server = web.Server(self._noted, handler_cancellation=True)
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._runner.cleanup()
        await self._session.close()

    async def _noted(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        return await self._handle(request)

    async def arrival(self, seconds: float) -> bool:
        """Waits for the next request; whether one came."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        data = await request.read()
        if self.down:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=503)
        recorded = Recorded(
            request.method, request.raw_path, json.loads(data) if data else None, request.headers.get("User-Agent", "")
        )
        self.requests.append(recorded)
        self._arrived.set()
        await asyncio.sleep(self.delay(recorded))
        answer = self.answer(recorded)
        if answer is not None:
            return web.json_response(answer[1], status=answer[0])
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() in ("authorization", "content-type", "accept", "user-agent")
        }
        async with self._session.request(
            request.method,
            self._target + request.raw_path,
            data=data or None,
            headers=headers,
            skip_auto_headers=("Content-Type", "Accept-Encoding"),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            kept = {name: value for name, value in response.headers.items() if name in ("Content-Type", "Retry-After")}
            if "watch=true" not in request.query_string:
                return web.Response(status=response.status, body=await response.read(), headers=kept)
            stream = web.StreamResponse(status=response.status, headers=kept)
            await stream.prepare(request)
            async for chunk in response.content.iter_any():
                await stream.write(chunk)
            return stream
