"""Finding by labels, both ways: selectors that a pod may match, and pods that a selector may match.

A selector is anchored at one of its `key in values` requirements; one without such a requirement stands with the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from skedge.api.labels import IN, Requirement, Selector
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod

T = TypeVar("T", bound=Hashable)

ANY: Final = ""
"""Stands for a label key (and its value) where pods are kept by namespace alone; no label has this key."""


def anchor(selectors: Iterable[Selector]) -> Requirement | None:
    """The requirement that narrows the conjunction of these selectors best, by the look of it."""
    best: Requirement | None = None
    for selector in selectors:
        for each in selector.requirements:
            if each.operator == IN and (best is None or len(each.values) < len(best.values)):
                best = each
    return best


class SelectorIndex(Generic[T]):
    """Items by the labels that pods must have to match them. Items of a selector that matches nothing are left out."""

    __slots__ = ("_by_label", "_rest")

    def __init__(self) -> None:
        self._by_label: dict[str, dict[str, dict[T, None]]] = {}
        self._rest: dict[T, None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_label or self._rest)

    def add(self, item: T, selectors: tuple[Selector, ...]) -> None:
        if any(selector.nothing for selector in selectors):
            return
        at = anchor(selectors)
        if at is None:
            self._rest[item] = None
            return
        by_value = self._by_label.setdefault(at.key, {})
        for value in at.values:
            by_value.setdefault(value, {})[item] = None

    def remove(self, item: T, selectors: tuple[Selector, ...]) -> None:
        if any(selector.nothing for selector in selectors):
            return
        at = anchor(selectors)
        if at is None:
            del self._rest[item]
            return
        by_value = self._by_label[at.key]
        for value in at.values:
            del by_value[value][item]
            if not by_value[value]:
                del by_value[value]
        if not by_value:
            del self._by_label[at.key]

    def candidates(self, labels: Mapping[str, str]) -> list[T]:
        """Items that a pod with these labels may match, each once."""
        found = list(self._rest)
        if self._by_label:
            for key, value in labels.items():
                by_value = self._by_label.get(key)
                if by_value is not None:
                    items = by_value.get(value)
                    if items:
                        found.extend(items)
        return found


class Postings:
    """Placed pods by (label value, namespace), for the label keys that selectors were anchored at lately."""

    MAX_KEYS: Final = 16

    __slots__ = ("_by_key", "_table")

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_key: dict[str, dict[str, dict[str, set[PlacedPod]]]] = {}

    def changed(self, old: PlacedPod | None, new: PlacedPod | None) -> None:
        """Follows a pod: came (old is None), gone (new is None), or was replaced."""
        for key, by_value in self._by_key.items():
            if old is not None:
                _discard(by_value, old, key)
            if new is not None:
                _add(by_value, new, key)

    def pods(self, namespaces: frozenset[str] | None, selectors: Iterable[Selector]) -> Iterator[PlacedPod]:
        """Pods of these namespaces (None: of all) that satisfy the anchor of the selectors."""
        at = anchor(selectors)
        by_value = self._of_key(ANY if at is None else at.key)
        for value in (ANY,) if at is None else at.values:
            by_namespace = by_value.get(value)
            if by_namespace is None:
                continue
            if namespaces is None:
                for pods in by_namespace.values():
                    yield from pods
            else:
                for namespace in namespaces:
                    yield from by_namespace.get(namespace, ())

    def _of_key(self, key: str) -> dict[str, dict[str, set[PlacedPod]]]:
        found = self._by_key.pop(key, None)
        if found is None:
            if len(self._by_key) >= self.MAX_KEYS:
                del self._by_key[next(iter(self._by_key))]
            found = {}
            for pods in self._table.pods:
                for pod in pods.values():
                    _add(found, pod, key)
        self._by_key[key] = found
        return found

    def validate(self) -> None:
        """Raises AssertionError when a posting is not what the table's pods make of it."""
        for key, kept in self._by_key.items():
            fresh: dict[str, dict[str, set[PlacedPod]]] = {}
            for pods in self._table.pods:
                for pod in pods.values():
                    _add(fresh, pod, key)
            assert kept == fresh, f"postings of label {key}"


def _add(by_value: dict[str, dict[str, set[PlacedPod]]], pod: PlacedPod, key: str) -> None:
    value = ANY if key == ANY else pod.labels.get(key)
    if value is not None:
        by_value.setdefault(value, {}).setdefault(pod.namespace, set()).add(pod)


def _discard(by_value: dict[str, dict[str, set[PlacedPod]]], pod: PlacedPod, key: str) -> None:
    value = ANY if key == ANY else pod.labels.get(key)
    if value is None:
        return
    by_namespace = by_value[value]
    pods = by_namespace[pod.namespace]
    pods.discard(pod)
    if not pods:
        del by_namespace[pod.namespace]
        if not by_namespace:
            del by_value[value]
