"""Kubernetes Events through core/v1: for leader election, and for servers without `events.k8s.io/v1`.

    event() ─▶ aggregate: 10 different messages in 10 min become one "(combined from similar events)"
            ─▶ count: the same event again is a patch of count and lastTimestamp
            ─▶ spam filter: 25 a source and object, then one in 5 min ─▶ create or patch

Upstream: `client-go/tools/record` (event.go, events_cache.go).
"""

from __future__ import annotations

from collections import OrderedDict
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from skedge.client.errors import NotFound
from skedge.client.events import QUEUE_SIZE, EventMeta, EventNames, EventRecorder, ObjectRef, Reference, echo
from skedge.client.limiter import TokenBucket
from skedge.client.outbox import Outbox
from skedge.client.rest import STRATEGIC_MERGE_PATCH, RestClient
from skedge.client.timefmt import rfc3339

CACHE_SIZE = 4096
AGGREGATE_MESSAGES = 10
AGGREGATE_SECONDS = 600.0
SPAM_BURST = 25
SPAM_QPS = 1.0 / 300.0

K = TypeVar("K")
V = TypeVar("V")


class _Lru(OrderedDict[K, V], Generic[K, V]):
    """Keeps the 4096 entries used last."""

    def fetch(self, key: K) -> V | None:
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > CACHE_SIZE:
            self.popitem(last=False)


class _Source(NamedTuple):
    component: str
    host: str


class _Happening(NamedTuple):
    """What `event` was told."""

    source: _Source
    regarding: ObjectRef
    type: str
    reason: str
    message: str
    time: float

    def group(self) -> tuple[Any, ...]:
        """What similar events have in common: everything but the message, and not the version of the object."""
        ref = self.regarding
        return (self.source, *ref[:5], self.type, self.reason)


class _Seen:
    """An event that exists, and how often it happened."""

    __slots__ = ("count", "first", "name")

    def __init__(self, name: str, first: float) -> None:
        self.name, self.first, self.count = name, first, 0


class _SourceBody(msgspec.Struct, omit_defaults=True):
    component: str = ""
    host: str = ""


class _Body(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: EventMeta
    involved_object: Reference
    reason: str
    message: str
    source: _SourceBody
    first_timestamp: str
    last_timestamp: str
    count: int
    type: str
    event_time: None
    reporting_component: str
    reporting_instance: str


_encode = msgspec.json.Encoder().encode


class CoreEventBroadcaster:
    """Takes events from recorders and sends them to `core/v1`; used like `events.EventBroadcaster`.

    `related` and `action` have no place there and are left out. `dropped` counts events lost to a full queue,
    `filtered` those the spam filter held back.
    """

    def __init__(self, client: RestClient) -> None:
        self._client, self._clock = client, client.clock
        # One worker: a patch must not overtake the creation of its event.
        self._outbox = Outbox(client, workers=1, first_delay_random=True)
        self._names = EventNames(client)
        self._messages: _Lru[tuple[Any, ...], tuple[float, dict[str, None]]] = _Lru()
        self._seen: _Lru[tuple[Any, ...], _Seen] = _Lru()
        self._buckets: _Lru[tuple[Any, ...], TokenBucket] = _Lru()
        self._overflow = 0
        self.filtered = 0

    @property
    def dropped(self) -> int:
        return self._overflow + self._outbox.dropped

    def recorder(self, component: str, host: str = "") -> EventRecorder:
        """A recorder whose events have this source."""
        return _Recorder(self, _Source(component, host))

    async def flush(self) -> None:
        """Wait until every event so far is sent or given up."""
        await self._outbox.flush()

    async def __aenter__(self) -> CoreEventBroadcaster:
        self._outbox.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._outbox.stop(grace=1.0 if error is None else 0.0)

    def take(self, source: _Source, regarding: ObjectRef, type: str, reason: str, message: str) -> None:
        """The recorders': aggregate, count, filter, queue."""
        echo(regarding, type, reason, "", message)
        if len(self._outbox) >= QUEUE_SIZE:
            self._overflow += 1
            self._outbox.full.say()
            return
        happening, key = self._aggregate(_Happening(source, regarding, type, reason, message, self._clock.now()))
        seen = self._seen.fetch(key)
        if seen is None:
            seen = _Seen(self._names.make(regarding.name, happening.time), happening.time)
            self._seen.keep(key, seen)
        seen.count += 1
        spam_key = (source, *regarding[:5], type)
        bucket = self._buckets.fetch(spam_key)
        if bucket is None:
            bucket = TokenBucket(SPAM_QPS, SPAM_BURST, self._clock)
            self._buckets.keep(spam_key, bucket)
        if not bucket.try_take():
            self.filtered += 1
            return
        self._outbox.post(_Letter(self._client, happening, seen.name, seen.first, seen.count))

    def _aggregate(self, happening: _Happening) -> tuple[_Happening, tuple[Any, ...]]:
        """The event to write and what it is known by: itself, or the one that stands for many similar ones."""
        group = happening.group()
        last, messages = self._messages.fetch(group) or (happening.time, {})
        if happening.time - last > AGGREGATE_SECONDS:
            messages = {}
        messages[happening.message] = None
        self._messages.keep(group, (happening.time, messages))
        if len(messages) < AGGREGATE_MESSAGES:
            return happening, (*group, happening.message, happening.regarding.field_path)
        messages.pop(next(iter(messages)))  # keeps the number where it is
        combined = happening._replace(message=f"(combined from similar events): {happening.message}")
        return combined, group


class _Letter:
    __slots__ = ("_client", "_count", "_first", "_happening", "_name")

    def __init__(self, client: RestClient, happening: _Happening, name: str, first: float, count: int) -> None:
        self._client, self._happening = client, happening
        self._name, self._first, self._count = name, first, count

    async def send(self) -> None:
        happening = self._happening
        namespace = happening.regarding.namespace or "default"
        collection = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        last = rfc3339(happening.time)
        if self._count > 1:
            patch = {"count": self._count, "lastTimestamp": last, "message": happening.message}
            try:
                path = f"{collection}/{self._name}"
                await self._client.request("PATCH", path, body=_encode(patch), content_type=STRATEGIC_MERGE_PATCH)
                return
            except NotFound:
                pass  # it expired on the server: begin anew
        body = _Body(
            kind="Event",
            api_version="v1",
            metadata=EventMeta(self._name, namespace),
            involved_object=Reference(*happening.regarding),
            reason=happening.reason,
            message=happening.message,
            source=_SourceBody(*happening.source),
            first_timestamp=rfc3339(self._first),
            last_timestamp=last,
            count=self._count,
            type=happening.type,
            event_time=None,
            reporting_component=happening.source.component,
            reporting_instance=happening.source.host,
        )
        await self._client.request("POST", collection, body=_encode(body))

    def ended(self, sent: bool) -> None:
        pass


class _Recorder:
    __slots__ = ("_broadcaster", "_source")

    def __init__(self, broadcaster: CoreEventBroadcaster, source: _Source) -> None:
        self._broadcaster, self._source = broadcaster, source

    def event(
        self, regarding: ObjectRef, related: ObjectRef | None, type: str, reason: str, action: str, note: str
    ) -> None:
        self._broadcaster.take(self._source, regarding, type, reason, note)
