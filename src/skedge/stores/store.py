"""A store of one kind of object: by key, by any index, with a version that grows with each change.

Informers fill it, plugins and controllers read it; read it freely between awaits. Whoever keeps an answer that depends
on a store keeps its version beside it. Upstream: `client-go/tools/cache` (store.go, thread_safe_store.go), without the
locks: everything is on one loop.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Indexer = Callable[[T], Iterable[str]]
"""The values under which an object is found."""


def key_of(obj: Any) -> str:
    """`namespace/name`, or the name alone where there is no namespace."""
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Store(Generic[T]):
    """Objects by key (`namespace/name`, or `name` for cluster-scoped kinds)."""

    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None) -> None:
        self._objects: dict[str, T] = {}
        self._indexers: dict[str, Indexer[T]] = {}
        self._indexes: dict[str, dict[str, dict[str, T]]] = {}
        self.version = 0
        """How many changes there were."""
        self.resource_version = ""
        """The server's version of the collection that the contents correspond to."""
        self.observers: list[Callable[[T | None, T | None], None]] = []
        """Called with (old, new) after each change: how what is derived from objects follows them."""
        for name, indexer in (indexers or {}).items():
            self.add_indexer(name, indexer)

    # --- changing: for the owner of the store only --------------------------------------------------------------------

    def set(self, obj: T) -> T | None:
        """Adds or replaces an object that has metadata; returns the one that was there."""
        return self.put(key_of(obj), obj)

    def delete(self, obj: T) -> T | None:
        """Removes the object of the same key; returns what was there."""
        return self.remove(key_of(obj))

    def put(self, key: str, obj: T) -> T | None:
        """Adds or replaces; returns the object that was there."""
        old = self._objects.get(key)
        if self._indexers:
            if old is not None:
                self._unindex(key, old)
            for name, indexer in self._indexers.items():
                index = self._indexes[name]
                for value in indexer(obj):
                    index.setdefault(value, {})[key] = obj
        self._objects[key] = obj
        self._changed(old, obj)
        return old

    def remove(self, key: str) -> T | None:
        """Removes; returns the object that was there."""
        old = self._objects.pop(key, None)
        if old is not None:
            if self._indexers:
                self._unindex(key, old)
            self._changed(old, None)
        return old

    def add_indexer(self, name: str, indexer: Indexer[T]) -> None:
        """Keeps one more index. Objects that are there are indexed now."""
        if name in self._indexers:
            raise ValueError(f"an indexer named {name} exists already")
        self._indexers[name] = indexer
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            for value in indexer(obj):
                index.setdefault(value, {})[key] = obj

    def _changed(self, old: T | None, new: T | None) -> None:
        self.version += 1
        for observer in self.observers:
            observer(old, new)

    def _unindex(self, key: str, obj: T) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                found = index.get(value)
                if found is not None:
                    found.pop(key, None)
                    if not found:
                        del index[value]

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of a name in a namespace, or of a key."""
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Objects under a value of an index, in order of arrival. Raises KeyError for an unknown index."""
        return [*self._indexes[index].get(value, {}).values()]

    def index_values(self, index: str) -> builtins.list[str]:
        """The values that have objects, in no particular order."""
        return [*self._indexes[index]]

    def keys(self) -> KeysView[str]:
        return self._objects.keys()

    def list(self) -> builtins.list[T]:
        """All objects, as a list of its own."""
        return [*self._objects.values()]

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects


def by_namespace(obj: Any) -> Iterable[str]:
    """The usual indexer."""
    return (obj.metadata.namespace,)
