"""The HTTP server: one handler, dispatch by what the path says, answers as bytes.

`ControlPlane` is the whole API server: construct, `await start()`, use `url`, `await stop()`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import zlib
from pathlib import Path

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from skedge.clock import Clock, RealClock
from skedge.controlplane import bootstrap, discovery, kinds, normal
from skedge.controlplane.access import Access, User
from skedge.controlplane.api import Answer, Api
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, no_such_resource
from skedge.controlplane.journal import SqliteJournal
from skedge.controlplane.negotiate import Shape, accept, dump_yaml
from skedge.controlplane.reading import selection
from skedge.controlplane.request import Target, list_options, parse, split
from skedge.controlplane.store import Journal, Store, Stored, decode, encode
from skedge.controlplane.tls import ServerTLS
from skedge.controlplane.views import View
from skedge.controlplane.watch import BUFFER_LIMIT, Watch, Watches
from skedge.controlplane.writing import Body, gvk

log = logging.getLogger("skedge.controlplane")

BODY_LIMIT = 3 << 20
_GZIP_FROM, _GZIP_TO = 128 << 10, 32 << 20
_JSON = "application/json"
_HEADERS = {"Cache-Control": "no-cache, private", "Content-Type": _JSON}
_RETRY = 1.0  # seconds until a failed flush is tried again
_SLICE = 2_000  # items of a list written between two breaths of the loop


class ControlPlane:
    """An API server on a local port.

    `data_dir` keeps everything in SQLite; without it the state lives in memory. `access` decides who may do what (by
    default everybody may do everything). `clock` and `rng` stand for the machine's.
    """

    def __init__(
        self,
        port: int = 0,
        data_dir: Path | None = None,
        *,
        host: str = "127.0.0.1",
        tls: ServerTLS | None = None,
        access: Access | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        history: int = 20_000,
        bookmark_interval: float = 60.0,
        watch_buffer: int = BUFFER_LIMIT,
    ) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self._bookmark_interval = bookmark_interval
        self._watch_buffer = watch_buffer
        self._journal = SqliteJournal(data_dir, history) if data_dir is not None else None
        journal: Journal | None = self._journal
        self.store = Store(journal, history)
        self.cluster = Cluster(self.store, clock or RealClock(), rng or random.Random())
        self.access = access or Access.open()
        self.access.attach(self.cluster)
        self._api = Api(self.cluster, self.access)
        self._watches = Watches()
        self._runner: web.ServerRunner | None = None
        self._durable: asyncio.Future[None] | None = None
        self._flush_scheduled = False

    # --- life

    @property
    def url(self) -> str:
        """Where the server is reached once started."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    async def start(self) -> None:
        """Read back what a journal holds, make what every cluster has, and listen."""
        loop = asyncio.get_running_loop()
        if self._journal is not None:
            self._journal.restore(self.store)
        self.store.on_dirty = lambda: self._schedule_flush(loop)
        bootstrap.ensure(self.cluster, rbac=self.access.enforced)
        self.store.flush()
        server = web.Server(self._handle, request_factory=_request, handler_cancellation=True, keepalive_timeout=300.0)
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=2.0)
        await self._runner.setup()
        context = self.tls.context() if self.tls is not None else None
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=context, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """End all watches, finish what is being answered, close the journal."""
        self._watches.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self.store.flush()
        if self._journal is not None:
            self._journal.close()

    def _schedule_flush(self, loop: asyncio.AbstractEventLoop, delay: float = 0.0) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._durable = loop.create_future() if self._journal is not None else None
            if delay:
                loop.call_later(delay, self._flush, loop)
            else:
                loop.call_soon(self._flush, loop)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Flush the store; writers wait for the outcome. A journal that cannot be written is tried again."""
        self._flush_scheduled = False
        durable, self._durable = self._durable, None
        try:
            self.store.flush()
        except Exception as e:
            log.exception("writing to the journal failed, trying again in %s s", _RETRY)
            if durable is not None and not durable.done():
                durable.set_exception(e)
                durable.exception()  # nobody may be waiting
            self._schedule_flush(loop, _RETRY)
            return
        if durable is not None and not durable.done():
            durable.set_result(None)

    # --- requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._dispatch(request)
        except ApiError as e:
            return _failure(e)
        except ConnectionError:
            return web.Response(status=499)  # the client is gone: there is nobody to answer, and nothing to report
        except (asyncio.CancelledError, web.HTTPException):
            raise
        except Exception:
            log.exception("request failed: %s %s", request.method, request.raw_path[:200])
            return _failure(ApiError(500, "InternalError", "Internal error occurred: see the server's log"))

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        segments, query = split(request.raw_path)
        user = self.access.authenticate(request)
        root = segments[0] if segments else ""
        if (root == "api" and len(segments) > 2) or (root == "apis" and len(segments) > 3):
            target = parse(request.method, segments, query)
            if target is None:
                if not _served(segments):
                    return web.Response(
                        status=404, text="404 page not found\n", headers={"Cache-Control": "no-cache, private"}
                    )
                raise no_such_resource()
            self.access.authorize(user, target)
            try:
                return await self._resource(request, target, user)
            except ApiError as e:
                response = _failure(e)
                _warn(response, target)
                return response
        self.access.authorize_path(user, request.method, "/" + "/".join(segments))
        return self._other(request, segments, query)

    async def _resource(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        headers = request.headers
        verb = target.verb
        if verb == "watch":
            return await self._watch(request, target, accept(headers.get("Accept", "")))
        if verb == "list":
            return await self._list(request, target, accept(headers.get("Accept", "")))
        shape = accept(headers.get("Accept", ""))
        body = _NO_BODY
        if verb != "get":
            data = await _read(request)
            body = Body(data, headers.get("Content-Type", _JSON), headers.get("User-Agent", ""))
        answer = self._api.answer(target, body, user)
        if verb != "get" and self._durable is not None:
            await self._durable
        return await self._respond(request, target, answer, shape)

    async def _respond(
        self, request: web.BaseRequest, target: Target, answer: Answer, shape: Shape
    ) -> web.StreamResponse:
        if answer.stored is not None:
            include = target.query.get("includeObject", "")
            data = View(target.resource, shape, self.cluster.clock.now, include).body(answer.stored)
        else:
            data = answer.body
        if answer.content_type != _JSON:
            return web.Response(
                body=data, status=answer.code, headers={**_HEADERS, "Content-Type": answer.content_type}
            )
        if shape.yaml:
            return web.Response(body=dump_yaml(decode(data)), status=answer.code, headers=_YAML_HEADERS)
        response = web.Response(body=data, status=answer.code, headers=_HEADERS)
        _warn(response, target)
        if len(data) >= _GZIP_FROM:
            await _compress(request, response, data)
        return response

    # --- collections

    async def _list(self, request: web.BaseRequest, target: Target, shape: Shape) -> web.StreamResponse:
        self.store.flush()
        options = list_options(target, self.store.revision)
        page = await self._api.page(target, options)
        view = View(target.resource, shape, self.cluster.clock.now, target.query.get("includeObject", ""))
        if shape.as_ == "Table":
            data = view.table(page.items, page.meta)
        elif len(page.items) > _SLICE and not shape.yaml:
            return await self._stream_list(request, view, page.items, page.meta)
        else:
            before, after = view.list_parts(page.meta)
            data = before + view.items(page.items) + after
        if shape.yaml:
            return web.Response(body=dump_yaml(decode(data)), headers=_YAML_HEADERS)
        response = web.Response(body=data, headers=_HEADERS)
        if len(data) >= _GZIP_FROM:
            await _compress(request, response, data)
        return response

    async def _stream_list(
        self, request: web.BaseRequest, view: View, items: list[Stored], meta: dict[str, object]
    ) -> web.StreamResponse:
        """A list too long to be put together at once; its objects cannot change any more."""
        response = web.StreamResponse(headers=_HEADERS)
        response.enable_chunked_encoding()
        await response.prepare(request)
        before, after = view.list_parts(meta)
        await response.write(before)
        for i in range(0, len(items), _SLICE):
            piece = view.items(items[i : i + _SLICE])
            await response.write(piece if i == 0 else b"," + piece)
            await asyncio.sleep(0)
        await response.write(after)
        return response

    async def _watch(self, request: web.BaseRequest, target: Target, shape: Shape) -> web.StreamResponse:
        options = list_options(target, self.store.revision)
        chosen = selection(target)
        view = View(target.resource, shape, self.cluster.clock.now, target.query.get("includeObject", ""))
        watch = Watch(
            self.store,
            self.cluster.collection(target.resource.storage),
            view,
            chosen,
            zero=normal.zero(gvk(target.resource)),
            watches=self._watches,
            bookmark_interval=self._bookmark_interval,
            buffer_limit=self._watch_buffer,
        )
        initial = not options.revision and options.initial_events is not False
        initial = initial or options.initial_events is True
        timeout = options.timeout or 1800 + self.cluster.rng.random() * 1800
        return await watch.run(
            request,
            _HEADERS,
            revision=options.revision,
            initial=initial,
            bookmarks=options.bookmarks,
            initial_bookmark=bool(options.initial_events) and options.bookmarks,
            timeout=timeout,
        )

    # --- everything else

    def _other(self, request: web.BaseRequest, segments: list[str], query: dict[str, str]) -> web.StreamResponse:
        root = segments[0] if segments else ""
        if root in ("healthz", "livez", "readyz"):
            code, text = discovery.health(root, "verbose" in query, self._watches.stopping)
            return web.Response(text=text, status=code, headers={"Cache-Control": "no-cache, private"})
        if request.method not in ("GET", "HEAD"):
            raise ApiError(
                405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
            )
        if root == "openapi":
            return self._openapi(request, segments[1:])
        body = self._discovery(request, segments)
        if body is None:
            headers = {"Cache-Control": "no-cache, private"}
            return web.Response(status=404, text="404 page not found\n", headers=headers)
        return body

    def _discovery(self, request: web.BaseRequest, segments: list[str]) -> web.StreamResponse | None:
        data: bytes | None = None
        match segments:
            case ["version"]:
                data = encode(discovery.VERSION)
            case ["api"] | ["apis"]:
                if accept(request.headers.get("Accept", "")).discovery:
                    data, etag = discovery.aggregated(segments[0] == "api")
                    headers = {"Cache-Control": "public", "ETag": etag, "Vary": "Accept"}
                    if request.headers.get("If-None-Match") == etag:
                        return web.Response(status=304, headers=headers)
                    return web.Response(body=data, headers={**headers, "Content-Type": discovery.AGGREGATED})
                server = f"{self.host}:{self.port}"
                data = discovery.api_versions(server) if segments[0] == "api" else discovery.groups()
            case ["api", version]:
                data = discovery.resources("", version)
            case ["apis", group]:
                data = discovery.group(group)
            case ["apis", group, version]:
                data = discovery.resources(group, version)
            case []:
                data = encode(
                    {
                        "paths": [
                            "/api",
                            "/api/v1",
                            "/apis",
                            "/healthz",
                            "/livez",
                            "/openapi/v2",
                            "/openapi/v3",
                            "/readyz",
                            "/version",
                        ]
                    }
                )
        return None if data is None else web.Response(body=data, headers=_HEADERS)

    def _openapi(self, request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        from skedge.controlplane import fields

        headers = {"Vary": "Accept", "Content-Type": _JSON}
        if rest == ["v2"]:
            return web.Response(body=fields.openapi_v2(), headers=headers)
        if rest == ["v3"]:
            return web.Response(body=encode(fields.openapi_v3_index()), headers=_HEADERS)
        if rest[:1] == ["v3"]:
            try:
                version = "/".join(rest[2:])  # v1 of api/v1, apps/v1 of apis/apps/v1
                return web.Response(body=fields.openapi_v3(version), headers=headers)
            except KeyError:
                pass
        return web.Response(status=404, text="404 page not found\n", headers={"Cache-Control": "no-cache, private"})


def _served(segments: list[str]) -> bool:
    """Whether the path begins with a group version of this server."""
    group, version = ("", segments[1]) if segments[0] == "api" else (segments[1], segments[2])
    return version in kinds.GROUPS.get(group, {})


_NO_BODY = Body(b"", _JSON, "")
_YAML_HEADERS = {**_HEADERS, "Content-Type": "application/yaml"}


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT)


async def _read(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        text = f"Request entity too large: limit is {BODY_LIMIT}"
        raise ApiError(413, "RequestEntityTooLarge", text) from None


def _failure(error: ApiError) -> web.Response:
    headers = {**_HEADERS, **error.headers} if error.headers else _HEADERS
    return web.Response(body=encode(error.status()), status=error.code, headers=headers)


def _warn(response: web.Response, target: Target) -> None:
    for warning in target.warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')


async def _compress(request: web.BaseRequest, response: web.Response, data: bytes) -> None:
    """gzip a big body where the client takes it, off the loop."""
    if "gzip" not in request.headers.get("Accept-Encoding", "") or len(data) > _GZIP_TO:
        return

    def squeeze() -> bytes:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()

    response.body = await asyncio.to_thread(squeeze)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
