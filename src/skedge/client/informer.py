"""Shared informers: one reflector and one store a resource, any number of handlers.

Everything happens on one event loop. A batch of events is applied to the store and told to the handlers by plain calls,
in order, without an await in between; so whoever holds the loop sees a store that does not move. An application that
awaits while it owns some state passes an `Inbox`, and holds it meanwhile. Upstream: `client-go/tools/cache` and
`client-go/informers`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from skedge.client import aio
from skedge.client.reflector import Reflector
from skedge.client.rest import RestClient
from skedge.client.watch import DELETED, Delta, Resource
from skedge.stores.store import Indexer, Store

S = TypeVar("S")

BATCH = 1000
"""Objects of a list that are delivered without letting other tasks run."""

Submit = Callable[[Callable[[], None]], None]
"""Has a call made: now, or later and in the order of submission."""


class Tombstone(Generic[S]):
    """An object that vanished while nobody was watching: its key and the last state known."""

    __slots__ = ("key", "obj")

    def __init__(self, key: str, obj: S) -> None:
        self.key, self.obj = key, obj

    def __repr__(self) -> str:
        return f"Tombstone({self.key!r})"


class Inbox:
    """Makes calls at once, unless somebody holds the state they would change: then they wait, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._holders = 0
        self._draining = False

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, call: Callable[[], None]) -> None:
        if not self._holders and not self._waiting:
            call()
            return
        self._waiting.append(call)
        self._drain()

    @contextmanager
    def held(self) -> Iterator[None]:
        """No call is made inside; those that came are made when the last holder leaves, and their errors are his."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self._drain()

    def _drain(self) -> None:
        if self._draining:
            return
        self._draining = True
        try:
            while self._waiting and not self._holders:
                # It stays first in line while it runs, so that what it submits comes after the others.
                call = self._waiting[0]
                try:
                    call()
                finally:
                    self._waiting.popleft()
        finally:
            self._draining = False


class Registration(Generic[S]):
    """A handler of an informer: three callbacks, each optional.

    `on_add(obj, is_initial)`, `on_update(old, new)`, `on_delete(obj)`; the last may get a `Tombstone`.
    """

    __slots__ = ("has_synced", "on_add", "on_delete", "on_update")

    def __init__(
        self,
        on_add: Callable[[S, bool], None] | None,
        on_update: Callable[[S, S], None] | None,
        on_delete: Callable[[S | Tombstone[S]], None] | None,
    ) -> None:
        self.on_add, self.on_update, self.on_delete = on_add, on_update, on_delete
        self.has_synced = False
        """Whether every object of the initial list was told to this handler."""


class Informer(Generic[S]):
    """Keeps `store` equal to a resource and tells handlers what changed. Made by `InformerFactory.informer`."""

    def __init__(
        self,
        client: RestClient,
        resource: Resource[S],
        *,
        submit: Submit | None = None,
        resync: float = 0.0,
        watch_list: bool = True,
    ) -> None:
        """`submit` is the application's inbox. Every `resync` seconds (0: never) each object is told as an update."""
        self.resource = resource
        self.store: Store[S] = Store()
        self._client, self._resync = client, resync
        self._submit: Submit = submit or _now
        self._handlers: list[Registration[S]] = []
        self._synced = asyncio.Event()
        self.reflector = Reflector(client, resource, self, watch_list=watch_list)

    @property
    def has_synced(self) -> bool:
        """Whether the initial list is in the store."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Wait until the initial list is in the store and told to the handlers that were there from the start."""
        await self._synced.wait()

    def add_indexer(self, name: str, indexer: Indexer[S]) -> None:
        self.store.add_indexer(name, indexer)

    def add_handler(
        self,
        *,
        on_add: Callable[[S, bool], None] | None = None,
        on_update: Callable[[S, S], None] | None = None,
        on_delete: Callable[[S | Tombstone[S]], None] | None = None,
    ) -> Registration[S]:
        """Register callbacks. They are plain functions and must not raise: an exception ends the informer.

        A handler that comes late is told the present objects as initial ones first.
        """
        registration = Registration(on_add, on_update, on_delete)
        self._submit(partial(self._join, registration))
        return registration

    def remove_handler(self, registration: Registration[S]) -> None:
        """Take a handler out; it is not called any more."""
        self._submit(partial(self._leave, registration))

    async def run(self) -> None:
        """Work until cancelled; an exception of a handler comes out of here."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reflector.run(), name=f"reflector {self.resource.path}")
            if self._resync > 0:
                group.create_task(self._resync_forever(), name=f"resync {self.resource.path}")

    async def replace(self, items: dict[str, Any], version: str) -> None:
        """The reflector's: the collection is exactly this now."""
        pending = iter(items.items())
        while batch := [*islice(pending, BATCH)]:
            self._submit(partial(self._put_batch, batch))
            await asyncio.sleep(0)
        self._submit(partial(self._finish_replace, items, version))

    def apply(self, deltas: list[Delta], version: str) -> None:
        """The reflector's: these happened."""
        self._submit(partial(self._apply_batch, deltas, version))

    def _join(self, registration: Registration[S]) -> None:
        self._handlers = [*self._handlers, registration]
        if registration.on_add is not None:
            for obj in self.store.list():
                registration.on_add(obj, True)
        registration.has_synced = self.has_synced

    def _leave(self, registration: Registration[S]) -> None:
        self._handlers = [handler for handler in self._handlers if handler is not registration]

    def _put_batch(self, batch: Iterable[tuple[str, S]]) -> None:
        for key, obj in batch:
            self._put(key, obj)

    def _put(self, key: str, obj: S) -> None:
        old = self.store.put(key, obj)
        if old is None:
            initial = not self.has_synced
            for handler in self._handlers:
                if handler.on_add is not None:
                    handler.on_add(obj, initial)
        else:
            for handler in self._handlers:
                if handler.on_update is not None:
                    handler.on_update(old, obj)

    def _apply_batch(self, deltas: list[Delta], version: str) -> None:
        for delta in deltas:
            if delta.type != DELETED:
                self._put(delta.key, delta.obj)
                continue
            old = self.store.remove(delta.key)
            if old is not None:
                self._tell_deleted(old if delta.obj is None else delta.obj)
        self._at(version, len(deltas))

    def _finish_replace(self, items: dict[str, Any], version: str) -> None:
        for key in [key for key in self.store.keys() if key not in items]:  # noqa: SIM118
            self._tell_deleted(Tombstone(key, cast(S, self.store.remove(key))))
        self._at(version, len(items))
        self._synced.set()
        for handler in self._handlers:
            handler.has_synced = True

    def _tell_deleted(self, obj: S | Tombstone[S]) -> None:
        for handler in self._handlers:
            if handler.on_delete is not None:
                handler.on_delete(obj)

    def _at(self, version: str, events: int) -> None:
        self.store.resource_version = version
        if self._client.hooks is not None:
            self._client.hooks.delivered(self.resource.name, events, version)

    async def _resync_forever(self) -> None:
        while True:
            await aio.sleep(self._client.clock, self._resync)
            self._submit(self._tell_all)

    def _tell_all(self) -> None:
        for obj in self.store.list():
            for handler in self._handlers:
                if handler.on_update is not None:
                    handler.on_update(obj, obj)


