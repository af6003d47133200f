"""How stored objects are written on the wire: whole, as table rows, as metadata only; one by one, listed, watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skedge.controlplane import events, tables
from skedge.controlplane.kinds import Resource
from skedge.controlplane.negotiate import Shape
from skedge.controlplane.store import DELETED, MODIFIED, Change, Selection, Stored, decode, encode

JSON = dict[str, Any]
_PARTIAL_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'


class View:
    """One resource in one shape. `now` gives the time that ages in tables count to."""

    def __init__(self, resource: Resource, shape: Shape, now: Callable[[], float], whole_objects: str = "") -> None:
        self.resource = resource
        self.shape = shape.as_
        self.head = resource.head
        self._now = now
        self._include = whole_objects or "Metadata"  # what a table row carries: Metadata, Object, None
        self._converts = resource.group == "events.k8s.io"
        self._columns_sent = False

    # --- single objects

    def body(self, stored: Stored) -> bytes:
        """The object as the answer to a get or a write."""
        if self.shape == "Table":
            return encode(self._table([stored], {"resourceVersion": str(stored.revision)}))
        if self.shape == "PartialObjectMetadata":
            return self._partial(stored)
        return self.head + self._item(stored)[1:]

    def _item(self, stored: Stored) -> bytes:
        """The object without kind and apiVersion, in this resource's form."""
        return events.from_core(stored.raw) if self._converts else stored.raw

    def _partial(self, stored: Stored) -> bytes:
        return _PARTIAL_HEAD + encode({"metadata": decode(stored.raw)["metadata"]})[1:]

    def _table(self, items: Sequence[Stored], meta: JSON, columns: bool = True) -> JSON:
        rows = [self._row(stored) for stored in items]
        definitions = tables.columns(self.resource.storage) if columns else None
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "columnDefinitions": definitions,
            "rows": rows,
        }

    def scale(self, body: bytes) -> bytes:
        """The scale of an object as the answer to a get or a write."""
        if self.shape != "Table":
            return body
        table = self._table([], {})
        table |= {"columnDefinitions": tables.columns(tables.SCALE), "rows": [self._row_of(tables.SCALE, decode(body))]}
        return encode(table)

    def _row(self, stored: Stored) -> JSON:
        return self._row_of(self.resource.storage, stored.load())

    def _row_of(self, storage: str, obj: JSON) -> JSON:
        row: JSON = {"cells": tables.cells(storage, obj, self._now())}
        if self._include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": obj["metadata"],
            }
        elif self._include == "Object":
            row["object"] = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **obj}
        else:
            row["object"] = None
        return row

    # --- lists

    def list_parts(self, meta: JSON) -> tuple[bytes, bytes]:
        """What stands before and after the items of a list, or the rows of a table."""
        if self.shape == "Table":
            return encode(self._table([], meta))[:-2], b"]}\n"
        kind = "PartialObjectMetadataList" if self.shape else f"{self.resource.kind}List"
        version = "meta.k8s.io/v1" if self.shape else self.resource.api_version
        head = encode({"kind": kind, "apiVersion": version, "metadata": meta})
        return head[:-1] + b',"items":[', b"]}\n"

    def items(self, stored: Sequence[Stored]) -> bytes:
        """Items of a list or rows of a table, comma-separated."""
        if self.shape == "Table":
            return b",".join([encode(self._row(s)) for s in stored])
        if self.shape == "PartialObjectMetadata":
            return b",".join(self._partial(s) for s in stored)
        if self._converts:
            return b",".join(events.from_core(s.raw) for s in stored)
        return b",".join([s.raw for s in stored])

    # --- watches

    def line(self, type: str, stored: Stored) -> bytes:
        """One watch event."""
        if self.shape == "Table":
            first, self._columns_sent = not self._columns_sent, True
            meta = {"resourceVersion": str(stored.revision)}
            body = encode(self._table([stored], meta, columns=first))
        elif self.shape:
            body = self._partial(stored)
        else:
            body = self.head + self._item(stored)[1:]
        return b'{"type":"%s","object":%s}\n' % (type.encode(), body)

    def change_line(self, change: Change, selection: Selection) -> bytes | None:
        """The event a change means to a watcher with a selection: none, itself, or an object entering or leaving."""
        current = change.current
        if selection.everything:
            if selection.namespace and current.namespace != selection.namespace:
                return None
            return self._shared(change)
        is_now = change.type != DELETED and selection.matches(current)
        was = change.previous is not None and selection.matches(change.previous)
        if change.type == DELETED:
            return self._shared(change) if was else None
        if is_now:
            return self._shared(change) if was == (change.type == MODIFIED) else self.line("ADDED", current)
        if was and change.previous is not None:
            return self.line(DELETED, change.previous.restamped(current.revision))
        return None

    def _shared(self, change: Change) -> bytes:
        """The change's own line, encoded once for all watchers that see whole objects."""
        if self.shape:
            return self.line(change.type, change.current)
        line = change.lines.get(self.head)
        if line is None:
            line = change.lines[self.head] = self.line(change.type, change.current)
        return line

    def bookmark(self, revision: int, zero: JSON, initial_end: bool) -> bytes:
        """A BOOKMARK event: an empty object that carries a revision."""
        meta: JSON = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self.shape == "Table":
            table: JSON = self._table([], meta, columns=not self._columns_sent)
            self._columns_sent = True
            return encode({"type": "BOOKMARK", "object": table}) + b"\n"
        kind, version = self.resource.kind, self.resource.api_version
        if self.shape:
            kind, version, zero = "PartialObjectMetadata", "meta.k8s.io/v1", {}
        obj = {"kind": kind, "apiVersion": version, "metadata": meta, **zero}
        return encode({"type": "BOOKMARK", "object": obj}) + b"\n"
