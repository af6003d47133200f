"""Which resources a scheduler watches, and which handler each goes to. Upstream: `eventhandlers.go`.

Pods and nodes are always watched. Any other kind only when a plugin registered an event of it or reads its store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from skedge import names
from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.api.meta import ObjectMeta
from skedge.app.bodies import Bodies
from skedge.app.objects import WRITTEN, Kept
from skedge.client.informer import Informer, InformerFactory, Registration, Tombstone
from skedge.client.watch import Resource
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent
from skedge.framework.handle import Listers
from skedge.scheduler.event_handlers import AnyPod, Watcher
from skedge.scheduler.scheduler import Scheduler
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.stores.store import Store
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Watched(NamedTuple):
    """A kind that plugins read: where its events are registered, and its store's name in `Listers`."""

    kind: str
    resource: str
    store: str
    gate: str = ""


WATCHED: Final = (
    Watched("Namespace", "", "namespaces"),
    Watched("Service", "", "services"),
    Watched("ReplicationController", "", "replication_controllers"),
    Watched("ReplicaSet", "", "replica_sets"),
    Watched("StatefulSet", "", "stateful_sets"),
    Watched("PodDisruptionBudget", "", "pod_disruption_budgets"),
    Watched("PersistentVolume", events.PERSISTENT_VOLUME, "persistent_volumes"),
    Watched("PersistentVolumeClaim", events.PERSISTENT_VOLUME_CLAIM, "persistent_volume_claims"),
    Watched("StorageClass", events.STORAGE_CLASS, "storage_classes"),
    Watched("CSINode", events.CSI_NODE, "csi_nodes"),
    Watched("CSIDriver", events.CSI_DRIVER, "csi_drivers"),
    Watched("CSIStorageCapacity", events.CSI_STORAGE_CAPACITY, "csi_storage_capacities"),
    Watched("VolumeAttachment", events.VOLUME_ATTACHMENT, "volume_attachments"),
    Watched("ResourceClaim", events.RESOURCE_CLAIM, "resource_claims"),
    Watched("ResourceSlice", events.RESOURCE_SLICE, "resource_slices"),
    Watched("DeviceClass", events.DEVICE_CLASS, "device_classes"),
    Watched("DeviceTaintRule", "", "device_taint_rules", "DRADeviceTaintRules"),
    Watched("PodGroup", events.POD_GROUP, "pod_groups", "GenericWorkload"),
)


def as_kept(pod: Pod) -> AnyPod:
    """What the informer keeps of a pod: little, once it has a node."""
    info = PodInfo(pod)
    return PlacedPod(info, pod.spec.node_name) if pod.spec.node_name else info


PODS: Final[Resource[AnyPod]] = Resource(KINDS["Pod"].path(), Pod, field_selector=UNFINISHED, transform=as_kept)
NODES: Final[Resource[Node]] = Resource.of(KINDS["Node"].path(), Node)


class Custom(msgspec.Struct):
    """An object of a kind that only an out-of-tree plugin knows: hints get its metadata, and all else as it came."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Any = None
    status: Any = None


def custom_path(resource: str) -> str | None:
    """Where a resource that a plugin named `plural.version.group` is served; None, with a word, for another form."""
    plural, _, rest = resource.partition(".")
    version, _, group = rest.partition(".")
    if not (plural and version and group):
        log.error(None, "Incorrect event registration", gvk=resource)
        return None
    return f"/apis/{group}/{version}/{plural}"


class TakenListers(Listers):
    """Stores that know which of them plugins took while they were made."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        super().__init__()
        self.taken.clear()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if isinstance(found, Store):
            self.taken.add(name)
        return found


def _concerns(scheduler: Scheduler, resource: str) -> bool:
    """Whether a plugin listens to some event of the resource. DynamicResources follows all kinds of its group."""
    if resource.startswith("resource.k8s.io/"):
        plugins = (plugin for profile in scheduler.profiles.values() for plugin in profile.plugins)
        return any(plugin.name == names.DYNAMIC_RESOURCES for plugin in plugins)
    actions = (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
    of_interest = scheduler.queue.hints.of_interest
    return bool(resource) and any(of_interest(ClusterEvent(resource, action)) for action in actions)


class Watches:
    """The informers of one scheduler. `pods` and `nodes` are there before the scheduler, which looks pods up."""

    def __init__(self, factory: InformerFactory, bodies: Bodies | None = None) -> None:
        self._factory = factory
        self.pods: Informer[AnyPod] = factory.informer(bodies.of_pods(PODS, as_kept) if bodies else PODS)
        self.nodes: Informer[Node] = factory.informer(bodies.of_nodes(NODES) if bodies else NODES)
        if bodies:
            self.pods.add_handler(on_update=bodies.replaced, on_delete=bodies.forget_pod)
            self.nodes.add_handler(on_delete=bodies.forget_node)
        self.written: dict[str, Informer[Kept[Any]]] = {
            kind: factory.informer(resource) for kind, resource in WRITTEN.items()
        }
        self._registrations: list[Registration[Any]] = []

    def connect(
        self, scheduler: Scheduler, listers: TakenListers, enabled: Callable[[str], bool], *, everything: bool = False
    ) -> None:
        """Adds the handlers: nodes first, so that the first pods find their nodes.

        `everything`: watch also what no plugin took a store of, as one may do so later.
        """
        handlers = scheduler.handlers

        def register(informer: Informer[Any], add: Any, update: Any, delete: Any) -> None:
            self._registrations.append(
                informer.add_handler(
                    on_add=lambda obj, initial: add(obj),
                    on_update=update,
                    on_delete=lambda obj: delete(obj.obj if isinstance(obj, Tombstone) else obj),
                )
            )

        register(self.nodes, handlers.node_added, handlers.node_updated, handlers.node_deleted)
        for watched in WATCHED:
            if watched.gate and not enabled(watched.gate):
                continue
            if not (everything or watched.store in listers.taken or _concerns(scheduler, watched.resource)):
                if watched.kind in self.written:
                    self._factory.drop(self.written[watched.kind])
                continue
            info = KINDS[watched.kind]
            watcher: Watcher = handlers.of_store(watched.resource or watched.kind, getattr(listers, watched.store))
            written = self.written.get(watched.kind)
            if written is not None:
                register(written, *_of_views(watcher))
                continue
            informer = self._factory.informer(Resource.of(info.path(), info.struct))
            register(informer, watcher.added, watcher.updated, watcher.deleted)
        known = {events.POD, events.NODE, events.WILDCARD, *(w.resource or w.kind for w in WATCHED)}
        for name in sorted(scheduler.queue.hints.resources() - known):
            path = custom_path(name)
            if path is not None:
                watcher = handlers.of_store(name, Store())
                register(
                    self._factory.informer(Resource.of(path, Custom)), watcher.added, watcher.updated, watcher.deleted
                )
        register(self.pods, handlers.pod_added, handlers.pod_updated, handlers.pod_deleted)

    @property
    def handlers_synced(self) -> bool:
        """Whether every handler was told all objects of the initial lists."""
        return all(registration.has_synced for registration in self._registrations)


def _of_views(watcher: Watcher) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """The watcher's handlers for objects that are kept whole."""

    def added(obj: Kept[Any]) -> None:
        watcher.added(obj.view)

    def updated(old: Kept[Any], new: Kept[Any]) -> None:
        watcher.updated(old.view, new.view)

    def deleted(obj: Kept[Any]) -> None:
        watcher.deleted(obj.view)

    return added, updated, deleted
