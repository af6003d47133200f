"""A store of one kind of object: by key, by namespace, by any index, with a version that grows with each change.

Whoever keeps an answer that depends on a store keeps its version beside it. Upstream: client-go `tools/cache/store.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def key_of(obj: Any) -> str:
    """`namespace/name`, or the name alone where there is no namespace."""
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Store(Generic[T]):
    """`indexers`: index name -> the values of that index an object is found under."""

    def __init__(self, indexers: Mapping[str, Callable[[T], Iterable[str]]] | None = None) -> None:
        self._objects: dict[str, T] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._indexers}
        self.version = 0
        self.observers: list[Callable[[T | None, T | None], None]] = []
        """Called with (old, new) after each change: how what is derived from objects follows them."""

    def set(self, obj: T) -> T | None:
        """Adds or replaces; returns the object that was there."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and self._indexers:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, values_of in self._indexers.items():
            index = self._indexes[name]
            for value in values_of(obj):
                index.setdefault(value, {})[key] = obj
        self.version += 1
        for observer in self.observers:
            observer(old, obj)
        return old

    def delete(self, obj: T) -> T | None:
        """Removes the object of the same key; returns what was there."""
        key = key_of(obj)
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
            self.version += 1
            for observer in self.observers:
                observer(old, None)
        return old

    def _unindex(self, key: str, obj: T) -> None:
        for name, values_of in self._indexers.items():
            index = self._indexes[name]
            for value in values_of(obj):
                found = index.get(value)
                if found is not None:
                    found.pop(key, None)
                    if not found:
                        del index[value]

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def by_index(self, index: str, value: str) -> Iterable[T]:
        """Objects under a value of an index, in order of arrival."""
        return self._indexes[index].get(value, {}).values()

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects


def by_namespace(obj: Any) -> Iterable[str]:
    """The usual indexer."""
    return (obj.metadata.namespace,)
