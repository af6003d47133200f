"""Keeps a sink equal to a collection on the server: list, watch, and again when anything breaks.

             ┌── WatchList: watch with sendInitialEvents, until the bookmark that ends the initial events
    list ────┤                                        (not understood by the server: list in pages, then watch)
      ▲      └─▶ watch from the last version ──closed──▶ watch again
      │               │ refused, 429 ─────────backoff──▶ watch again
      └──backoff──────┴ 410 (list anew, consistently), anything else (list at the last version)

A connection that breaks in the middle is a closed watch; one that falls silent for longer than the server promised to
keep it open counts as broken. Upstream: `client-go/tools/cache/reflector.go`.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol, TypeVar

from skedge.client import aio
from skedge.client.errors import (
    ApiError,
    BadRequest,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    Expired,
    Invalid,
    RequestTimeout,
    TooManyRequests,
    api_error,
    one_line,
)
from skedge.client.rest import RestClient, go_duration
from skedge.client.watch import BOOKMARK, DELETED, Delta, LineSplitter, ObjectDecoder, Resource
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

S = TypeVar("S")

PAGE_SIZE = 500
WATCH_SECONDS = 300.0
"""A watch is asked to last between this and twice this."""
STALL_MARGIN = 30.0
"""Seconds of silence beyond a watch's own end after which its connection is given up."""
SHORT_WATCH = 1.0
"""A watch that ends sooner than this without an event counts as an error."""


class Sink(Protocol):
    """Who is told. Calls come in order, never two at a time."""

    async def replace(self, items: dict[str, Any], version: str) -> None:
        """The collection is exactly this now."""
        ...

    def apply(self, deltas: list[Delta], version: str) -> None:
        """These happened, in this order; bookmarks are not among them."""
        ...


