"""Watch streams: fed by the store's flushes, written in batches, bounded in memory.

A flush appends lines to the buffer of each watcher and wakes it; the watcher's own task writes everything it finds in
one go. A reader that lets its buffer grow past the limit is cut off, and nobody else notices.
`staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go`, `pkg/storage/cacher`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from skedge.controlplane.delivery import length, slices
from skedge.controlplane.errors import expired
from skedge.controlplane.store import Change, Collection, Compacted, Selection, Store, encode
from skedge.controlplane.views import View

BUFFER_LIMIT = 64 << 20  # bytes a slow reader may fall behind
_SCAN = 500  # objects found at a time
_SLICE = 100  # objects rendered between two breaths of the loop: hundreds of watches may be at it
_BUDGET = 5_000  # objects looked at between two breaths of the loop


class Watcher:
    """One open watch. `lines` waits to be written; `overflow` is called once when too much does."""

    def __init__(self, view: View, selection: Selection, start: int, limit: int, overflow: Callable[[], None]) -> None:
        self.view = view
        self.selection = selection
        self.start = start
        self.lines: list[bytes] = []
        self.wake = asyncio.Event()
        self.dropped = False
        self._size = 0
        self._limit = limit
        self._overflow = overflow

    def offer(self, changes: list[Change]) -> None:
        """Take the changes of a flush."""
        if self.dropped:
            return
        for change in changes:
            if change.current.revision > self.start:
                line = self.view.change_line(change, self.selection)
                if line is not None:
                    self.lines.append(line)
                    self._size += len(line)
        if self._size > self._limit:
            self.dropped = True
            self.lines.clear()
            self._overflow()
        if self.lines or self.dropped:
            self.wake.set()

    def take(self) -> bytes:
        """Everything waiting, as one piece."""
        data = b"".join(self.lines)
        self.lines.clear()
        self._size = 0
        self.wake.clear()
        return data


class Watches:
    """All open watches of a server, so that it can end them."""

    def __init__(self) -> None:
        self.open: dict[Watcher, None] = {}  # told in the order they came
        self.stopping = False

    def stop(self) -> None:
        """End every stream after what is buffered."""
        self.stopping = True
        for watcher in self.open:
            watcher.wake.set()


class Watch:
    """The course of one watch request, from its first objects to its end."""

    def __init__(
        self,
        store: Store,
        collection: Collection,
        view: View,
        selection: Selection,
        *,
        zero: dict[str, object],
        watches: Watches,
        bookmark_interval: float,
        buffer_limit: int = BUFFER_LIMIT,
    ) -> None:
        self._store = store
        self._collection = collection
        self._view = view
        self._selection = selection
        self._zero = zero
        self._watches = watches
        self._bookmark_interval = bookmark_interval
        self._buffer_limit = buffer_limit

    async def run(
        self,
        request: web.BaseRequest,
        headers: dict[str, str],
        *,
        revision: int | None,
        initial: bool,
        bookmarks: bool,
        initial_bookmark: bool,
        timeout: float,
    ) -> web.StreamResponse:
        """Stream until the timeout, the server's end or the reader's. `revision` None starts from now."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        store, collection = self._store, self._collection
        store.flush()
        start = store.revision
        past: list[Change] = []
        failure: bytes | None = None
        if not initial and revision is not None:
            try:
                past = collection.since(revision)
            except Compacted as e:
                error = expired(f"too old resource version: {revision} ({e.oldest})").status()
                failure = encode({"type": "ERROR", "object": error}) + b"\n"
            start = max(start, revision)
        transport = request.transport
        watcher = Watcher(
            self._view,
            self._selection,
            start,
            self._buffer_limit,
            overflow=transport.abort if transport is not None else lambda: None,
        )
        collection.listeners.append(watcher.offer)
        self._watches.open[watcher] = None
        try:
            response = web.StreamResponse(headers=headers)
            response.enable_chunked_encoding()
            await response.prepare(request)
            if failure is not None:
                await response.write(failure)
                return response
            if initial:
                await self._present(response, start)
            await self._past(response, past)
            if initial_bookmark:
                await response.write(self._view.bookmark(start, self._zero, initial_end=True))
            await self._follow(response, watcher, deadline, bookmarks)
            return response
        except Compacted:  # so slow a reader that history is gone before it saw the first objects: it starts again
            return response
        finally:
            collection.listeners.remove(watcher.offer)
            self._watches.open.pop(watcher, None)

    async def _present(self, response: web.StreamResponse, revision: int) -> None:
        """The objects of a revision as ADDED events, found and written in slices."""
        cursor: str | None = ""
        while cursor is not None:
            found, _, cursor = self._collection.scan(self._selection, cursor, _SCAN, revision, _BUDGET)
            if len(found) == _SCAN:
                cursor = found[-1].key
            for some in slices(found, _SLICE, length):
                await response.write(b"".join([self._view.line("ADDED", stored) for stored in some]))
                await asyncio.sleep(0)
            if not found:
                await asyncio.sleep(0)

    async def _past(self, response: web.StreamResponse, changes: list[Change]) -> None:
        """The changes since the watcher's revision."""
        for some in slices(changes, _SLICE, lambda change: length(change.current)):
            found = [self._view.change_line(change, self._selection) for change in some]
            data = b"".join([line for line in found if line is not None])
            if data:
                await response.write(data)
            await asyncio.sleep(0)

    async def _follow(self, response: web.StreamResponse, watcher: Watcher, deadline: float, bookmarks: bool) -> None:
        loop = asyncio.get_running_loop()
        next_bookmark = loop.time() + self._bookmark_interval if bookmarks else deadline
        wake = watcher.wake
        while not watcher.dropped:
            if watcher.lines:
                await response.write(watcher.take())
                continue
            if self._watches.stopping:
                return
            wake.clear()
            timer = loop.call_at(min(deadline, next_bookmark), wake.set)
            try:
                await wake.wait()
            finally:
                timer.cancel()
            now = loop.time()
            if now >= deadline and not watcher.lines:
                return
            self._store.flush()  # a bookmark must not overtake a change
            if bookmarks and now >= next_bookmark and not watcher.lines:
                await response.write(self._view.bookmark(self._store.revision, self._zero, initial_end=False))
                next_bookmark = now + self._bookmark_interval
