"""resource.k8s.io: dynamic resource allocation. Claims, slices and classes (v1), taint rules (v1beta2).

Claims are written back through `api.whole`; results of an allocation are made of the structs here. Quantities stay as
they were sent, attributes keep their one value in the field of its type.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from skedge.api.core import QuantityText, ResourceList
from skedge.api.meta import NodeSelector, Object, ObjectMeta, Value
from skedge.api.shared import Condition

# --- what a claim asks for --------------------------------------------------------------------------------------------


class CELDeviceSelector(Value, frozen=True):
    expression: str = ""


class DeviceSelector(Value, frozen=True):
    cel: CELDeviceSelector | None = None


class DeviceToleration(Value, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Object):
    requests: ResourceList | None = None


class ExactDeviceRequest(Object):
    """`allocation_mode` is `ExactCount` (also when empty) or `All`; `count` counts for the former, 0 reads as 1."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Object):
    """One of several alternatives, in order of preference."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] | None = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Object):
    """Either `exactly` or the first of `first_available` that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = ()


class DeviceConstraint(Value, frozen=True):
    """`requests` empty: all of the claim."""

    requests: tuple[str, ...] | None = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Object):
    """`parameters` is any JSON; it is passed on as it came."""

    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(Object):
    requests: tuple[str, ...] | None = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Object):
    requests: tuple[DeviceRequest, ...] | None = ()
    constraints: tuple[DeviceConstraint, ...] | None = ()
    config: tuple[DeviceClaimConfiguration, ...] | None = ()


class ResourceClaimSpec(Object):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


# --- what a claim was given -------------------------------------------------------------------------------------------


class DeviceRequestAllocationResult(Object):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = ()
    binding_conditions: tuple[str, ...] | None = ()
    binding_failure_conditions: tuple[str, ...] | None = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList | None = None


class DeviceAllocationConfiguration(Object):
    """`source` is `FromClass` or `FromClaim`."""

    source: str = ""
    requests: tuple[str, ...] | None = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Object):
    results: tuple[DeviceRequestAllocationResult, ...] | None = ()
    config: tuple[DeviceAllocationConfiguration, ...] | None = ()


class AllocationResult(Object):
    """`node_selector` None: usable on every node."""

    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Value, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Object):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] | None = ()


class ResourceClaimStatus(Object):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] | None = ()
    devices: tuple[AllocatedDeviceStatus, ...] | None = ()


class ResourceClaim(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


# --- what there is ----------------------------------------------------------------------------------------------------


class DeviceAttribute(Value, frozen=True):
    """One value: an int, bool, string or version, or a list of one of them."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] | None = field(default=(), name="ints")
    bool_values: tuple[bool, ...] | None = field(default=(), name="bools")
    string_values: tuple[str, ...] | None = field(default=(), name="strings")
    version_values: tuple[str, ...] | None = field(default=(), name="versions")


class CapacityRequestPolicyRange(Value, frozen=True):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(Value, frozen=True):
    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] | None = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Value, frozen=True):
    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Value, frozen=True):
    value: QuantityText = "0"


class CounterSet(Object):
    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Object):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class NodeAllocatableResourceMapping(Value, frozen=True):
    capacity_key: str | None = None
    allocation_multiplier: QuantityText | None = None


class DeviceTaint(Value, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Object):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = ()
    binding_failure_conditions: tuple[str, ...] | None = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None


class ResourcePool(Value, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Object):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = ()
    shared_counters: tuple[CounterSet, ...] | None = ()


class ResourceSlice(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class DeviceClassConfiguration(Object):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Object):
    selectors: tuple[DeviceSelector, ...] | None = ()
    config: tuple[DeviceClassConfiguration, ...] | None = ()
    extended_resource_name: str | None = None


class DeviceClass(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class DeviceTaintSelector(Value, frozen=True):
    """Conditions that are None hold for every device; no selector at all selects none."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Value, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
