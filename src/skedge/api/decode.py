"""The kinds the scheduler reads: where the API serves them, which struct they decode to, and prebuilt decoders.

Watches are decoded by `client.watch`, which needs only the path and the struct.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from skedge.api.coordination import Lease
from skedge.api.core import Namespace, Node, Pod
from skedge.api.events import Event
from skedge.api.meta import ListMeta
from skedge.api.policy import PodDisruptionBudget
from skedge.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from skedge.api.scheduling import PodGroup, PriorityClass
from skedge.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from skedge.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

T = TypeVar("T")


class KindInfo(NamedTuple):
    """A served kind. `group` is empty for core/v1."""

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool
    struct: type[Any]

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of the collection (of all namespaces unless one is named), or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


_STORAGE: Final = "storage.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"

KINDS: Final[dict[str, KindInfo]] = {
    info.kind: info
    for info in (
        KindInfo("Pod", "", "v1", "pods", True, Pod),
        KindInfo("Node", "", "v1", "nodes", False, Node),
        KindInfo("Namespace", "", "v1", "namespaces", False, Namespace),
        KindInfo("Service", "", "v1", "services", True, Service),
        KindInfo("ReplicationController", "", "v1", "replicationcontrollers", True, ReplicationController),
        KindInfo("PersistentVolume", "", "v1", "persistentvolumes", False, PersistentVolume),
        KindInfo("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", True, PersistentVolumeClaim),
        KindInfo("ReplicaSet", "apps", "v1", "replicasets", True, ReplicaSet),
        KindInfo("StatefulSet", "apps", "v1", "statefulsets", True, StatefulSet),
        KindInfo("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", True, PodDisruptionBudget),
        KindInfo("StorageClass", _STORAGE, "v1", "storageclasses", False, StorageClass),
        KindInfo("CSINode", _STORAGE, "v1", "csinodes", False, CSINode),
        KindInfo("CSIDriver", _STORAGE, "v1", "csidrivers", False, CSIDriver),
        KindInfo("CSIStorageCapacity", _STORAGE, "v1", "csistoragecapacities", True, CSIStorageCapacity),
        KindInfo("VolumeAttachment", _STORAGE, "v1", "volumeattachments", False, VolumeAttachment),
        KindInfo("ResourceClaim", _RESOURCE, "v1", "resourceclaims", True, ResourceClaim),
        KindInfo("ResourceSlice", _RESOURCE, "v1", "resourceslices", False, ResourceSlice),
        KindInfo("DeviceClass", _RESOURCE, "v1", "deviceclasses", False, DeviceClass),
        KindInfo("DeviceTaintRule", _RESOURCE, "v1beta2", "devicetaintrules", False, DeviceTaintRule),
        KindInfo("PriorityClass", _SCHEDULING, "v1", "priorityclasses", False, PriorityClass),
        KindInfo("PodGroup", _SCHEDULING, "v1alpha2", "podgroups", True, PodGroup),
        KindInfo("Lease", "coordination.k8s.io", "v1", "leases", True, Lease),
        KindInfo("Event", "events.k8s.io", "v1", "events", True, Event),
    )
}
"""By kind."""


class ObjectList(Struct, Generic[T], rename="camel", gc=False):
    """A list as the API sends it; `items` may be null."""

    metadata: ListMeta = field(default_factory=ListMeta)
    items: list[T] | None = None


@cache
def decoder(kind: str) -> msgspec.json.Decoder[Any]:
    """The decoder of one object of a kind in `KINDS`; it raises msgspec.ValidationError with the path of the fault."""
    return msgspec.json.Decoder(KINDS[kind].struct)


@cache
def list_decoder(kind: str) -> msgspec.json.Decoder[ObjectList[Any]]:
    """The decoder of a list of a kind in `KINDS`; one object it can't read fails the whole list."""
    return msgspec.json.Decoder(ObjectList[KINDS[kind].struct])  # type: ignore[misc]
