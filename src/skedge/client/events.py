"""Kubernetes Events through `events.k8s.io/v1`: repeats become a series of one Event object.

    event() ──▶ intake (1000) ──next turn of the loop──▶ known key? no: create
                                                         second time: patch series {count: 2}
                                                         later: counted; sent every 30 min, and at the end of the series

Two events are the same when type, action, reason, reporter, regarding and related are (each with its resourceVersion);
the note is not compared, the first one stays. Upstream: `client-go/tools/events`.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import lru_cache
from types import TracebackType
from typing import NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from skedge.client import aio
from skedge.client.errors import AlreadyExists, ClientError, NotFound
from skedge.client.outbox import MAX_TRIES, Outbox, TryAgain
from skedge.client.rest import STRATEGIC_MERGE_PATCH, RestClient
from skedge.client.timefmt import micro_time
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

QUEUE_SIZE = 1000
KNOWN_SIZE = 50_000
"""Events that repeats are looked for in. The reference keeps six minutes' worth, however many that are."""
FINISH_SECONDS = 360.0
"""A series without news for this long is finished; also how often that is looked for."""
REFRESH_SECONDS = 1800.0
"""How often running series are written to the server."""


class ObjectRef(NamedTuple):
    """The object an event is about (`core/v1 ObjectReference`)."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""
    field_path: str = ""


class EventRecorder(Protocol):
    """Says what happened to an object. Cheap, never waits, never fails."""

    def event(
        self, regarding: ObjectRef, related: ObjectRef | None, type: str, reason: str, action: str, note: str
    ) -> None: ...


class Reference(msgspec.Struct, rename="camel", omit_defaults=True):
    """An ObjectRef as it is written."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventMeta(msgspec.Struct):
    name: str
    namespace: str


class _Series(msgspec.Struct, rename="camel"):
    count: int
    last_observed_time: str


class _Source(msgspec.Struct):
    pass


class _Body(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: EventMeta
    event_time: str
    series: _Series | msgspec.UnsetType
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: Reference
    related: Reference | msgspec.UnsetType
    note: str
    type: str
    deprecated_source: _Source
    deprecated_first_timestamp: None = None
    deprecated_last_timestamp: None = None


class _SeriesPatch(msgspec.Struct):
    series: _Series


class _Key(NamedTuple):
    type: str
    action: str
    reason: str
    controller: str
    instance: str
    regarding: ObjectRef
    related: ObjectRef | None


class _Entry:
    """An event the server knows or will know, and how often it happened since."""

    __slots__ = ("busy", "count", "created", "key", "last", "name", "note", "time")

    def __init__(self, key: _Key, name: str, note: str, time: float) -> None:
        self.key, self.name, self.note = key, name, note
        self.time = self.last = time
        self.count = 1
        self.busy = False  # a letter about it waits or is being sent
        self.created = False


_SOURCE = _Source()
_encode = msgspec.json.Encoder().encode
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class _Letter:
    __slots__ = ("_broadcaster", "_entry", "_last")

    def __init__(self, broadcaster: EventBroadcaster, entry: _Entry, last: bool) -> None:
        self._broadcaster, self._entry, self._last = broadcaster, entry, last

    async def send(self) -> None:
        await self._broadcaster.send(self._entry)

    def ended(self, sent: bool) -> None:
        self._broadcaster.ended(self._entry, self._last and sent)


class EventNames:
    """Names for events: the object's and the time in nanoseconds, never twice the same."""

    def __init__(self, client: RestClient) -> None:
        self._rng = client.rng
        self._last = 0

    def make(self, name: str, time: float) -> str:
        self._last = max(self._last + 1, int(time * 1e9))
        made = f"{name}.{self._last:x}"
        if len(made) <= 253 and _SUBDOMAIN.fullmatch(made):
            return made
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))


