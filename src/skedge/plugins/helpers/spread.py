"""Which pods belong together with a pod, by the services and the owner that select it.

Upstream: `plugins/helper/spread.go` (DefaultSelector).
"""

from __future__ import annotations

from typing import Any, Final

from skedge.api.labels import EVERYTHING, Selector, SelectorError, compile_selector, from_set
from skedge.api.meta import OwnerReference
from skedge.snapshot.pods import PodInfo

REPLICATION_CONTROLLER: Final = ("v1", "ReplicationController")
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
_OWNERS: Final = frozenset({REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET})
_KEPT: Final = 8192


class DefaultSelectors:
    """Default selectors of pods, kept until a service or owner changes. `listers` has the four stores."""

    def __init__(self, listers: Any) -> None:
        self._services = listers.services
        self._controllers = listers.replication_controllers
        self._replica_sets = listers.replica_sets
        self._stateful_sets = listers.stateful_sets
        self._kept: dict[Any, Selector] = {}
        self._version = -1

    def of(self, pod: PodInfo) -> Selector:
        """The selector; *everything* when neither a service nor an owner says something."""
        owner = pod.owner
        if owner is not None and (owner.api_version, owner.kind) not in _OWNERS:
            owner = None
        if owner is None and not self._services:
            return EVERYTHING
        version = (
            self._services.version
            + self._controllers.version
            + self._replica_sets.version
            + self._stateful_sets.version
        )
        if version != self._version or len(self._kept) >= _KEPT:
            self._kept.clear()
            self._version = version
        key = (pod.namespace, tuple(pod.labels.items()), owner)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._find(pod, owner)
        return found

    def _find(self, pod: PodInfo, owner: OwnerReference | None) -> Selector:
        wanted: dict[str, str] = {}
        for service in self._services.by_index("namespace", pod.namespace):
            selector = service.spec.selector
            if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
                wanted.update(selector)
        if owner is None:
            return from_set(wanted)
        kind = (owner.api_version, owner.kind)
        if kind == REPLICATION_CONTROLLER:
            controller = self._controllers.get(owner.name, pod.namespace)
            if controller is not None:
                wanted.update(controller.spec.selector or {})
            return from_set(wanted)
        store = self._replica_sets if kind == REPLICA_SET else self._stateful_sets
        found = store.get(owner.name, pod.namespace)
        if found is None:
            return from_set(wanted)
        try:
            return from_set(wanted).plus(compile_selector(found.spec.selector).requirements)
        except SelectorError:
            return from_set(wanted)
