"""scheduling.k8s.io: priority classes (v1) and pod groups (v1alpha2)."""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import Object, ObjectMeta, Value
from skedge.api.shared import Condition


class PriorityClass(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class BasicSchedulingPolicy(Value, frozen=True):
    """Members are scheduled one by one."""


class GangSchedulingPolicy(Value, frozen=True):
    """At least `min_count` members are scheduled together or none."""

    min_count: int = 0


class PodGroupSchedulingPolicy(Value, frozen=True):
    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Value, frozen=True):
    key: str = ""


class PodGroupSchedulingConstraints(Value, frozen=True):
    topology: tuple[TopologyConstraint, ...] | None = ()


class WorkloadPodGroupTemplateReference(Value, frozen=True):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Value, frozen=True):
    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupResourceClaim(Value, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupResourceClaimStatus(Value, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodGroupSpec(Value, frozen=True):
    """`disruption_mode` is `Pod` (also when None) or `PodGroup`."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] | None = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(Value, frozen=True):
    conditions: tuple[Condition, ...] | None = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] | None = ()


class PodGroup(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