class Reflector(Generic[S]):
    """Run it as a task; cancel the task to stop it. `version` is the last resourceVersion seen."""

    def __init__(self, client: RestClient, resource: Resource[S], sink: Sink, *, watch_list: bool = True) -> None:
        """`watch_list` asks for the initial objects through the watch; servers that refuse get a list."""
        self.resource = resource
        self.version = ""
        self.decoder = ObjectDecoder(resource, client.hooks)
        self._client, self._sink = client, sink
        self._clock, self._rng = client.clock, client.rng
        self._watch_list = watch_list
        self._paged = False
        self.error: ClientError | None = None
        """What went wrong last, until the next objects arrive."""
        self._unavailable = False  # the last version is too old, or too new, for the server
        self._synced = False  # the current watch has brought its initial objects
        self._backoff = aio.Backoff(self._clock, self._rng)

    async def run(self) -> None:
        """List and watch until cancelled; what goes wrong is logged and tried again."""
        while True:
            try:
                await self._list_and_watch()
            except ClientError as error:
                self.error = error
                log.error(one_line(error), "Failed to list and watch", path=self.resource.path)
            await aio.sleep(self._clock, self._backoff.next())

    async def _list_and_watch(self) -> None:
        how = await self._watch_initial() if self._watch_list else "list"
        if how == "again":
            return
        if how == "list":
            await self._list()
        while await self._watch_again():
            pass

    async def _watch_initial(self) -> Literal["watch", "list", "again"]:
        """A watch that begins with the objects, until it ends; what to do next (`again`: all over, after a backoff)."""
        while True:
            self._synced = False
            asked_anything = self._unavailable
            try:
                await self._watch(initial=True)
            except (ConnectionRefused, TooManyRequests) as error:
                log.warning("Cannot watch, trying again", path=self.resource.path, err=one_line(error))
                await aio.sleep(self._clock, self._backoff.next())
                if self._synced:
                    return "watch"
            except ApiError as error:
                if self._synced:
                    self._failed(error)
                    return "again"
                if _is_expired(error) and not asked_anything:
                    self._unavailable = True
                    continue
                if isinstance(error, (Invalid, BadRequest)):
                    self._watch_list = False  # this server will not learn it
                log.info(
                    "Listing, the initial objects cannot be streamed", path=self.resource.path, err=one_line(error)
                )
                return "list"
            else:
                if self._synced:
                    self._ended("closed")
                    return "watch"
                log.warning("Watch ended before its initial events did, listing instead", path=self.resource.path)
                return "list"

    async def _watch_again(self) -> bool:
        """One watch from the last version; True to watch on, False to list again."""
        start = self._clock.monotonic()
        try:
            seen = await self._watch(initial=False)
        except (ConnectionRefused, TooManyRequests) as error:
            self._ended("refused" if isinstance(error, ConnectionRefused) else "throttled")
            log.warning("Cannot watch, trying again", path=self.resource.path, err=one_line(error))
            await aio.sleep(self._clock, self._backoff.next())
            return True
        except ApiError as error:
            self._failed(error)
            return False
        if not seen and self._clock.monotonic() - start < SHORT_WATCH:
            self._ended("short")
            log.warning("Watch ended at once and without an event", path=self.resource.path)
            return False
        self._ended("closed")
        return True

    def _failed(self, error: ApiError) -> None:
        """The server ended a watch: note whether its version is too old, or raise."""
        if not _is_expired(error):
            self._ended("error")
            raise error
        self._ended("expired")
        log.info("Watch expired, listing again", path=self.resource.path, err=one_line(error))
        self._unavailable = True

    async def _watch(self, *, initial: bool) -> bool:
        """One watch request until it ends. True if it brought an event."""
        seconds = int(WATCH_SECONDS * (1.0 + self._rng.random()))
        params = self.resource.selectors() | {
            "allowWatchBookmarks": True,
            "timeoutSeconds": seconds,
            "timeout": go_duration(seconds),
            "watch": True,
        }
        version = self.version
        if initial:
            params |= {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
            version = "" if self._unavailable else version
        if version:
            params["resourceVersion"] = version
        items: dict[str, Any] | None = {} if initial else None
        seen, splitter = False, LineSplitter()
        stream = await self._client.stream(self.resource.path, params, idle_timeout=seconds + STALL_MARGIN)
        async with stream as response:
            if self._client.hooks is not None:
                self._client.hooks.streamed("GET", self._client.transport.host, str(response.status))
            if response.status != 200:
                what = f"watch of {self.resource.path}"
                raise api_error(response.status, await response.read(), what=what)
            try:
                while chunk := await response.next_chunk():
                    deltas, batch = [], splitter.feed(chunk)
                    for line in batch:
                        delta = self.decoder.event(line)
                        if items is not None and await self._collect(items, delta):
                            items = None
                        elif items is None and delta.type != BOOKMARK:
                            deltas.append(delta)
                        if items is None:
                            seen = True
                            self.version = delta.version or self.version
                    if items is None and batch:
                        self._sink.apply(deltas, self.version)
            except (ConnectionLost, RequestTimeout) as error:
                log.info("Watch broke, resuming", path=self.resource.path, err=one_line(error))
        return seen

    async def _collect(self, items: dict[str, Any], delta: Delta) -> bool:
        """Take one initial event; True at the bookmark that ends them, after the sink has got them all."""
        if delta.type == BOOKMARK:
            if not delta.ends_initial:
                return False
            await self._sink.replace(items, delta.version)
            self.error = None
            self._unavailable, self._synced = False, True
            return True
        if delta.type == DELETED:
            items.pop(delta.key, None)
        else:
            items[delta.key] = delta.obj
        return False

    async def _list(self) -> None:
        version = "" if self._unavailable else self.version or "0"
        try:
            items, listed = await self._pages(version)
        except ApiError as error:
            if not _is_expired(error) or not version:
                raise
            self._unavailable = True
            items, listed = await self._pages("")
        self.error = None
        self._unavailable = False
        self.version = listed
        await self._sink.replace(items, listed)

    async def _pages(self, version: str) -> tuple[dict[str, Any], str]:
        """Every object, at `version` or newer ("" the newest, "0" whatever the server has at hand)."""
        # A list at a given version is answered from the server's cache only if it asks for no pages.
        limit = PAGE_SIZE if self._paged or version in ("", "0") else 0
        params = self.resource.selectors()
        if limit:
            params["limit"] = limit
        first = params | ({"resourceVersion": version} if version else {})
        page = self.decoder.page(await self._client.request("GET", self.resource.path, params=first))
        items = page.items
        if page.continue_ and version == "0":
            self._paged = True
        while page.continue_:
            try:
                more = params | {"continue": page.continue_}
                page = self.decoder.page(await self._client.request("GET", self.resource.path, params=more))
            except Expired:
                # The pages came too slowly: one list without pages instead.
                first.pop("limit", None)
                page = self.decoder.page(await self._client.request("GET", self.resource.path, params=first))
                items = {}
            items |= page.items
        return items, page.version

    def _ended(self, reason: str) -> None:
        if self._client.hooks is not None:
            self._client.hooks.watch_ended(self.resource.name, reason)


def _is_expired(error: ApiError) -> bool:
    return isinstance(error, Expired) or error.is_too_large_resource_version
