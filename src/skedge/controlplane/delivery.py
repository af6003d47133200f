"""Sending what is long: lists, tables and big bodies go out piece by piece, so that nobody else waits for them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from aiohttp import web

from skedge.controlplane.negotiate import Shape, dump_yaml
from skedge.controlplane.reading import Page
from skedge.controlplane.store import Stored, decode
from skedge.controlplane.views import View

T = TypeVar("T")

JSON_TYPE = "application/json"
HEADERS = {"Cache-Control": "no-cache, private", "Content-Type": JSON_TYPE}
YAML_HEADERS = {**HEADERS, "Content-Type": "application/yaml"}

_LONG_YAML = 32 << 10  # bytes of JSON that are not turned into YAML by the loop: it takes seconds a megabyte
_GZIP_FROM, _GZIP_TO = 128 << 10, 32 << 20
_WHOLE, _WHOLE_SIZE = 2_000, 8 << 20  # items and bytes of the longest list that is put together before it is sent
_SLICE = 100  # items of a list between two breaths of the loop
_PIECE = 1 << 20  # bytes of a body between two breaths of the loop


async def send_list(
    request: web.BaseRequest, view: View, page: Page, shape: Shape, executor: Executor
) -> web.StreamResponse:
    """Answer with a page of a list, in whatever shape; its objects cannot change any more. YAML: see `send_yaml`."""
    if shape.yaml:

        def whole() -> bytes:
            before, after = view.list_parts(page.meta)
            return b"".join((before, view.items(page.items), after))

        return await _send_yaml(whole, sum(map(length, page.items)), 200, executor)
    if len(page.items) <= _WHOLE and sum(map(length, page.items)) <= _WHOLE_SIZE:
        return await send(request, web.Response(headers=HEADERS), [piece async for piece in _pieces(view, page)])
    response = web.StreamResponse(headers=HEADERS)
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for piece in _pieces(view, page):
        await response.write(piece)
    return response


async def _pieces(view: View, page: Page) -> AsyncIterator[bytes]:
    before, after = view.list_parts(page.meta)
    yield before
    for i, some in enumerate(slices(page.items, _SLICE, length)):
        if i:
            await asyncio.sleep(0)
            yield b","
        yield view.items(some)
    yield after


def slices(items: Sequence[T], count: int, size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Items in order, so many at a time, or fewer where they are long."""
    start = total = 0
    for i, item in enumerate(items):
        if i > start and (i - start == count or total + size(item) > _PIECE):
            yield items[start:i]
            start, total = i, 0
        total += size(item)
    if start < len(items):
        yield items[start:]


def length(stored: Stored) -> int:
    """The bytes of an object, about."""
    return len(stored.raw)


async def send_yaml(data: bytes, code: int, executor: Executor) -> web.Response:
    """Answer with JSON turned into YAML: when it is long by an executor, which had better have few threads."""
    return await _send_yaml(lambda: data, len(data), code, executor)


async def _send_yaml(data: Callable[[], bytes], size: int, code: int, executor: Executor) -> web.Response:
    def work() -> bytes:
        return dump_yaml(decode(data()))

    body = await asyncio.get_running_loop().run_in_executor(executor, work) if size >= _LONG_YAML else work()
    return web.Response(body=body, status=code, headers=YAML_HEADERS)


async def send(request: web.BaseRequest, response: web.Response, pieces: list[bytes]) -> web.StreamResponse:
    """Give a response its body: with gzip, made off the loop, where that is worth it and the client takes it."""
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(data) < _GZIP_FROM:
        response.body = data
        return response
    if "gzip" in request.headers.get("Accept-Encoding", "") and len(data) <= _GZIP_TO:

        def squeeze() -> bytes:
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)
            return packer.compress(data) + packer.flush()

        response.body = await asyncio.to_thread(squeeze)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return response
    if len(data) <= _PIECE:
        response.body = data
        return response
    stream = web.StreamResponse(status=response.status, headers=response.headers)
    stream.content_length = len(data)
    await stream.prepare(request)
    view = memoryview(data)
    for i in range(0, len(data), _PIECE):
        await stream.write(view[i : i + _PIECE])
        await asyncio.sleep(0)
    return stream
