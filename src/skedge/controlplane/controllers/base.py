"""What every controller is: informers tell keys, a rate-limited queue hands them out, `reconcile` makes it so.

    informer ──on_add/update/delete──▶ enqueue(key) ──▶ WorkQueue ──▶ reconcile(key) ──▶ HTTP
                                           ▲                              │ seconds: look again then
                                           └──────────────────────────────┘ error: later, backing off

A key is worked on at most every `PACE` seconds: a replica set of thousands is counted once for a burst of changes.
Upstream: `pkg/controller/*/`, whose controllers share this shape without naming it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from skedge.client import aio
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import Conflict, Forbidden, NotFound, one_line
from skedge.client.events import EventRecorder, ObjectRef
from skedge.client.informer import Informer, InformerFactory, Tombstone
from skedge.client.rest import RestClient
from skedge.client.timefmt import rfc3339
from skedge.client.watch import Resource
from skedge.client.workqueue import RateLimit, WorkQueue
from skedge.clock import Clock
from skedge.controlplane.controllers.kinds import PODS, Kind
from skedge.controlplane.controllers.objects import Meta, Owned, Pod, meta_of

log = logging.getLogger(__name__)

JSON = dict[str, Any]
S = TypeVar("S")

Loop = Callable[[], Coroutine[Any, Any, None]]
"""A coroutine function without arguments."""

PACE = 0.05
"""Seconds between two looks at the same key."""

OWNER = "owner"
"""Index of pods by the UID of their controller; those without one stand under `orphans:NAMESPACE`."""
NAMESPACE = "namespace"
"""Index of objects handled whole, and of pods, by namespace."""
NODE_NAME = "node"
"""Index of pods by the name of their node."""


class Outdated(Exception):
    """What was decided on has changed, or is about to: look again soon."""


class Context:
    """What controllers are given: a client, informers they share, clock, random source, events."""

    def __init__(
        self, client: RestClient, factory: InformerFactory, events: CoreEventBroadcaster, rng: random.Random
    ) -> None:
        self.client, self.factory, self.events, self.rng = client, factory, events, rng
        self.clock: Clock = client.clock
        self._owned: dict[Kind, Informer[JSON]] = {}
        self._watched: dict[str, Informer[Any]] = {}
        self.pods: Informer[Pod] = self.informer(PODS)
        self.pods.add_indexer(OWNER, _owner_or_orphan)
        self.pods.add_indexer(NAMESPACE, lambda pod: (pod.metadata.namespace,))
        self.pods.add_indexer(NODE_NAME, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())

    def timestamp(self) -> str:
        """The present second as the API writes it."""
        return rfc3339(self.clock.now())

    def informer(self, resource: Resource[S]) -> Informer[S]:
        """The informer of a resource; it is the one of its path that `any_informer` will give."""
        informer = self.factory.informer(resource)
        if not resource.selectors():
            self._watched.setdefault(resource.path, informer)
        return informer

    def any_informer(self, kind: Kind) -> Informer[Any]:
        """An informer of a kind, whatever its objects are decoded to: ask them by `meta_of`."""
        found = self._watched.get(kind.path())
        return found if found is not None else self.informer(Resource.of(kind.path(), Owned))

    def owned(self, kind: Kind) -> Informer[JSON]:
        """The informer of a kind handled whole, indexed by owner (like pods) and by namespace."""
        informer = self._owned.get(kind)
        if informer is None:
            informer = self._owned[kind] = self.informer(kind.resource)
            informer.add_indexer(OWNER, lambda obj: _owner_or_orphan_meta(meta_of(obj)))
            informer.add_indexer(NAMESPACE, lambda obj: (obj["metadata"].get("namespace", ""),))
        return informer


class Controller:
    """Subclasses name themselves, connect informers in `__init__`, and write `reconcile`."""

    name: ClassVar[str]
    workers: ClassVar[int] = 4

    def __init__(self, context: Context) -> None:
        self.context, self.client, self.clock = context, context.client, context.clock
        limit: RateLimit[str] = RateLimit(self.clock, maximum=30.0, qps=1000.0, burst=1000)
        self.queue: WorkQueue[str] = WorkQueue(clock=self.clock, rate_limit=limit)
        self._recorder: EventRecorder = context.events.recorder(f"{self.name}-controller")
        self._last: dict[str, float] = {}

    async def reconcile(self, key: str) -> float | None:
        """Bring what `key` names nearer to what it should be; the seconds after which to look again, if at all."""
        raise NotImplementedError

    async def run(self) -> None:
        """Work until cancelled; starts when the informers have their first list."""
        await self.context.factory.wait_for_sync()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(self._work, workers=self.workers), name=f"{self.name} queue")
            for loop in self.loops():
                group.create_task(loop(), name=f"{self.name} {loop.__name__}")

    def loops(self) -> list[Loop]:
        """Coroutine functions that run beside the queue."""
        return []

    async def every(self, seconds: float, work: Loop) -> None:
        """Have `work` awaited again and again; an error is logged, the next turn comes."""
        while True:
            await aio.sleep(self.clock, seconds)
            try:
                await work()
            except Exception as error:
                log.warning("%s: %s", self.name, one_line(error))

    def enqueue(self, key: str) -> None:
        """Have `key` looked at soon."""
        last = self._last.get(key)
        if last is None:
            self.queue.add(key)
        else:
            self.queue.add_after(key, last + PACE - self.clock.monotonic())

    def watch(self, informer: Informer[S], key: Callable[[S], str | None]) -> None:
        """Enqueue what `key` says of every object that comes, changes (old and new) or goes."""

        def tell(obj: S) -> None:
            found = key(obj)
            if found:
                self.enqueue(found)

        def changed(old: S, new: S) -> None:
            before, after = key(old), key(new)
            if after:
                self.enqueue(after)
            if before and before != after:
                self.enqueue(before)

        informer.add_handler(on_add=lambda obj, _: tell(obj), on_update=changed, on_delete=lambda obj: tell(last(obj)))

    def event(self, obj: JSON, kind: Kind, type: str, reason: str, message: str) -> None:
        """Record an event about an object."""
        meta = obj["metadata"]
        ref = ObjectRef(
            kind.name,
            meta.get("namespace", ""),
            meta["name"],
            meta.get("uid", ""),
            kind.api_version,
            meta.get("resourceVersion", ""),
        )
        self._recorder.event(ref, None, type, reason, "", message)

    async def update_status(self, kind: Kind, obj: JSON, status: JSON) -> bool:
        """Write `status` if it is news, on the version at hand; whether it was. Raises Conflict when outdated."""
        if (obj.get("status") or {}) == status:
            return False
        await self.client.request("PUT", kind.of(obj, "status"), body={**obj, "status": status})
        return True

    async def _work(self, key: str) -> None:
        self._last[key] = self.clock.monotonic()
        try:
            again = await self.reconcile(key)
        except (Conflict, NotFound, Outdated):
            # What was decided on has changed: its news are on their way, or here.
            self.queue.add_after(key, PACE)
            return
        except Forbidden as error:
            if not in_terminating_namespace(error):
                raise
            return
        if again is not None:
            self.queue.add_after(key, max(again, PACE))

    def forget(self, key: str) -> None:
        """The object is gone: keep nothing about it."""
        self._last.pop(key, None)


def in_terminating_namespace(error: Forbidden) -> bool:
    """Whether something was refused because its namespace is being emptied; trying again is no use."""
    details = error.status.details
    return any(cause.reason == "NamespaceTerminating" for cause in (details.causes if details else None) or ())


def last(obj: S | Tombstone[S]) -> S:
    """The last known state of what a deletion brings."""
    return obj.obj if isinstance(obj, Tombstone) else obj


def _owner_or_orphan(pod: Pod) -> tuple[str, ...]:
    return _owner_or_orphan_meta(pod.metadata)


def _owner_or_orphan_meta(meta: Meta) -> tuple[str, ...]:
    for ref in meta.owner_references or ():
        if ref.controller:
            return (ref.uid,)
    return (f"orphans:{meta.namespace}",)