class InformerFactory:
    """Informers that share one client, one inbox, and one life:

        async with InformerFactory(client) as factory:
            pods = factory.informer(PODS)
            pods.add_handler(on_add=...)
            factory.start()
            await factory.wait_for_sync()

    Leaving the block stops them. If one fails (a handler raised), the block is cancelled and the error comes out.
    """

    def __init__(
        self, client: RestClient, *, submit: Submit | None = None, resync: float = 0.0, watch_list: bool = True
    ) -> None:
        self._client = client
        self._submit, self._resync, self._watch_list = submit, resync, watch_list
        self._informers: dict[Resource[Any], Informer[Any]] = {}
        self._started: dict[Informer[Any], asyncio.Task[None]] = {}
        self._group = asyncio.TaskGroup()

    def informer(self, resource: Resource[S]) -> Informer[S]:
        """The informer of a resource, the same for everyone who asks for the same resource."""
        found = self._informers.get(resource)
        if found is None:
            found = self._informers[resource] = Informer(
                self._client, resource, submit=self._submit, resync=self._resync, watch_list=self._watch_list
            )
        return found

    def drop(self, informer: Informer[Any]) -> None:
        """Nobody wants this informer after all. It must not run yet."""
        if informer in self._started:
            raise RuntimeError(f"the informer of {informer.resource.path} runs already")
        self._informers.pop(informer.resource, None)

    def start(self) -> None:
        """Start the informers that don't run yet; call it again after asking for more."""
        for informer in self._informers.values():
            if informer not in self._started:
                task = self._group.create_task(informer.run(), name=f"informer {informer.resource.path}")
                self._started[informer] = task

    async def wait_for_sync(self) -> None:
        """Wait until every started informer has its initial list."""
        for informer in [*self._started]:
            await informer.wait_for_sync()

    async def __aenter__(self) -> InformerFactory:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._started.values():
            task.cancel()
        await self._group.__aexit__(kind, error, trace)


def _now(call: Callable[[], None]) -> None:
    call()