class EventBroadcaster:
    """Takes events from recorders and sends them.

        async with EventBroadcaster(client) as events:
            recorder = events.recorder("my-controller", hostname)
            recorder.event(ref, None, "Normal", "Started", "Starting", "it started")

    `dropped` counts events lost because more than 1000 came at once or the server fell too far behind.
    """

    def __init__(self, client: RestClient, *, workers: int = 8) -> None:
        self._client, self._clock = client, client.clock
        self._outbox = Outbox(client, workers=workers)
        self._names = EventNames(client)
        self._intake: deque[tuple[_Key, str, float]] = deque()
        self._scheduled = False
        self._known: OrderedDict[_Key, _Entry] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._overflow = 0

    @property
    def dropped(self) -> int:
        return self._overflow + self._outbox.dropped

    def recorder(self, controller: str, hostname: str) -> EventRecorder:
        """A recorder that reports as `controller`, instance `<controller>-<hostname>`."""
        return _Recorder(self, controller, f"{controller}-{hostname}")

    async def flush(self) -> None:
        """Wait until every event so far is sent or given up."""
        self._drain()
        await self._outbox.flush()

    async def __aenter__(self) -> EventBroadcaster:
        self._loop = asyncio.get_running_loop()
        self._outbox.start()
        self._sweeper = asyncio.create_task(self._sweep_forever(), name="event series")
        if self._intake:
            self._schedule()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drain()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._loop = None
        await self._outbox.stop(grace=1.0 if error is None else 0.0)

    def take(self, key: _Key, note: str) -> None:
        """The recorders': queue an event."""
        echo(key.regarding, key.type, key.reason, key.action, note)
        if len(self._intake) >= QUEUE_SIZE:
            self._overflow += 1
            self._outbox.full.say()
            return
        self._intake.append((key, note, self._clock.now()))
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        while self._intake:
            key, note, time = self._intake.popleft()
            entry = self._known.get(key)
            if entry is None:
                entry = _Entry(key, self._names.make(key.regarding.name, time), note, time)
                self._known[key] = entry
                self._post(entry)
                if len(self._known) > KNOWN_SIZE:
                    self._forget_oldest()
                continue
            entry.count += 1
            entry.last = time
            if entry.count == 2 and not entry.busy:  # while it is being created, the same letter writes the series
                self._post(entry)

    def _forget_oldest(self) -> None:
        """Make room; series and what is on its way stay, as the newest."""
        for _ in range(8):
            key, entry = self._known.popitem(last=False)
            if entry.count == 1 and not entry.busy:
                return
            self._known[key] = entry

    def _post(self, entry: _Entry, *, last: bool = False, tries: int = MAX_TRIES) -> None:
        entry.busy = self._outbox.post(_Letter(self, entry, last), tries)
        if not entry.busy:
            del self._known[entry.key]

    async def send(self, entry: _Entry) -> None:
        """The letters': create the event if it is not there yet, and write its series if it has one."""
        if not entry.created:
            await self._create(entry, series=False)
            entry.created = True
        if entry.count > 1:
            await self._patch(entry)

    def ended(self, entry: _Entry, last: bool) -> None:
        """The letters': `entry` is not on its way any more; `last` if it is to be forgotten."""
        entry.busy = False
        if last and self._known.get(entry.key) is entry:
            del self._known[entry.key]

    async def _create(self, entry: _Entry, *, series: bool) -> None:
        key = entry.key
        namespace = key.regarding.namespace or "default"
        body = _Body(
            kind="Event",
            api_version="events.k8s.io/v1",
            metadata=EventMeta(entry.name, namespace),
            event_time=micro_time(entry.time),
            series=_Series(entry.count, micro_time(entry.last)) if series else msgspec.UNSET,
            reporting_controller=key.controller,
            reporting_instance=key.instance,
            action=key.action,
            reason=key.reason,
            regarding=Reference(*key.regarding),
            related=msgspec.UNSET if key.related is None else Reference(*key.related),
            note=entry.note,
            type=key.type,
            deprecated_source=_SOURCE,
        )
        await self._client.request("POST", _collection(namespace), body=_encode(body))

    async def _patch(self, entry: _Entry) -> None:
        namespace = entry.key.regarding.namespace or "default"
        body = _encode(_SeriesPatch(_Series(entry.count, micro_time(entry.last))))
        try:
            path = f"{_collection(namespace)}/{entry.name}"
            await self._client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        except NotFound:
            try:
                await self._create(entry, series=True)
            except AlreadyExists as error:  # it was created meanwhile: patch it after all
                raise TryAgain(str(error)) from None

    async def _sweep_forever(self) -> None:
        elapsed = 0.0
        while True:
            await aio.sleep(self._clock, FINISH_SECONDS)
            elapsed += FINISH_SECONDS
            for entry in self._idle_since(self._clock.now() - FINISH_SECONDS):
                if entry.count > 1:
                    self._post(entry, last=True, tries=1)
                else:
                    del self._known[entry.key]
            if elapsed >= REFRESH_SECONDS:
                elapsed = 0.0
                for entry in [*self._known.values()]:
                    if entry.count > 1 and not entry.busy:
                        self._post(entry, tries=1)

    def _idle_since(self, moment: float) -> Iterator[_Entry]:
        for entry in [*self._known.values()]:
            if entry.last < moment and not entry.busy:
                yield entry


class _Recorder:
    __slots__ = ("_broadcaster", "_controller", "_instance")

    def __init__(self, broadcaster: EventBroadcaster, controller: str, instance: str) -> None:
        self._broadcaster, self._controller, self._instance = broadcaster, controller, instance

    def event(
        self, regarding: ObjectRef, related: ObjectRef | None, type: str, reason: str, action: str, note: str
    ) -> None:
        key = _Key(type, action, reason, self._controller, self._instance, regarding, related)
        self._broadcaster.take(key, note)


def echo(regarding: ObjectRef, type: str, reason: str, action: str, note: str) -> None:
    """An event as a line of the log, for who asks for verbosity 3."""
    if log.v(3):
        log.info(
            "Event occurred",
            object=f"{regarding.namespace}/{regarding.name}" if regarding.namespace else regarding.name,
            kind=regarding.kind,
            apiVersion=regarding.api_version,
            type=type,
            reason=reason,
            action=action,
            note=note,
        )


async def serves_events_v1(client: RestClient) -> bool:
    """Whether the server knows `events.k8s.io/v1`; False when it cannot be asked, too."""
    try:
        await client.request("GET", "/apis/events.k8s.io/v1")
    except ClientError:
        return False
    return True


@lru_cache(1024)
def _collection(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{quote(namespace, safe='')}/events"
