"""The embedded API server without HTTP: what a client's transport asks is answered in memory, in virtual time.

    server = MemoryServer(clock, rng)
    client = RestClient(server.transport(), clock=clock)

Store, validation, subresources and watch lines are those of `controlplane`; only sockets are missing. `crash` is an API
server that goes away and comes back with its storage intact.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from skedge.client.errors import ConnectionLost, ConnectionRefused, RequestTimeout
from skedge.client.http1 import Response
from skedge.client.transport import Stream
from skedge.clock import Clock
from skedge.controlplane import bootstrap, discovery, normal
from skedge.controlplane.access import ANONYMOUS, Access
from skedge.controlplane.api import Api
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, expired, no_such_resource
from skedge.controlplane.negotiate import PLAIN
from skedge.controlplane.reading import selection
from skedge.controlplane.request import Target, list_options, parse, split
from skedge.controlplane.store import Compacted, Store, decode, encode
from skedge.controlplane.views import View
from skedge.controlplane.watch import BUFFER_LIMIT, Watcher
from skedge.controlplane.writing import Body, gvk
from skedge.testing.faults import Refused

HOST = "memory"
_JSON = "application/json"
_BOOKMARK_SECONDS = 60.0


class MemoryServer:
    """One API server. Without `watch_list` it refuses `sendInitialEvents`, as servers before 1.32 do."""

    def __init__(self, clock: Clock, rng: random.Random, *, history: int = 2_000, watch_list: bool = True) -> None:
        self.store = Store(None, history)
        self.cluster = Cluster(self.store, clock, rng)
        access = Access.open()
        access.attach(self.cluster)
        self._api = Api(self.cluster, access)
        self.watch_list = watch_list
        self.down = False
        self._streams: dict[_MemoryStream, None] = {}  # in order: a set of objects has another one each time
        self._flush_scheduled = False
        bootstrap.ensure(self.cluster, rbac=False)
        self.store.flush()
        self.store.on_dirty = self._schedule_flush

    def transport(self) -> MemoryTransport:
        """A way in for one client."""
        return MemoryTransport(self)

    def crash(self, seconds: float) -> None:
        """Breaks every connection and refuses new ones for so long."""
        self.down = True
        for stream in list(self._streams):
            stream.broken = True
            stream.watcher.wake.set()
        asyncio.get_running_loop().call_later(seconds, self._up)

    def _up(self) -> None:
        self.down = False

    def compact(self) -> None:
        """Forgets history: watches from any older version get 410."""
        self.store.flush()
        self.store.compact(self.store.revision)

    def do(self, method: str, path: str, body: Any = None, content_type: str = _JSON) -> Any:
        """A request of somebody else, at once: the decoded answer. Raises the API server's ApiError."""
        answer = self.answer(method, path, None if body is None else encode(body), content_type)
        self.store.flush()
        return decode(answer.body)

    def answer(self, method: str, target: str, body: bytes | None, content_type: str) -> Response:
        """Does what a request other than list and watch says. Raises ApiError."""
        found = self._target(method, target)
        if found is None:
            return Response(200, {}, self._discovered(target))
        answer = self._api.answer(found, Body(body or b"", content_type, "skedge"), ANONYMOUS)
        data = answer.body
        if answer.stored is not None:
            data = View(found.resource, PLAIN, self.cluster.clock.now).body(answer.stored)
        return Response(answer.code, {}, data)

    def _target(self, method: str, target: str) -> Target | None:
        segments, query = split(target)
        if len(segments) <= (2 if segments[:1] == ["api"] else 3):
            return None
        found = parse(method, segments, query)
        if found is None:
            raise no_such_resource()
        return found

    def _discovered(self, target: str) -> bytes:
        segments, _ = split(target)
        found = discovery.resources("", segments[1]) if segments[0] == "api" else discovery.resources(*segments[1:3])
        if found is None:
            raise no_such_resource()
        return found

    async def list(self, target: Target) -> Response:
        """A page of a list. Raises ApiError."""
        self.store.flush()
        page = await self._api.page(target, list_options(target, self.store.revision))
        view = View(target.resource, PLAIN, self.cluster.clock.now)
        before, after = view.list_parts(page.meta)
        return Response(200, {}, before + view.items(page.items) + after)

    def watch(self, target: Target, idle_timeout: float) -> _MemoryStream:
        """Opens a watch; it ends by `close`. Raises ApiError."""
        options = list_options(target, self.store.revision)
        if options.initial_events and not self.watch_list:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise ApiError(422, "Invalid", text)
        self.store.flush()
        stream = _MemoryStream(self, target, idle_timeout)
        stream.begin(options.revision, options.initial_events, options.bookmarks)
        self._streams[stream] = None
        return stream

    def forget(self, stream: _MemoryStream) -> None:
        self._streams.pop(stream, None)

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        self.store.flush()


