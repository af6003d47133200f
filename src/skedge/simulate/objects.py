"""Objects as `kubectl get -o json` or a manifest gives them, made into a cluster.

Lists are opened, repeated objects count once (the last one), kinds that placing pods does not read are passed over.
What an API server would have filled in is filled in: namespace, UID, the priority of a priority class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from skedge.api.core import Pod
from skedge.api.decode import KINDS
from skedge.api.requests import pod_requests
from skedge.cache.cache import CacheError
from skedge.config.gates import FeatureGates
from skedge.config.types import KubeSchedulerConfiguration
from skedge.simulate.cluster import STORES, Cluster

Json = dict[str, Any]

_READ: Final = ("Namespace", "Node", *(kind for kind in STORES if kind != "Namespace"), "Pod")
"""Kinds in the order they are put into a cluster: pods find their nodes."""
_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class ObjectError(ValueError):
    """An object that can not be read; the message names it and the field."""


class Objects:
    """Objects by kind and key (`namespace/name` or the name)."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Json]] = {}

    def add(self, documents: Iterable[Any], where: str = "") -> None:
        """Adds objects and lists of objects; `where` says in errors where they are from. Raises ObjectError."""
        for document in documents:
            for obj, place in _opened(document, where):
                self._add(obj, place)

    def add_items(self, kind: str, items: Iterable[Json]) -> None:
        """Adds the items of a list that the API sent, which do not name their kind. Raises ObjectError."""
        for obj in items:
            self._add({"kind": kind, **obj}, f"{kind} list")

    def _add(self, obj: Json, where: str) -> None:
        kind = obj["kind"]
        if kind not in _READ and kind != "PriorityClass":
            return
        meta = obj.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(meta.get("name"), str) or not meta["name"]:
            raise ObjectError(_at(where, f"{kind}: metadata.name: expected a string"))
        meta = dict(meta)
        key = meta["name"]
        if KINDS[kind].namespaced:
            meta["namespace"] = meta.get("namespace") or "default"
            key = f"{meta['namespace']}/{key}"
        meta["uid"] = meta.get("uid") or f"{kind}/{key}"
        self._kinds.setdefault(kind, {})[key] = {**obj, "metadata": meta}

    def pod(self, key: str) -> Pod | None:
        """The pod `namespace/name`, its priority filled in. Raises ObjectError."""
        obj = self._kinds.get("Pod", {}).get(key)
        if obj is None:
            return None
        try:
            pod = msgspec.convert(self._with_priority(obj), Pod)
            pod_requests(pod)
        except (msgspec.ValidationError, ValueError) as error:
            raise ObjectError(f"Pod {key}: {error}") from None
        return pod

    def cluster(
        self, config: KubeSchedulerConfiguration | None = None, *, gates: FeatureGates | None = None
    ) -> Cluster:
        """All objects in a cluster. Raises ObjectError, and ConfigError for the configuration."""
        cluster = Cluster(config, gates=gates)
        for kind in _READ:
            for key, obj in self._kinds.get(kind, {}).items():
                try:
                    cluster.put(kind, self._with_priority(obj) if kind == "Pod" else obj)
                except (msgspec.ValidationError, ValueError, CacheError) as error:
                    raise ObjectError(f"{kind} {key}: {error}") from None
        return cluster

    def _with_priority(self, pod: Json) -> Json:
        """A pod with its priority, which admission would have set."""
        spec = pod.get("spec")
        if not isinstance(spec, Mapping) or spec.get("priority") is not None:
            return pod
        classes = self._kinds.get("PriorityClass", {})
        name = spec.get("priorityClassName")
        if name in _SYSTEM_CLASSES:
            return {**pod, "spec": {**spec, "priority": _SYSTEM_CLASSES[name]}}
        found = classes.get(name) if name else next((c for c in classes.values() if c.get("globalDefault")), None)
        if found is None:
            return pod
        filled = {"priority": found.get("value", 0)}
        if spec.get("preemptionPolicy") is None and found.get("preemptionPolicy"):
            filled["preemptionPolicy"] = found["preemptionPolicy"]
        return {**pod, "spec": {**spec, **filled}}


def _opened(document: Any, where: str) -> Iterator[tuple[Json, str]]:
    """The document, or what is in it if it is a list of objects; with its place."""
    if document is None:
        return
    if not isinstance(document, dict):
        raise ObjectError(_at(where, f"expected an object, got {type(document).__name__}"))
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise ObjectError(_at(where, "expected an object with a kind"))
    if not kind.endswith("List"):
        yield document, where
        return
    items = [] if document.get("items") is None else document["items"]
    if not isinstance(items, list):
        raise ObjectError(_at(where, f"{kind}: items: expected a list"))
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise ObjectError(_at(where, f"{kind}: items[{number}]: expected an object"))
        inner = item.get("kind") or kind.removesuffix("List")
        yield from _opened({**item, "kind": inner}, f"{where}: items[{number}]" if where else f"items[{number}]")


def _at(where: str, problem: str) -> str:
    return f"{where}: {problem}" if where else problem
