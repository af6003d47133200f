"""A store as it will be once our own writes have come back from the API server.

Upstream: `pkg/scheduler/util/assumecache/assume_cache.go`.

    assume(obj)          get -> obj, until
      a newer version, another object of that name or a deletion comes in,
      or restore(key)    get -> what the store has
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from skedge.stores.store import Store, key_of

T = TypeVar("T")


class AssumeError(Exception):
    """The object can not be assumed; the text says why."""


class AssumeCache(Generic[T]):
    """`observers` are called with (old, new) after each change of what `get` answers."""

    def __init__(self, store: Store[T]) -> None:
        self.store = store
        self.observers: list[Callable[[T | None, T | None], None]] = []
        self._assumed: dict[str, T] = {}
        store.observers.append(self._stored)

    def get(self, name: str, namespace: str = "") -> T | None:
        """The assumed object, or else the stored one."""
        if self._assumed:
            found = self._assumed.get(f"{namespace}/{name}" if namespace else name)
            if found is not None:
                return found
        return self.store.get(name, namespace)

    def stored(self, name: str, namespace: str = "") -> T | None:
        """The stored object; None where there is none, or another is assumed."""
        if self._assumed and (f"{namespace}/{name}" if namespace else name) in self._assumed:
            return None
        return self.store.get(name, namespace)

    def assume(self, obj: T) -> None:
        """Takes a changed object for what the server will say. Raises AssumeError unless its version is as known."""
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        old = self.get(meta.name, meta.namespace)
        key = key_of(obj)
        if old is None:
            raise AssumeError(f'could not find object "{key}"')
        known = old.metadata.resource_version  # type: ignore[attr-defined]
        if known != meta.resource_version:
            raise AssumeError(f'"{key}" is out of sync (stored: {known}, assume: {meta.resource_version})')
        self._assumed[key] = obj
        self._tell(old, obj)

    def restore(self, key: str) -> None:
        """Goes back to the stored object; does nothing where none is assumed."""
        old = self._assumed.pop(key, None)
        if old is not None:
            self._tell(old, self.store.get(key))

    def __iter__(self) -> Iterator[T]:
        if not self._assumed:
            return iter(self.store)
        return (self._assumed.get(key_of(obj), obj) for obj in self.store)

    def _stored(self, old: T | None, new: T | None) -> None:
        obj = new if new is not None else old
        assumed = self._assumed.get(key_of(obj)) if self._assumed else None
        if assumed is not None:
            if new is not None and not _supersedes(new, assumed):
                return
            del self._assumed[key_of(obj)]
            old = assumed
        self._tell(old, new)

    def _tell(self, old: T | None, new: T | None) -> None:
        for observer in self.observers:
            observer(old, new)


def _supersedes(new: Any, assumed: Any) -> bool:
    """Whether an object from the server is later than the one that an assumed object was made from."""
    if new.metadata.uid != assumed.metadata.uid:
        return True
    return is_newer(new.metadata.resource_version, assumed.metadata.resource_version)


def is_newer(version: str, than: str) -> bool:
    """Whether a resourceVersion is later than another. Versions that are no numbers are only compared for equality."""
    try:
        return int(version) > int(than)
    except ValueError:
        return version != than
