"""The objects an informer knows, by key and by index. Read it freely between awaits; only the informer writes.

Upstream: `client-go/tools/cache` (store.go, thread_safe_store.go), without the locks: everything is on one loop.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, KeysView
from typing import Generic, TypeVar

S = TypeVar("S")
Indexer = Callable[[S], Iterable[str]]


class Store(Generic[S]):
    """Objects by key (`namespace/name`, or `name` for cluster-scoped kinds).

    `version` is the resourceVersion the contents correspond to.
    """

    def __init__(self) -> None:
        self._objects: dict[str, S] = {}
        self._indexers: dict[str, Indexer[S]] = {}
        self._indices: dict[str, dict[str, dict[str, S]]] = {}
        self.version = ""

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def __iter__(self) -> Iterator[S]:
        return iter(self._objects.values())

    def get(self, key: str) -> S | None:
        return self._objects.get(key)

    def keys(self) -> KeysView[str]:
        return self._objects.keys()

    def list(self) -> builtins.list[S]:
        """All objects, as a list of its own."""
        return [*self._objects.values()]

    def add_indexer(self, name: str, indexer: Indexer[S]) -> None:
        """Keep an index: `indexer` gives the values under which an object is found. Present objects are indexed now."""
        if name in self._indexers:
            raise ValueError(f"an indexer named {name} exists already")
        self._indexers[name] = indexer
        index = self._indices[name] = {}
        for key, obj in self._objects.items():
            for value in indexer(obj):
                index.setdefault(value, {})[key] = obj

    def by_index(self, name: str, value: str) -> builtins.list[S]:
        """The objects whose indexer `name` gave `value`. Raises KeyError for an unknown index."""
        return [*self._indices[name].get(value, {}).values()]

    def index_values(self, name: str) -> builtins.list[str]:
        """The values that have objects, in no particular order."""
        return [*self._indices[name]]

    def put(self, key: str, obj: S) -> S | None:
        """Add or replace; the former object. For the owner of the store only."""
        old = self._objects.get(key)
        if self._indexers:
            if old is not None:
                self._unindex(key, old)
            for name, indexer in self._indexers.items():
                for value in indexer(obj):
                    self._indices[name].setdefault(value, {})[key] = obj
        self._objects[key] = obj
        return old

    def remove(self, key: str) -> S | None:
        """Remove; the former object. For the owner of the store only."""
        old = self._objects.pop(key, None)
        if old is not None and self._indexers:
            self._unindex(key, old)
        return old

    def _unindex(self, key: str, obj: S) -> None:
        for name, indexer in self._indexers.items():
            index = self._indices[name]
            for value in indexer(obj):
                members = index.get(value)
                if members is not None:
                    members.pop(key, None)
                    if not members:
                        del index[value]
