"""events.k8s.io/v1: what is told about an object. Times are RFC 3339 strings with microseconds."""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import Object, ObjectMeta, Value
from skedge.api.shared import ObjectReference

NORMAL = "Normal"
WARNING = "Warning"


class EventSeries(Value, frozen=True):
    """The event came `count` times, last at `last_observed_time`."""

    count: int = 0
    last_observed_time: str | None = None


class Event(Object):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
