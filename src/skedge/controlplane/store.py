"""The state of the API server: objects, revisions, history. No HTTP, no clock, no waiting.

                     create / replace / remove                     flush()
    writer ────────────────────────────────────▶ Collection ───────────────────▶ journal.commit, then listeners
                    (one revision a write)          │  current objects by key
                                                    └─ history: the last changes, each with the object before it

Objects are kept as encoded bytes without `kind` and `apiVersion` (what a list item looks like); the few things that
selection needs (labels, selectable fields) stand beside them. A `Stored` never changes; a write puts a new one in its
place. `staging/src/k8s.io/apiserver/pkg/storage` is the behaviour: one counter over all kinds, preconditions, reads at
an older revision as long as history reaches back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from skedge.api.labels import Selector
from skedge.controlplane.selectors import FieldSelector, selectable_values

JSON = dict[str, Any]
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
HISTORY = 20_000  # changes remembered per collection

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode

_NO_LABELS: dict[str, str] = {}
# metadata in wire order; resourceVersion stands before anything a user can name, see `restamped`
_META = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


class Stored(msgspec.Struct, gc=False, eq=False):
    """One object at one revision. Kept out of the garbage collector's sight, as `Change` is: they are many."""

    namespace: str
    name: str
    uid: str
    revision: int
    raw: bytes
    labels: dict[str, str]
    fields: tuple[str, ...]
    key: str = ""

    def __post_init__(self) -> None:
        self.key = f"{self.namespace}/{self.name}" if self.namespace else self.name

    def load(self) -> JSON:
        """The object, freshly decoded: the caller's own to change."""
        obj: JSON = decode(self.raw)
        return obj

    def restamped(self, revision: int) -> Stored:
        """The same object under another revision: how a watch reports what left a selector."""
        old = b'"resourceVersion":"%d"' % self.revision
        raw = self.raw.replace(old, b'"resourceVersion":"%d"' % revision, 1)
        return Stored(self.namespace, self.name, self.uid, revision, raw, self.labels, self.fields)


class Change(msgspec.Struct, gc=False, eq=False):
    """One write: the object after it (of a deletion: the last state under the deletion's revision) and before it.

    `lines` holds encoded watch lines shared by all watchers, by object head.
    """

    type: str
    current: Stored
    previous: Stored | None
    lines: dict[bytes, bytes] = msgspec.field(default_factory=dict)

    @property
    def revision(self) -> int:
        return self.current.revision


class Selection:
    """Which objects of a collection a request means."""

    __slots__ = ("fields", "labels", "namespace")

    def __init__(
        self, namespace: str = "", labels: Selector | None = None, fields: FieldSelector | None = None
    ) -> None:
        self.namespace = namespace
        self.labels = labels
        self.fields = fields

    @property
    def everything(self) -> bool:
        return self.labels is None and self.fields is None

    def matches(self, stored: Stored) -> bool:
        """Whether the object is selected; its namespace is checked too."""
        if self.namespace and stored.namespace != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(stored.labels):
            return False
        return self.fields is None or self.fields.matches(stored.name, stored.namespace, stored.fields)


class Journal(Protocol):
    """Where writes are kept beyond the life of the process."""

    def record(self, storage: str, change: Change) -> None:
        """Take one write; it need not be safe before `commit`."""

    def commit(self) -> None:
        """Make everything recorded so far safe."""


