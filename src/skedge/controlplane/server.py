"""The HTTP server: one handler, dispatch by what the path says, answers as bytes.

`ControlPlane` is the whole API server: construct, `await start()`, use `url`, `await stop()`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from skedge.clock import Clock, RealClock
from skedge.controlplane import bootstrap, discovery, documents, kinds, normal
from skedge.controlplane.access import Access, User
from skedge.controlplane.api import Answer, Api
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.delivery import HEADERS, JSON_TYPE, send, send_list, send_yaml
from skedge.controlplane.errors import ApiError, bad_request, no_such_resource
from skedge.controlplane.journal import SqliteJournal
from skedge.controlplane.negotiate import Shape, accept, load_yaml, unreadable
from skedge.controlplane.reading import selection
from skedge.controlplane.request import TRUE, Target, list_options, parse, split
from skedge.controlplane.store import Journal, Store, encode
from skedge.controlplane.tls import ServerTLS
from skedge.controlplane.views import View
from skedge.controlplane.watch import BUFFER_LIMIT, Watch, Watches
from skedge.controlplane.writing import Body, gvk

log = logging.getLogger("skedge.controlplane")

BODY_LIMIT = 3 << 20
_LONG_YAML = 32 << 10
_RETRY = 1.0  # seconds until a failed flush is tried again


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
        self.is_new = True  # nothing was read back from a journal
        self._watches = Watches()
        # one thread each: more would leave the loop less of the interpreter
        self._beside, self._answers = ThreadPoolExecutor(1, "long-bodies"), ThreadPoolExecutor(1, "long-answers")
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
        self.is_new = not self.store.collection("namespaces").objects
        self.store.on_dirty = lambda: self._schedule_flush(loop)
        bootstrap.ensure(self.cluster, rbac=self.access.enforced)
        self.store.flush()
        server = web.Server(
            self._handle, request_factory=_request, handler_cancellation=True, keepalive_timeout=300.0, logger=_http_log
        )
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
        for executor in (self._beside, self._answers):
            executor.shutdown(wait=False, cancel_futures=True)
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
            return _pretty(request, await self._dispatch(request))
        except ApiError as e:
            return _pretty(request, _failure(e))
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
            content_type = headers.get("Content-Type", JSON_TYPE)
            data = await _read(request)
            if len(data) > _LONG_YAML and "yaml" in content_type:
                data = await self._as_json(data, content_type, target)
            body = Body(data, content_type, headers.get("User-Agent", ""))
        if verb == "deletecollection":
            page = await self._api.delete_collection(target, body)
            if self._durable is not None:
                await self._durable
            return await send_list(request, self._view(target, shape), page, shape, self._answers)
        if self._api.is_long(target, body):
            answer = await self._api.answer_beside(target, body, self._beside)
        else:
            answer = self._api.answer(target, body, user)
        if verb != "get" and self._durable is not None:
            await self._durable
        return await self._respond(request, target, answer, shape)

    async def _as_json(self, data: bytes, content_type: str, target: Target) -> bytes:
        """A long YAML body as JSON (which is YAML), parsed beside the loop: that takes seconds a megabyte."""
        try:
            return encode(await asyncio.get_running_loop().run_in_executor(self._beside, load_yaml, data))
        except ValueError as error:
            if "apply-patch" in content_type:
                raise bad_request(f"error decoding YAML: {error}") from None
            raise unreadable(data, target.resource.kind, error) from None

    async def _respond(
        self, request: web.BaseRequest, target: Target, answer: Answer, shape: Shape
    ) -> web.StreamResponse:
        if answer.stored is not None:
            data = self._view(target, shape).body(answer.stored)
        elif target.subresource is not None and target.subresource.name == "scale":
            data = self._view(target, shape).scale(answer.body)
        else:
            data = answer.body
        if answer.content_type != JSON_TYPE:
            return web.Response(body=data, status=answer.code, headers={**HEADERS, "Content-Type": answer.content_type})
        if shape.yaml:
            return await send_yaml(data, answer.code, self._answers)
        response = web.Response(status=answer.code, headers=HEADERS)
        _warn(response, target)
        return await send(request, response, [data])

    # --- collections

    async def _list(self, request: web.BaseRequest, target: Target, shape: Shape) -> web.StreamResponse:
        self.store.flush()
        options = list_options(target, self.store.revision)
        page = await self._api.page(target, options)
        return await send_list(request, self._view(target, shape), page, shape, self._answers)

    def _view(self, target: Target, shape: Shape) -> View:
        return View(target.resource, shape, self.cluster.clock.now, target.query.get("includeObject", ""))

    async def _watch(self, request: web.BaseRequest, target: Target, shape: Shape) -> web.StreamResponse:
        options = list_options(target, self.store.revision)
        chosen = selection(target)
        view = self._view(target, shape)
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
            HEADERS,
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
            return documents.openapi(request, segments[1:], query)
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
        return None if data is None else web.Response(body=data, headers=HEADERS)


def _served(segments: list[str]) -> bool:
    """Whether the path begins with a group version of this server."""
    group, version = ("", segments[1]) if segments[0] == "api" else (segments[1], segments[2])
    return version in kinds.GROUPS.get(group, {})


_NO_BODY = Body(b"", JSON_TYPE, "")


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


class _NoTracebacks(logging.Filter):
    """Takes tracebacks and long quotations off what the HTTP library says about requests that are none."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, web.HTTPException | HttpProcessingError | ConnectionError):
            return False  # the client was answered with 400, or is gone
        if error is not None:
            record.msg, record.args = f"{record.getMessage()}: {error!r}"[:500], ()
            record.exc_info = None
        return True


_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
"""How the user agents begin that show answers to people."""


def _pretty(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Indented, if a JSON answer is to be read by people; long ones are not."""
    asked = split(request.raw_path)[1].get("pretty", "") if "pretty" in request.raw_path else ""
    if not asked and not request.headers.get("User-Agent", "").startswith(_PEOPLE):
        return response  # nearly always: this is done for every request
    if asked and asked not in TRUE:
        return response
    if isinstance(response, web.Response) and not response.prepared and response.content_type == JSON_TYPE:
        body = response.body
        if isinstance(body, bytes) and body and "Content-Encoding" not in response.headers:
            response.body = msgspec.json.format(body, indent=2)
    return response


_http_log = logging.getLogger(f"{log.name}.http")
_http_log.addFilter(_NoTracebacks())


def _failure(error: ApiError) -> web.Response:
    headers = {**HEADERS, **error.headers} if error.headers else HEADERS
    return web.Response(body=encode(error.status()), status=error.code, headers=headers)


def _warn(response: web.Response, target: Target) -> None:
    for warning in target.warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
