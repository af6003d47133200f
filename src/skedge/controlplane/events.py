"""The two faces of an Event: stored as core/v1, served as core/v1 and events.k8s.io/v1.

`pkg/apis/events/v1/conversion.go`: only names differ.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.store import decode, encode

JSON = dict[str, Any]

# core name -> events.k8s.io name, in the wire order of the latter
_RENAMED = (
    ("metadata", "metadata"),
    ("eventTime", "eventTime"),
    ("series", "series"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
    ("action", "action"),
    ("reason", "reason"),
    ("involvedObject", "regarding"),
    ("related", "related"),
    ("message", "note"),
    ("type", "type"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


# required in events.k8s.io only when they say something; core always writes them
_EMPTY_OMITTED = frozenset(["reportingComponent", "reportingInstance"])


def to_core(event: JSON) -> JSON:
    """An events.k8s.io/v1 event in core form."""
    obj = {core: event[name] for core, name in _RENAMED if name in event}
    obj.setdefault("involvedObject", {})
    for name in _EMPTY_OMITTED:
        obj.setdefault(name, "")
    return obj


def convert_from_core(obj: JSON) -> JSON:
    """A core event in events.k8s.io form."""
    return {
        name: obj[core] for core, name in _RENAMED if core in obj and not (core in _EMPTY_OMITTED and obj[core] == "")
    }


def from_core(raw: bytes) -> bytes:
    """The same for an encoded object."""
    return encode(convert_from_core(decode(raw)))