class Compacted(Exception):
    """History does not reach back to the revision asked for; `oldest` is the oldest one that can be read."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Collection:
    """All objects of one storage name."""

    def __init__(self, storage: str, store: Store, limit: int, floor: int) -> None:
        self.storage = storage
        self.objects: dict[str, Stored] = {}
        self.history: deque[Change] = deque()
        self.compacted = floor  # the newest revision that history no longer explains
        self.listeners: list[Callable[[list[Change]], None]] = []
        self._store = store
        self._limit = limit
        self._fresh: list[Change] = []
        self._sorted: list[str] = []
        self._unsorted: list[str] = []
        self._gone: set[str] = set()

    # --- writes

    def create(self, obj: JSON) -> Stored:
        """Store a new object. Its key must be free (the caller looked)."""
        stored = self._stamp(obj)
        self.objects[stored.key] = stored
        if stored.key in self._gone:
            self._gone.discard(stored.key)
        else:
            self._unsorted.append(stored.key)
        self._log(Change(ADDED, stored, None))
        return stored

    def replace(self, previous: Stored, obj: JSON) -> Stored:
        """Store the next state of an object that is there."""
        stored = self._stamp(obj)
        self.objects[stored.key] = stored
        self._log(Change(MODIFIED, stored, previous))
        return stored

    def remove(self, previous: Stored, last: JSON | None = None) -> Stored:
        """Remove an object; `last` is its final state when that differs from the stored one."""
        if last is None:
            self._store.revision += 1
            final = previous.restamped(self._store.revision)
        else:
            final = self._stamp(last)
        del self.objects[previous.key]
        self._gone.add(previous.key)
        self._log(Change(DELETED, final, previous))
        return final

    def _stamp(self, obj: JSON) -> Stored:
        self._store.revision += 1
        return self.build(obj, self._store.revision)

    def build(self, obj: JSON, revision: int | None) -> Stored:
        """An object in stored form, not stored; without a revision it has no resourceVersion (a dry run)."""
        meta = obj["metadata"]
        if revision is None:
            meta.pop("resourceVersion", None)
        else:
            meta["resourceVersion"] = str(revision)
        ordered = {key: meta[key] for key in _META if key in meta}
        ordered.update((key, value) for key, value in meta.items() if key not in ordered)
        body: JSON = {"metadata": ordered}
        body.update((key, value) for key, value in obj.items() if key not in ("metadata", "kind", "apiVersion"))
        labels = self._store.intern(meta.get("labels"))
        fields = selectable_values(self.storage, obj)
        raw = encode(body)
        return Stored(meta.get("namespace", ""), meta["name"], meta.get("uid", ""), revision or 0, raw, labels, fields)

    def _log(self, change: Change) -> None:
        self.history.append(change)
        if len(self.history) > self._limit:
            self.compacted = self.history.popleft().revision
        self._fresh.append(change)
        self._store.written(self, change)

    def take_fresh(self) -> list[Change]:
        """Changes since the last flush."""
        fresh, self._fresh = self._fresh, []
        return fresh

    # --- reads

    @property
    def revision(self) -> int:
        """The newest revision, of all collections."""
        return self._store.revision

    def get(self, key: str) -> Stored | None:
        return self.objects.get(key)

    def since(self, revision: int) -> list[Change]:
        """Flushed or not, every change after a revision, oldest first. Raises Compacted."""
        if revision < self.compacted:
            raise Compacted(self.compacted + 1)
        found: list[Change] = []
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def _keys(self) -> list[str]:
        """All keys in order. Timsort merges what was added since the last call in linear time."""
        if self._gone:
            self._sorted = [key for key in self._sorted if key not in self._gone]
            self._unsorted = [key for key in self._unsorted if key not in self._gone]
            self._gone.clear()
        if self._unsorted:
            self._sorted += sorted(self._unsorted)
            self._unsorted = []
            self._sorted.sort()
        return self._sorted

    def at(self, revision: int) -> dict[str, Stored | None]:
        """What must be overlaid on the present to read an older revision: key -> object then, or None."""
        overlay: dict[str, Stored | None] = {}
        for change in reversed(self.since(revision)):
            overlay[change.current.key] = change.previous
        return overlay

    def page(self, selection: Selection, after: str, limit: int, revision: int | None) -> tuple[list[Stored], int]:
        """Selected objects with a key greater than `after`, in key order, at most `limit` (0 = all), and how many keys
        of the namespace follow the last one returned (0 when the page is the last). Raises Compacted.
        """
        found, remaining, _ = self.scan(selection, after, limit, revision, 0)
        return found, remaining

    def scan(
        self, selection: Selection, after: str, limit: int, revision: int | None, budget: int
    ) -> tuple[list[Stored], int, str | None]:
        """`page`, but looking at no more than `budget` keys (0 = any number) at a time: the third value is the key to
        go on after, None when the page is complete.
        """
        if revision is not None and revision >= self._store.revision:
            revision = None  # the present
        if selection.fields is not None and selection.fields.name is not None and revision is None:
            return self._named(selection, selection.fields.name, after), 0, None
        objects = self.objects
        overlay: dict[str, Stored | None] = {} if revision is None else self.at(revision)
        ordered = self._keys()
        gone = [key for key, stored in overlay.items() if stored is not None and key not in objects]
        if gone:
            ordered = sorted(ordered + gone)  # merges two runs, in linear time
        prefix = f"{selection.namespace}/" if selection.namespace else ""
        low = bisect_left(ordered, max(prefix, after + "\0") if after else prefix)
        high = bisect_left(ordered, f"{selection.namespace}0") if prefix else len(ordered)  # "0" follows "/"
        if selection.everything and not limit and not overlay:
            return [objects[key] for key in ordered[low:high]], 0, None
        found: list[Stored] = []
        everything = selection.everything
        for position in range(low, high):
            if budget and position - low >= budget:
                return found, 0, ordered[position - 1]
            key = ordered[position]
            stored = overlay[key] if key in overlay else objects.get(key)
            if stored is not None and (everything or selection.matches(stored)):
                if limit and len(found) == limit:
                    absent = sum(1 for k in ordered[position:high] if overlay.get(k, stored) is None) if overlay else 0
                    return found, high - position - absent, None
                found.append(stored)
        return found, 0, None

    def _named(self, selection: Selection, name: str, after: str) -> list[Stored]:
        if selection.namespace or not any("/" in key for key in self._keys()[:1]):
            key = f"{selection.namespace}/{name}" if selection.namespace else name
            candidates: Iterator[Stored] = iter([self.objects[key]] if key in self.objects else [])
        else:
            candidates = (self.objects[key] for key in self._keys() if key.endswith(f"/{name}"))
        return [stored for stored in candidates if stored.key > after and selection.matches(stored)]


class Store:
    """All collections and the one revision counter."""

    def __init__(self, journal: Journal | None = None, history: int = HISTORY) -> None:
        self.revision = 1
        self.journal = journal
        self.on_dirty: Callable[[], None] | None = None  # called at the first write after a flush
        self._collections: dict[str, Collection] = {}
        self._history = history
        self._floor = 0
        self._dirty: dict[str, Collection] = {}
        self._label_sets: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def collection(self, storage: str) -> Collection:
        """The collection of a storage name, made when first asked for."""
        collection = self._collections.get(storage)
        if collection is None:
            collection = self._collections[storage] = Collection(storage, self, self._history, self._floor)
        return collection

    def collections(self) -> list[Collection]:
        return list(self._collections.values())

    def intern(self, labels: dict[str, str] | None) -> dict[str, str]:
        """One shared dict for equal label sets; most pods of a cluster carry one of a few."""
        if not labels:
            return _NO_LABELS
        key = tuple(labels.items())
        shared = self._label_sets.get(key)
        if shared is None:
            if len(self._label_sets) > 50_000:
                self._label_sets.clear()
            shared = self._label_sets[key] = dict(labels)
        return shared

    def written(self, collection: Collection, change: Change) -> None:
        """Called by a collection after each write."""
        if self.journal is not None:
            self.journal.record(collection.storage, change)
        if not self._dirty and self.on_dirty is not None:
            self.on_dirty()
        self._dirty[collection.storage] = collection

    def flush(self) -> None:
        """Make the writes since the last flush safe, then show them to the watchers."""
        if not self._dirty:
            return
        if self.journal is not None:
            self.journal.commit()
        dirty, self._dirty = self._dirty, {}
        for collection in dirty.values():
            fresh = collection.take_fresh()
            for listener in list(collection.listeners):
                listener(fresh)
            for change in fresh:
                change.lines.clear()  # whoever resumes later has them made again

    def compact(self, revision: int) -> None:
        """Forget history up to and including a revision."""
        for collection in self._collections.values():
            while collection.history and collection.history[0].revision <= revision:
                collection.history.popleft()
            collection.compacted = max(collection.compacted, revision)

    def restore(self, revision: int, objects: Iterable[tuple[str, Stored]], log: Iterable[tuple[str, Change]]) -> None:
        """Take over what a journal read back: the present objects and the remembered changes, oldest first."""
        log = list(log)
        self._floor = log[0][1].revision - 1 if log else revision
        for collection in self._collections.values():
            collection.compacted = self._floor
        for storage, stored in objects:
            collection = self.collection(storage)
            collection.objects[stored.key] = stored
            collection._unsorted.append(stored.key)
        for storage, change in log:
            self.collection(storage).history.append(change)
        self.revision = max(self.revision, revision)
