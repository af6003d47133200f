"""Narrow structs of what there is much of (pods, nodes, leases), and questions asked of pods.

Everything else is handled whole, as plain JSON values. Parts that many pods have in common are shared between them, so
that 150,000 pods stay small. Never write one of these back: changes are patches.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from skedge.api import core
from skedge.api.core import Toleration

JSON = dict[str, Any]


class OwnerRef(msgspec.Struct, rename="camel", frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(msgspec.Struct, rename="camel", gc=False):
    """`ObjectMeta` without managedFields."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerRef, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Container(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    image: str = ""
    restart_policy: str | None = None


class _ClaimSource(msgspec.Struct, rename="camel", frozen=True, gc=False):
    claim_name: str = ""


class _Present(msgspec.Struct, frozen=True, gc=False):
    """Something that is there, whatever it says."""


class Volume(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: _Present | None = None


class _Field(msgspec.Struct, rename="camel", frozen=True, gc=False):
    key: str = ""
    values: tuple[str, ...] | None = None


class _Term(msgspec.Struct, rename="camel", frozen=True, gc=False):
    match_fields: tuple[_Field, ...] | None = None


class _NodeSelector(msgspec.Struct, rename="camel", frozen=True, gc=False):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(msgspec.Struct, rename="camel", frozen=True, gc=False):
    required_during_scheduling_ignored_during_execution: _NodeSelector | None = None


class _Affinity(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Only as far as a pod is bound to one node by its name."""

    node_affinity: _NodeAffinity | None = None


class PodClaim(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """An entry of `spec.resourceClaims`."""

    name: str = ""
    resource_claim_template_name: str | None = None


class PodClaimStatus(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """An entry of `status.resourceClaimStatuses`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    termination_grace_period_seconds: int = 30
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    affinity: _Affinity | None = None
    resource_claims: tuple[PodClaim, ...] | None = None


class Condition(msgspec.Struct, rename="camel", frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


class _Terminated(msgspec.Struct, rename="camel", frozen=True, gc=False):
    exit_code: int = 0
    finished_at: str | None = None


class _State(msgspec.Struct, frozen=True, gc=False):
    terminated: _Terminated | None = None


class ContainerStatus(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    restart_count: int = 0
    state: _State | None = None


class PodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    reason: str | None = None
    start_time: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    resource_claim_statuses: tuple[PodClaimStatus, ...] | None = None


class Owned(msgspec.Struct):
    """Any object, as the garbage collector sees it."""

    metadata: Meta


class Pod(msgspec.Struct):
    """What controllers and fake nodes need of a pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def controller(self) -> OwnerRef | None:
        """The owner that manages this pod."""
        return controller_of(self.metadata)

    @property
    def target_node(self) -> str:
        """The node the pod is on, or the only one its affinity allows by name; "" where there is none."""
        affinity = self.spec.affinity.node_affinity if self.spec.affinity is not None else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        if self.spec.node_name or required is None:
            return self.spec.node_name
        for term in required.node_selector_terms or ():
            for field in term.match_fields or ():
                if field.key == "metadata.name" and field.values:
                    return field.values[0]
        return ""

    def condition(self, type: str) -> Condition | None:
        return next((each for each in self.status.conditions or () if each.type == type), None)

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        """Neither finished nor going away (`controller.IsPodActive`)."""
        return not self.is_finished and self.metadata.deletion_timestamp is None

    @property
    def is_ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    def available_at(self, min_ready_seconds: int) -> float | None:
        """When the pod has been ready long enough, or None while it is not ready; in epoch seconds."""
        condition = self.condition("Ready")
        if condition is None or condition.status != "True":
            return None
        return epoch(condition.last_transition_time) + min_ready_seconds if min_ready_seconds else 0.0


class Taint(core.Taint, frozen=True):
    """A taint with the time it was added."""

    time_added: str | None = None


class NodeSpec(msgspec.Struct, rename="camel"):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeCondition(msgspec.Struct, rename="camel", frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class Image(msgspec.Struct, rename="camel", frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class Address(msgspec.Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeStatus(msgspec.Struct, rename="camel"):
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    addresses: tuple[Address, ...] | None = None
    images: tuple[Image, ...] | None = None


class Node(msgspec.Struct):
    """What controllers and fake nodes need of a node."""

    metadata: Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    def condition(self, type: str) -> NodeCondition | None:
        return next((each for each in self.status.conditions or () if each.type == type), None)


class LeaseSpec(msgspec.Struct, rename="camel"):
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(msgspec.Struct):
    metadata: Meta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


_SHARED_LIMIT = 20_000
_shared: dict[Any, Any] = {}


def _share(value: Any) -> Any:
    """One and the same object for equal (hashable) values."""
    if len(_shared) > _SHARED_LIMIT:
        _shared.clear()  # of values that come and go; those in use will be shared again
    return _shared.setdefault(value, value)


def _share_labels(labels: dict[str, str]) -> dict[str, str]:
    key = tuple(labels.items())
    found: dict[str, str] | None = _shared.get(key)
    if found is None:
        if len(_shared) > _SHARED_LIMIT:
            _shared.clear()
        found = _shared[key] = labels
    return found


def slim_pod(pod: Pod) -> Pod:
    """The same pod, with its common parts shared with other pods."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if meta.labels:
        meta.labels = _share_labels(meta.labels)
    if meta.owner_references:
        meta.owner_references = _share(meta.owner_references)
    meta.namespace = _share(meta.namespace)
    spec.node_name = _share(spec.node_name)
    spec.containers = _share(spec.containers)
    spec.tolerations = _share(spec.tolerations)
    if spec.volumes:
        spec.volumes = _share(spec.volumes)
    if status.conditions:
        status.conditions = _share(status.conditions)
    if status.container_statuses:
        status.container_statuses = _share(status.container_statuses)
    return pod


def controller_of(meta: Meta) -> OwnerRef | None:
    """The owner reference with `controller: true`."""
    for ref in meta.owner_references or ():
        if ref.controller:
            return ref
    return None


def controller_uid(obj: JSON) -> str:
    """UID of the controlling owner of a whole object, or ""."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller"):
            return str(ref.get("uid", ""))
    return ""


def owner_reference(owner: JSON, api_version: str, kind: str) -> JSON:
    """The reference that makes `owner` the controller of what carries it (`metav1.NewControllerRef`)."""
    meta = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def meta_of(obj: Any) -> Meta:
    """The metadata of a struct or of a whole object."""
    if type(obj) is dict:
        return msgspec.convert(obj["metadata"], Meta)
    found: Meta = obj.metadata
    return found


def key_of(obj: JSON) -> str:
    """`namespace/name`, or `name`."""
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


@lru_cache(maxsize=4096)
def epoch(text: str | None) -> float:
    """An RFC 3339 time in seconds since 1970; 0 for none or for text that is no time."""
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def set_condition(conditions: list[JSON], condition: JSON, now: str) -> list[JSON]:
    """The list with this condition; its transition time moves only when the status does."""
    old = next((each for each in conditions if each["type"] == condition["type"]), None)
    same = old is not None and old["status"] == condition["status"]
    transition = old.get("lastTransitionTime", now) if same and old is not None else now
    new = {**condition, "lastTransitionTime": transition}
    return [new if each is old else each for each in conditions] if old is not None else [*conditions, new]