LATENCY = 0.0005
"""Seconds a request takes to reach the server, or to be refused: trying again at once must not stop the clock."""


class MemoryTransport:
    """A `Transport` to a `MemoryServer`."""

    host = HOST

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        server = self._server
        await asyncio.sleep(LATENCY)
        if server.down:
            raise ConnectionRefused(f"cannot connect to {HOST}: connection refused")
        try:
            found = server._target(method, target)
            if found is not None and found.verb == "list":
                return await server.list(found)
            return server.answer(method, target, body, content_type or _JSON)
        except ApiError as error:
            return failure(error)

    @asynccontextmanager
    async def stream(self, target: str, idle_timeout: float) -> AsyncIterator[Stream]:
        server = self._server
        await asyncio.sleep(LATENCY)
        if server.down:
            raise ConnectionRefused(f"cannot connect to {HOST}: connection refused")
        try:
            found = server._target("GET", target)
            if found is None:
                raise no_such_resource()
            stream = server.watch(found, idle_timeout)
        except ApiError as error:
            yield Refused(failure(error))
            return
        try:
            yield stream
        finally:
            stream.close()

    async def close(self) -> None:
        pass


def failure(error: ApiError) -> Response:
    """What the server says when it refuses."""
    return Response(error.code, {name.lower(): value for name, value in error.headers.items()}, encode(error.status()))


class _MemoryStream:
    """An open watch: the lines that wait, then those that come."""

    def __init__(self, server: MemoryServer, target: Target, idle_timeout: float) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.broken = False
        self._server = server
        self._idle = idle_timeout
        self._collection = server.cluster.collection(target.resource.storage)
        self._view = View(target.resource, PLAIN, server.cluster.clock.now)
        self._zero = normal.zero(gvk(target.resource))
        self._waiting: deque[bytes] = deque()
        self._ended = False
        chosen = selection(target)
        self.watcher = Watcher(self._view, chosen, server.store.revision, BUFFER_LIMIT, overflow=lambda: None)
        self._collection.listeners.append(self.watcher.offer)
        loop = asyncio.get_running_loop()
        self._end = loop.time() + int(target.query.get("timeoutSeconds", "1800"))
        self._bookmark = loop.time() + _BOOKMARK_SECONDS

    def begin(self, revision: int | None, initial_events: bool | None, bookmarks: bool) -> None:
        """Puts what the watch begins with in line."""
        store, view, selected = self._server.store, self._view, self.watcher.selection
        if not bookmarks:
            self._bookmark = self._end
        if initial_events or (not revision and initial_events is not False):
            found, _ = self._collection.page(selected, "", 0, None)
            self._waiting.extend(view.line("ADDED", stored) for stored in found)
            if initial_events and bookmarks:
                self._waiting.append(view.bookmark(store.revision, self._zero, initial_end=True))
        elif revision is not None:
            self.watcher.start = max(store.revision, revision)
            try:
                changes = self._collection.since(revision)
            except Compacted as error:
                said = expired(f"too old resource version: {revision} ({error.oldest})").status()
                self._waiting.append(encode({"type": "ERROR", "object": said}) + b"\n")
                self._ended = True
                return
            lines = (view.change_line(change, selected) for change in changes)
            self._waiting.extend(line for line in lines if line is not None)

    async def next_chunk(self) -> bytes:
        await asyncio.sleep(0)
        loop, watcher = asyncio.get_running_loop(), self.watcher
        silent_until = loop.time() + self._idle
        while True:
            if self.broken:
                raise ConnectionLost(f"the connection to {HOST} broke")
            if self._waiting:
                chunk = b"".join(self._waiting)
                self._waiting.clear()
                return chunk
            if self._ended:
                return b""
            if watcher.lines:
                return watcher.take()
            now = loop.time()
            if now >= self._end:
                return b""
            if now >= silent_until:
                raise RequestTimeout(f"{HOST} did not answer in time")
            if now >= self._bookmark:
                self._bookmark = now + _BOOKMARK_SECONDS
                self._server.store.flush()
                if not watcher.lines:
                    return self._view.bookmark(self._server.store.revision, self._zero, initial_end=False)
                continue
            watcher.wake.clear()
            timer = loop.call_at(min(self._end, self._bookmark, silent_until), watcher.wake.set)
            try:
                await watcher.wake.wait()
            finally:
                timer.cancel()

    async def read(self) -> bytes:
        return await self.next_chunk()

    def close(self) -> None:
        self._collection.listeners.remove(self.watcher.offer)
        self._server.forget(self)
