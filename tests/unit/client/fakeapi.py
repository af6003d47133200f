"""A small API server in memory: lists, watches, writes, faults on demand; over a transport of its own or HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from aiohttp import web

from skedge.client.rest import RestClient
from skedge.client.transport import Response, Stream
from skedge.clock import VirtualClock

_PATH = re.compile(r"^(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?$")


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(30):
        await asyncio.sleep(0)


async def advance(clock: VirtualClock, seconds: float) -> None:
    """Move virtual time, letting tasks run at every timer on the way."""
    target = clock.monotonic() + seconds
    await settle()
    while (due := clock.next_timer()) is not None and due <= target:
        clock.advance(max(0.0, due - clock.monotonic()))
        await settle()
    clock.advance(max(0.0, target - clock.monotonic()))
    await settle()


def status(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return body | {"message": message or reason, "details": details}


@dataclass
class Request:
    method: str
    path: str
    params: dict[str, str]
    body: Any
    content_type: str = ""


@dataclass
class Reply:
    """A canned answer; what a fault returns instead of the real one."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Fault = Callable[[Request], Reply | Exception | None]


class WatchStream:
    """One open watch. `queue` holds chunks, an exception to raise, or None to end."""

    def __init__(self, request: Request, namespace: str) -> None:
        self.request, self.namespace = request, namespace
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def send(self, kind: str, obj: Any) -> None:
        self.queue.put_nowait(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    async def next_chunk(self) -> bytes:
        item = await self.queue.get()
        if isinstance(item, Exception):
            raise item
        return item or b""

    async def read(self) -> bytes:
        return b""


class FakeApi:
    """`requests` records everything; `faults` are asked first, in order, until one has an answer."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}  # (collection, namespace, name)
        self.log: list[tuple[int, str, str, dict[str, Any]]] = []  # (version, collection, type, object)
        self.version = 100
        self.compacted = 0
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.watches: list[tuple[str, WatchStream]] = []
        self.supports_watch_list = True
        self.changed = asyncio.Event()
        self.page_limit = 0  # > 0: pages even for resourceVersion=0

    def fail(self, *replies: Reply | Exception, method: str = "", path: str = "", watch: bool | None = None) -> None:
        """Answer the next matching requests with `replies`, one each."""
        waiting = list(replies)

        def fault(request: Request) -> Reply | Exception | None:
            is_watch = request.params.get("watch") == "true"
            if not waiting or (method and request.method != method) or path not in request.path:
                return None
            if watch is not None and is_watch != watch:
                return None
            return waiting.pop(0)

        self.faults.append(fault)

    def put(self, collection: str, obj: dict[str, Any], kind: str = "") -> dict[str, Any]:
        """Create or change an object, as somebody else would."""
        meta = obj["metadata"]
        key = (collection, meta.get("namespace", ""), meta["name"])
        self.version += 1
        stored = obj | {"metadata": meta | {"resourceVersion": str(self.version)}}
        stored["metadata"].setdefault("uid", f"uid-{self.version}")
        self._record(collection, kind or ("MODIFIED" if key in self.objects else "ADDED"), stored)
        self.objects[key] = stored
        self.changed.set()
        return stored

    def remove(self, collection: str, namespace: str, name: str, *, silently: bool = False) -> None:
        obj = self.objects.pop((collection, namespace, name))
        self.version += 1
        if not silently:
            gone = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}
            self._record(collection, "DELETED", gone)

    def _record(self, collection: str, kind: str, obj: dict[str, Any]) -> None:
        self.log.append((self.version, collection, kind, obj))
        for watched, stream in self.watches:
            if watched == collection and stream.namespace in ("", obj["metadata"].get("namespace", "")):
                stream.send(kind, obj)

    def end_watches(self, how: Exception | None = None) -> None:
        for _, stream in self.watches:
            stream.queue.put_nowait(how)
        self.watches.clear()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait, with real sockets, until the objects are as they should be."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def seen(self, method: str = "", path: str = "") -> list[Request]:
        return [r for r in self.requests if (not method or r.method == method) and path in r.path]

    def request(
        self, method: str, target: str, body: bytes | None, content_type: str
    ) -> Reply | Exception | WatchStream:
        url = urlsplit(target)
        params = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        request = Request(method, unquote(url.path), params, json.loads(body) if body else None, content_type)
        self.requests.append(request)
        for fault in self.faults:
            if (answer := fault(request)) is not None:
                return answer
        match = _PATH.match(request.path)
        if match is None:
            return Reply(200, {}) if request.path.startswith("/apis/events") else Reply(404, status(404, "NotFound"))
        prefix, namespace, plural, name, _ = match.groups()
        collection = f"{prefix}/{plural}"
        if name is None and method == "GET":
            if params.get("watch") == "true":
                return self._watch(request, collection, namespace or "")
            return self._list(request, collection, namespace or "")
        return self._one(request, collection, namespace or "", name or "")

    def _select(self, collection: str, namespace: str) -> list[dict[str, Any]]:
        return [o for (c, ns, _), o in self.objects.items() if c == collection and namespace in ("", ns)]

    def _list(self, request: Request, collection: str, namespace: str) -> Reply:
        version, token = request.params.get("resourceVersion", ""), request.params.get("continue", "")
        if version not in ("", "0") and int(version) < self.compacted:
            return Reply(410, status(410, "Expired", "too old resource version"))
        items = self._select(collection, namespace)
        limit = int(request.params.get("limit", "0"))
        if version == "0":
            limit = min(limit, self.page_limit)
        start = int(token) if token else 0
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if limit and start + limit < len(items):
            meta["continue"] = str(start + limit)
        items = items[start : start + limit] if limit else items[start:]
        return Reply(200, {"kind": "List", "metadata": meta, "items": items or None})

    def _watch(self, request: Request, collection: str, namespace: str) -> Reply | WatchStream:
        initial = request.params.get("sendInitialEvents") == "true"
        if initial and not self.supports_watch_list:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return Reply(422, status(422, "Invalid", message))
        version = request.params.get("resourceVersion", "")
        stream = WatchStream(request, namespace)
        if version and int(version) < self.compacted:
            stream.send("ERROR", status(410, "Expired", f"too old resource version: {version} ({self.compacted})"))
            stream.queue.put_nowait(None)
            return stream
        if initial:
            for obj in self._select(collection, namespace):
                stream.send("ADDED", obj)
            end = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": str(self.version)}
            stream.send("BOOKMARK", {"metadata": end, "spec": {"containers": None}})
        else:
            for at, logged, kind, obj in self.log:
                if logged == collection and at > int(version or 0) and namespace in ("", obj["metadata"]["namespace"]):
                    stream.send(kind, obj)
        self.watches.append((collection, stream))
        return stream

    def _one(self, request: Request, collection: str, namespace: str, name: str) -> Reply:
        body = request.body
        if request.method == "POST":
            name = body["metadata"]["name"]
            if (collection, namespace, name) in self.objects:
                return Reply(409, status(409, "AlreadyExists", f'"{name}" already exists'))
            return Reply(201, self.put(collection, body | {"metadata": body["metadata"] | {"namespace": namespace}}))
        found = self.objects.get((collection, namespace, name))
        if found is None:
            return Reply(404, status(404, "NotFound", f'"{name}" not found'))
        if request.method == "PUT":
            if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return Reply(409, status(409, "Conflict", f'"{name}": the object has been modified'))
            return Reply(200, self.put(collection, body))
        if request.method == "PATCH":
            return Reply(200, self.put(collection, merge(found, body)))
        if request.method == "DELETE":
            self.remove(collection, namespace, name)
        return Reply(200, found)


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    merged = target | {key: merge(target.get(key), value) for key, value in patch.items()}
    return {key: value for key, value in merged.items() if value is not None}


class MemoryTransport:
    """The fake server without sockets: virtual time works."""

    host = "fake"

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.idle_timeouts: list[float] = []

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        await asyncio.sleep(0)
        reply = self.api.request(method, target, body, content_type)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, Reply)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return Response(reply.status, headers, json.dumps(reply.body).encode())

    @asynccontextmanager
    async def stream(self, target: str, idle_timeout: float) -> AsyncIterator[Stream]:
        self.idle_timeouts.append(idle_timeout)
        await asyncio.sleep(0)
        reply = self.api.request("GET", target, None, "")
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Reply):
            yield _Done(reply.status, reply.headers, json.dumps(reply.body).encode())
            return
        try:
            yield reply
        finally:
            self.api.watches = [(c, s) for c, s in self.api.watches if s is not reply]

    async def close(self) -> None:
        pass


@dataclass
class _Done:
    status: int
    headers: Mapping[str, str]
    body: bytes

    async def next_chunk(self) -> bytes:
        body, self.body = self.body, b""
        return body

    async def read(self) -> bytes:
        return self.body


def memory_client(api: FakeApi, clock: VirtualClock, **options: Any) -> RestClient:
    options.setdefault("qps", -1)
    return RestClient(MemoryTransport(api), clock=clock, **options)


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[str]:
    """The fake server over HTTP; yields its URL."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()
        reply = api.request(request.method, request.raw_path, body or None, request.content_type)
        if isinstance(reply, Exception):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if isinstance(reply, Reply):
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while chunk := await reply.next_chunk():
                await response.write(chunk)
        finally:
            api.watches = [(c, s) for c, s in api.watches if s is not reply]
        return response

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        api.end_watches()
        await settle()
        await runner.cleanup()
        await settle()
