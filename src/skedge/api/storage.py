"""Volumes, claims and storage.k8s.io/v1 objects as the volume plugins read them.

Volumes and claims that are written back go through `api.whole`; these structs are only for reading.
"""

from __future__ import annotations

from msgspec import field

from skedge.api.core import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    PortworxVolume,
    QuantityText,
    ResourceList,
    VsphereVolume,
)
from skedge.api.meta import LabelSelector, NodeSelector, Object, ObjectMeta, Value
from skedge.api.shared import ObjectReference

# --- core/v1 ----------------------------------------------------------------------------------------------------------


class CSIPersistentVolumeSource(Value, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class AzureFilePersistentVolume(Value, frozen=True):
    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""
    read_only: bool = False


class VolumeNodeAffinity(Value, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Object):
    """Of the sources of a volume only CSI and those that migrate to CSI are read."""

    capacity: ResourceList | None = None
    access_modes: tuple[str, ...] | None = ()
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: CSIPersistentVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFilePersistentVolume | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(Value, frozen=True):
    phase: str = ""


class PersistentVolume(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResourceRequirements(Object):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class PersistentVolumeClaimSpec(Object):
    access_modes: tuple[str, ...] | None = ()
    resources: VolumeResourceRequirements | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Object):
    phase: str = ""
    capacity: ResourceList | None = None


class PersistentVolumeClaim(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


# --- storage.k8s.io/v1 ------------------------------------------------------------------------------------------------


class TopologySelectorLabelRequirement(Value, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = ()


class TopologySelectorTerm(Value, frozen=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] | None = ()


class StorageClass(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = ()


class VolumeNodeResources(Value, frozen=True):
    """`count` is the highest number of volumes; None is no limit."""

    count: int | None = None


class CSINodeDriver(Value, frozen=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] | None = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Value, frozen=True):
    drivers: tuple[CSINodeDriver, ...] | None = ()


class CSINode(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Value, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None
    node_topology: LabelSelector | None = None


class VolumeAttachmentSource(Value, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Value, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Value, frozen=True):
    attached: bool = False


class VolumeAttachment(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
