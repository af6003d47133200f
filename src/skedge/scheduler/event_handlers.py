"""From watch events to cache and queue. Upstream: `pkg/scheduler/eventhandlers.go`.

Pods arrive as `PlacedPod` (they have a node) or `PodInfo` (they have none). One object, one place: a pod with a node is
in the cache, one without and with a profile of ours is in the queue, all else is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from skedge.api.core import Node
from skedge.cache.cache import CacheError
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent
from skedge.queue.object_events import node_update_events, pod_update_events
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.stores.store import Store
from skedge.telemetry.families import Histogram
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

AnyPod = PodInfo | PlacedPod

_UNSCHEDULABLE_DELETE: Final = ClusterEvent(events.UNSCHEDULABLE_POD, ActionType.DELETE)
_ASSIGNED_UPDATE: Final = ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE)
_OF_INTEREST: Final = frozenset(
    {
        events.PERSISTENT_VOLUME,
        events.PERSISTENT_VOLUME_CLAIM,
        events.CSI_NODE,
        events.CSI_DRIVER,
        events.VOLUME_ATTACHMENT,
        events.CSI_STORAGE_CAPACITY,
        events.STORAGE_CLASS,
        events.RESOURCE_CLAIM,
        events.RESOURCE_SLICE,
        events.DEVICE_CLASS,
        events.POD_GROUP,
    }
)
"""Kinds of stores whose events can wake pods; others are kept and not counted."""


class EventHandlers:
    """The handlers of one scheduler. Each is a plain call that leaves cache and queue consistent, and is timed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._cache = scheduler.cache
        self._queue = scheduler.queue
        self._profiles = scheduler.profiles
        self._clock = scheduler.clock.monotonic
        self._seconds: dict[ClusterEvent, Histogram] = {}

    def _handled(self, event: ClusterEvent, start: float) -> None:
        seconds = self._seconds.get(event)
        if seconds is None:
            seconds = self._seconds[event] = self._scheduler.hooks.event_handling_child(event.label)
        seconds.observe(self._clock() - start)

    def _responsible(self, pod: AnyPod) -> bool:
        return pod.scheduler_name in self._profiles

    # --- pods ---------------------------------------------------------------------------------------------------------

    def pod_added(self, pod: AnyPod) -> None:
        if isinstance(pod, PlacedPod):
            self._assigned_added(pod)
        elif self._responsible(pod):
            start = self._clock()
            if log.v(3):
                log.info("Add event for unscheduled pod", pod=pod.key)
            groups = self._cache.groups
            if groups is not None:
                groups.put(pod)
            self._queue.add(pod)
            if groups is not None and groups.gang:
                self._queue.move_all(events.UNSCHEDULABLE_POD_ADD, None, pod)
            self._handled(events.UNSCHEDULABLE_POD_ADD, start)

    def _assigned_added(self, pod: PlacedPod) -> None:
        start = self._clock()
        if log.v(3):
            log.info("Add event for scheduled pod", pod=pod.key)
        try:
            self._cache.add_pod(pod)
        except CacheError as error:
            log.error(error, "Scheduler cache AddPod failed", pod=pod.key)
            self._scheduler.hooks.auditor_finding("cache-add")
            self._cache.update_pod(pod)
            self._scheduler.hooks.audit_repair("cache-add")
        self._queue.move_all(events.ASSIGNED_POD_ADD, None, pod)
        self._handled(events.ASSIGNED_POD_ADD, start)

    def pod_updated(self, old: AnyPod, new: AnyPod) -> None:
        if isinstance(old, PlacedPod):
            if isinstance(new, PlacedPod):
                self._assigned_updated(old, new)
            else:  # no API server takes a node away from a pod; if one does, the pod is pending again
                self.pod_deleted(old)
                self.pod_added(new)
        elif isinstance(new, PlacedPod):
            if old.uid != new.uid:  # deleted and made again between two looks
                self.pod_deleted(old)
                self.pod_added(new)
                return
            self._assigned_added(new)
            if self._responsible(old):
                start = self._clock()
                promised = self._queue.nominator.node_of(old.uid)
                self._queue.delete(old)
                if promised and promised != new.node_name:
                    self._queue.room_given_up(old, promised)
                self._handled(_UNSCHEDULABLE_DELETE, start)
        elif old.uid != new.uid:
            self.pod_deleted(old)
            self.pod_added(new)
        elif self._responsible(old):
            self._pending_updated(old, new)

    def _assigned_updated(self, old: PlacedPod, new: PlacedPod) -> None:
        if log.v(4):
            log.info("Update event for scheduled pod", pod=new.key)
        if old.uid != new.uid:
            self.pod_deleted(old)
            self.pod_added(new)
            return
        start = self._clock()
        repairs = self._cache.repairs
        try:
            self._cache.update_pod(new)
            self._tell_repairs(new, repairs)
        except CacheError as error:
            log.error(error, "Scheduler cache UpdatePod failed", pod=new.key)
            self._scheduler.hooks.auditor_finding("cache-update")
            self._cache.add_pod(new)
            self._scheduler.hooks.audit_repair("cache-update")
        for event in pod_update_events(old, new):
            self._queue.move_all(event, old, new)
            self._handled(event, start)
        self._handled(_ASSIGNED_UPDATE, start)  # once more when it is the only one: so does the reference

    def _pending_updated(self, old: PodInfo, new: PodInfo) -> None:
        if old.resource_version == new.resource_version:
            return
        start = self._clock()
        self._pending_changed(old, new)
        for event in pod_update_events(old, new):
            if event != events.UNSCHEDULABLE_POD_UPDATE:
                self._handled(event, start)
        self._handled(events.UNSCHEDULABLE_POD_UPDATE, start)

    def _pending_changed(self, old: PodInfo, new: PodInfo) -> None:
        if self._cache.groups is not None:
            self._cache.groups.put(new)
        if self._cache.is_assumed(new.uid):
            if new.terminating and not old.terminating:
                self._assumed_deleted(new)
            return
        if log.v(4):
            log.info("Update event for unscheduled pod", pod=new.key)
        promised = old.nominated_node_name or self._queue.nominator.node_of(old.uid)
        self._queue.update(old, new)
        if promised and promised != (new.nominated_node_name or self._queue.nominator.node_of(new.uid)):
            self._queue.room_given_up(old, promised)

    def pod_deleted(self, pod: AnyPod) -> None:
        """Of a pod with a node, or of one without; one that vanished unseen is whatever was last known of it."""
        start = self._clock()
        if isinstance(pod, PlacedPod):
            if log.v(3):
                log.info("Delete event for scheduled pod", pod=pod.key)
            repairs = self._cache.repairs
            try:
                gone = self._cache.remove_pod(pod)
                self._tell_repairs(pod, repairs)
            except CacheError as error:
                log.error(error, "Scheduler cache RemovePod failed", pod=pod.key)
                gone = pod
            self._queue.move_all(events.ASSIGNED_POD_DELETE, gone, None)
            self._handled(events.ASSIGNED_POD_DELETE, start)
            return
        if not self._responsible(pod):
            return
        if log.v(3):
            log.info("Delete event for unscheduled pod", pod=pod.key)
        promised = pod.nominated_node_name or self._queue.nominator.node_of(pod.uid)
        self._queue.delete(pod)
        if self._cache.groups is not None and not self._cache.is_assumed(pod.uid):
            self._cache.groups.drop(pod)
        if self._cache.is_assumed(pod.uid):
            self._assumed_deleted(pod)
        elif promised:
            self._queue.room_given_up(pod, promised)
        self._handled(_UNSCHEDULABLE_DELETE, start)

    def _tell_repairs(self, pod: PlacedPod, before: int) -> None:
        """Where the cache knew the pod on another node the reference ends its process; here the pod was rebuilt."""
        if self._cache.repairs != before:
            log.error("the pod was cached on another node", "Scheduler cache is corrupted, pod rebuilt", pod=pod.key)
            self._scheduler.hooks.auditor_finding("cache-node")
            self._scheduler.hooks.audit_repair("cache-node")

    def _assumed_deleted(self, pod: PodInfo) -> None:
        """A pod is deleted while it is being bound: it gives its room back at once; the binding will fail by itself."""
        cached = self._cache.find_pod(pod.uid)
        if cached is None:
            return
        if self._cache.groups is not None:
            self._cache.groups.drop(pod)
        waiting = self._scheduler.waiting.get(pod.uid)
        if waiting is None or not waiting.reject("", "removed"):
            self._cache.forget_pod(cached, cached.node_name)
        self._queue.move_all(events.ASSIGNED_POD_DELETE, cached, None)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        start = self._clock()
        self._cache.add_node(node)
        self._queue.move_all(events.NODE_ADD, None, node)
        self._handled(events.NODE_ADD, start)

    def node_updated(self, old: Node, new: Node) -> None:
        start = self._clock()
        self._cache.update_node(new)
        for event in node_update_events(old, new):
            self._queue.move_all(event, old, new)
            self._handled(event, start)

    def node_deleted(self, node: Node) -> None:
        start = self._clock()
        self._queue.move_all(events.NODE_DELETE, node, None)
        try:
            self._cache.remove_node(node)
        except CacheError as error:
            log.error(error, "Scheduler cache RemoveNode failed", node=node.metadata.name)
        self._handled(events.NODE_DELETE, start)

    # --- everything else ----------------------------------------------------------------------------------------------

    def of_store(self, resource: str, store: Store[Any]) -> Watcher:
        """Handlers that keep a plugin's store and then wake pods that wait for the resource."""
        return Watcher(resource, store, self._move_timed if resource in _OF_INTEREST else self._queue.move_all)

    def _move_timed(self, event: ClusterEvent, old: Any, new: Any) -> None:
        start = self._clock()
        self._queue.move_all(event, old, new)
        self._handled(event, start)


class Watcher:
    """Add, update and delete of one resource: first the store, then the queue."""

    def __init__(self, resource: str, store: Store[Any], move: Callable[..., None]) -> None:
        self._store = store
        self._move = move
        self._add = ClusterEvent(resource, ActionType.ADD)
        self._update = ClusterEvent(resource, ActionType.UPDATE)
        self._delete = ClusterEvent(resource, ActionType.DELETE)

    def added(self, obj: Any) -> None:
        self._store.set(obj)
        self._move(self._add, None, obj)

    def updated(self, old: Any, new: Any) -> None:
        self._store.set(new)
        self._move(self._update, old, new)

    def deleted(self, obj: Any) -> None:
        self._store.delete(obj)
        self._move(self._delete, obj, None)
