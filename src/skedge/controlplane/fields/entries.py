"""`metadata.managedFields` decoded: who owns which fields, since when, and back.

Upstream: `apimachinery/pkg/util/managedfields/internal/managedfields.go`, `capmanagers.go`, `buildmanagerinfo.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from skedge.controlplane.fields import sets
from skedge.controlplane.fields.table import Obj

MAX_UPDATERS = 10
"""Update entries kept apart; older ones are merged under `ANCIENT`."""
ANCIENT = "ancient-changes"


class Owner(NamedTuple):
    """Identity of an entry. Appliers may change version, so theirs is not part of it (`version` is empty)."""

    manager: str
    operation: str
    version: str
    subresource: str

    @property
    def sort_key(self) -> tuple[str, ...]:
        """Upstream sorts owners by their JSON, in which absent fields are left out."""
        return (self.manager, self.operation, self.version, self.subresource)


@dataclass(slots=True)
class Entry:
    """The fields of one owner. `raw` is the entry as it was read, kept while `fields` and `time` are unchanged."""

    fields: Obj
    version: str
    time: str | None = None
    raw: Obj | None = None

    def set_fields(self, fields: Obj) -> None:
        """Replace the set if it differs."""
        if fields is not self.fields and fields != self.fields:
            self.fields = fields
            self.raw = None

    def touch(self, time: str | None) -> None:
        """Set the time of the last change."""
        if time != self.time:
            self.time = time
            self.raw = None


Managed = dict[Owner, Entry]


def owner(manager: str, operation: str, version: str, subresource: str) -> Owner:
    """The identity under which an operation is recorded; `version` is group/version."""
    return Owner(manager or "unknown", operation, "" if operation == "Apply" else version, subresource)


def decode(entries: Any) -> Managed | None:
    """The entries of an object, or None where one of them is malformed (the server then ignores all)."""
    out: Managed = {}
    if entries is not None and not isinstance(entries, list):
        return None
    for raw in entries or ():
        if not isinstance(raw, dict) or raw.get("operation") not in ("Apply", "Update"):
            return None
        if not all(isinstance(raw.get(name) or "", str) for name in ("manager", "apiVersion", "time", "subresource")):
            return None
        fields = raw.get("fieldsV1")
        if raw.get("fieldsType") != "FieldsV1" or (fields is not None and not sets.is_field_set(fields)):
            return None
        version = raw.get("apiVersion") or ""
        key = owner(raw.get("manager") or "", raw["operation"], version, raw.get("subresource") or "")
        out[key] = Entry(fields or {}, version, raw.get("time"), raw)
    return out


def encode(managed: Managed) -> list[Obj]:
    """The entries in the server's order: appliers first, then by time, manager, version, subresource."""
    out: list[tuple[tuple[str, ...], Obj]] = []
    for key, entry in managed.items():
        raw = entry.raw
        if raw is None:
            raw = {"manager": key.manager, "operation": key.operation, "apiVersion": entry.version}
            if entry.time is not None:
                raw["time"] = entry.time
            raw["fieldsType"] = "FieldsV1"
            raw["fieldsV1"] = sets.ordered(entry.fields)
            if key.subresource:
                raw["subresource"] = key.subresource
        out.append(((key.operation, entry.time or "", key.manager, entry.version, key.subresource), raw))
    out.sort(key=lambda pair: pair[0])
    return [raw for _, raw in out]


def cap_updaters(managed: Managed) -> None:
    """Merge the oldest Update entries of a version into one while there are more than `MAX_UPDATERS`."""
    updaters = [key for key in managed if key.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda key: (managed[key].time or "", key.sort_key))
    first: dict[str, Owner] = {}
    for key in updaters:
        if excess <= 0:
            return
        entry = managed[key]
        if entry.version not in first:
            first[entry.version] = key
            continue
        bucket = owner(ANCIENT, "Update", entry.version, "")
        if bucket not in managed:
            oldest = managed.pop(first[entry.version])
            managed[bucket] = Entry(oldest.fields, oldest.version, oldest.time)
        if key != bucket:
            managed[bucket].set_fields(sets.union(managed[bucket].fields, managed.pop(key).fields))
            excess -= 1
        managed[bucket].touch(entry.time)


def same_but_times(old: Obj, new: Obj) -> bool:
    """Whether two versions of an object differ in nothing but times of their managedFields.

    The server does not write such a change (`handlers/fieldmanager/equality.go`).
    """
    if old == new:
        return True
    before, after = old.get("metadata") or {}, new.get("metadata") or {}
    if {**old, "metadata": None} != {**new, "metadata": None}:
        return False
    if {**before, "managedFields": None} != {**after, "managedFields": None}:
        return False
    timeless = [
        [{name: value for name, value in entry.items() if name != "time"} for entry in meta.get("managedFields") or ()]
        for meta in (before, after)
    ]
    return timeless[0] == timeless[1]
