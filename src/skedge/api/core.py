"""core/v1 objects the scheduler reads: Pod, Node, Namespace, and what they are made of.

Field names are those of the API, in snake case. Quantities stay as they were sent (`str`, or a bare JSON number); see
`api.quantity`.
"""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import LabelSelector, NodeSelector, NodeSelectorTerm, Object, ObjectMeta, Value

QuantityText = str | int | float
ResourceList = dict[str, QuantityText]

# --- containers and resources -----------------------------------------------------------------------------------------


class ResourceClaimName(Value, frozen=True):
    name: str = ""
    request: str = ""


class ResourceRequirements(Object):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple[ResourceClaimName, ...] | None = ()


class ContainerPort(Value, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""
    name: str = ""


class ContainerRestartRule(Value, frozen=True):
    """Only its action is read here, not the exit codes it is for."""

    action: str = ""


class Container(Object):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = ()


# --- affinity, tolerations, spreading ---------------------------------------------------------------------------------


class PreferredSchedulingTerm(Value, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = ()


class PodAffinityTerm(Value, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = ()
    mismatch_label_keys: tuple[str, ...] | None = ()


class WeightedPodAffinityTerm(Value, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Value, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = ()


class Affinity(Value, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None  # the same shape


class Toleration(Value, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Value, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = ()


class PodSchedulingGate(Value, frozen=True):
    name: str = ""


class PodSchedulingGroup(Value, frozen=True):
    pod_group_name: str | None = None


# --- volumes ----------------------------------------------------------------------------------------------------------


class PersistentVolumeClaimVolumeSource(Value, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDisk(Value, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Value, frozen=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSI(Value, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RBD(Value, frozen=True):
    monitors: tuple[str, ...] | None = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class AzureDisk(Value, frozen=True):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    read_only: bool | None = None


class AzureFile(Value, frozen=True):
    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False


class Cinder(Value, frozen=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class VsphereVolume(Value, frozen=True):
    volume_path: str = ""


class PortworxVolume(Value, frozen=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class CSIVolumeSource(Value, frozen=True):
    driver: str = ""
    read_only: bool | None = None


class EphemeralVolumeSource(Value, frozen=True):
    """Generic ephemeral volume: the claim `<pod>-<volume>` is made by a controller; its template is not read here."""


class ImageVolumeSource(Value, frozen=True):
    reference: str = ""


class Volume(Object):
    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    csi: CSIVolumeSource | None = None


# --- pods -------------------------------------------------------------------------------------------------------------


class PodResourceClaim(Value, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSecurityContext(Value, frozen=True):
    """Only what NodeDeclaredFeatures looks at."""

    run_as_user: int | None = None


class PodSpec(Object):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] | None = ()
    init_containers: tuple[Container, ...] | None = ()
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = ()
    scheduling_group: PodSchedulingGroup | None = None
    volumes: tuple[Volume, ...] | None = ()
    resource_claims: tuple[PodResourceClaim, ...] | None = ()
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""


class PodCondition(Value, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    observed_generation: int | None = None


class ContainerStatus(Object):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(Value, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Value, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Value, frozen=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = ()
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(Object):
    resource_claim_name: str = ""
    resources: ResourceList | None = None


class PodStatus(Object):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] | None = ()
    container_statuses: tuple[ContainerStatus, ...] | None = ()
    init_container_statuses: tuple[ContainerStatus, ...] | None = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] | None = ()
    observed_generation: int | None = None


class Pod(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


# --- nodes and namespaces ---------------------------------------------------------------------------------------------


class Taint(Value, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = ()
    provider_id: str = field(default="", name="providerID")


class NodeCondition(Value, frozen=True):
    type: str = ""
    status: str = ""


class ContainerImage(Value, frozen=True):
    names: tuple[str, ...] | None = ()
    size_bytes: int = 0


class NodeStatus(Object):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    conditions: tuple[NodeCondition, ...] | None = ()
    images: tuple[ContainerImage, ...] | None = ()
    declared_features: tuple[str, ...] | None = ()


class Node(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class Namespace(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
