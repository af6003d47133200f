"""A pending pod (`PodInfo`) and a pod on a node (`PlacedPod`), as rules see them.

Both answer to the same attribute names, so that hints, listers and preemption need not know which they hold. A PodInfo
keeps the decoded object; a PlacedPod keeps only what placing other pods needs, with equal parts shared, so that 150,000
of them stay small. Upstream: `pkg/scheduler/framework/types.go` (PodInfo), `NodeInfo.AddPod`.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from math import inf
from sys import intern
from typing import Any, Final, TypeVar

import msgspec

from skedge.api.core import Affinity, Container, Pod, PodCondition, PodResourceClaim, Toleration, Volume
from skedge.api.meta import OwnerReference
from skedge.api.ports import HostPort, host_ports
from skedge.api.requests import is_scalar, nonzero_requests, pod_limits, pod_requests
from skedge.snapshot.affinity_terms import NO_TERMS, PodTerms, pod_terms

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

Requests = tuple[tuple[str, int], ...]
"""(resource, amount), cpu in milli and all else in whole units: cpu, memory and ephemeral-storage where asked for, then
extended and other scalar resources by name. Resources the scheduler does not track are left out."""

_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)

T = TypeVar("T", bound=Hashable)


class Shared:
    """Values that many hold in common, by a key that says when they are equal.

    What nobody asked for while `limit` others came is forgotten, so pods with labels of their own leave nothing behind.
    """

    __slots__ = ("_before", "_limit", "_recent")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._recent: dict[Hashable, Any] = {}
        self._before: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        found = self._recent.get(key)
        if found is None:
            found = self._before.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Hashable, value: Any) -> None:
        if len(self._recent) >= self._limit:
            self._recent, self._before = {}, self._recent
        self._recent[key] = value

    def __len__(self) -> int:
        return len(self._recent.keys() | self._before.keys())


_shared = Shared(20_000)


def share(value: T) -> T:
    """The first equal value seen: placed pods of one Deployment hold the same request vector, ports and labels."""
    found: T | None = _shared.get(value)
    if found is None:
        _shared.put(value, value)
        return value
    return found


def share_labels(labels: dict[str, str] | None) -> dict[str, str]:
    """An equal label map that others use too. Nobody writes into label maps."""
    if not labels:
        return _NO_LABELS
    key = ("labels", tuple(labels.items()))
    found: dict[str, str] | None = _shared.get(key)
    if found is None:
        _shared.put(key, labels)
        return labels
    return found


_NO_LABELS: Final[dict[str, str]] = {}
_NO_CLAIM_STATUSES: Final[tuple[tuple[Any, ...], None]] = ((), None)
_TOLD_CONDITION: Final = "DisruptionTarget"


def _slim(conditions: tuple[PodCondition, ...]) -> tuple[PodCondition, ...]:
    """What is read of the conditions of a pod with a node: their types and order, and all of that of a disruption."""
    return share(tuple([each if each.type == _TOLD_CONDITION else PodCondition(type=each.type) for each in conditions]))


def tracked(requests: dict[str, int]) -> Requests:
    """Requests in the fixed order, without the resources the scheduler does not track."""
    first = tuple((name, requests[name]) for name in _FIRST if name in requests)
    if len(first) == len(requests):
        return first
    return first + tuple(sorted((n, v) for n, v in requests.items() if n not in _FIRST and is_scalar(n)))


def _started(time: str | None) -> float:
    """RFC 3339 as seconds since the epoch."""
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() if time else inf


class Shape:
    """What follows from a pod's containers and overhead alone, shared by pods that have the same ones.

    `requests` are the effective requests as Filter counts them (with pod-level resources, without status);
    `node_requests` and `nonzero` what a node accounts for, status of an in-place resize included, the latter with 100m
    and 200Mi for containers that ask for nothing; `limits` are the effective limits; `memo` is for plugins to keep what
    they derive from it.
    """

    __slots__ = ("limits", "memo", "node_requests", "nonzero", "ports", "requests")

    def __init__(self, pod: Pod, with_status: bool) -> None:
        requests = pod_requests(pod)
        self.requests: Requests = share(tracked(requests))
        self.node_requests = share(tracked(pod_requests(pod, use_status=True))) if with_status else self.requests
        known = None if with_status else requests
        self.nonzero: tuple[int, int] = share(nonzero_requests(pod, use_status=with_status, requests=known))
        self.limits: Requests = share(tracked(pod_limits(pod)))
        self.ports: tuple[HostPort, ...] = share(host_ports(pod))
        self.memo: dict[str, Any] = {}


_shapes = Shared(20_000)
_encode = msgspec.json.Encoder().encode


def shape_of(pod: Pod) -> Shape:
    """The shape of a pod; found by its containers' requests, limits and ports where nothing else plays a part."""
    spec, status = pod.spec, pod.status
    if status.container_statuses or status.init_container_statuses or status.resources:
        return Shape(pod, True)
    if spec.init_containers or spec.overhead or spec.resources:
        return Shape(pod, False)
    key = _encode([(each.resources, each.ports) for each in spec.containers or ()])
    found: Shape | None = _shapes.get(key)
    if found is None:
        found = Shape(pod, False)
        _shapes.put(key, found)
    return found


_terms = Shared(4096)


def _terms_of(affinity: Affinity | None, namespace: str) -> PodTerms:
    """`pod_terms`, compiled once for pods with the same text: writing it is several times as fast as compiling."""
    key = (namespace, _encode(affinity))
    found: PodTerms | None = _terms.get(key)
    if found is None:
        found = pod_terms(affinity, namespace)
        _terms.put(key, found)
    return found


class PodInfo:
    """A pod to be placed: the decoded object and what is computed from it, once and only when asked for."""

    __slots__ = (
        "_caches",
        "_shape",
        "_terms",
        "key",
        "labels",
        "name",
        "namespace",
        "pod",
        "priority",
        "uid",
        "volumes",
    )

    def __init__(self, pod: Pod) -> None:
        meta = pod.metadata
        self.pod = pod
        self.namespace = meta.namespace
        self.name = meta.name
        self.key = f"{meta.namespace}/{meta.name}"
        self.uid = meta.uid
        self.labels: dict[str, str] = meta.labels or _NO_LABELS
        self.priority = pod.spec.priority or 0
        self._caches: dict[str, Any] = {}
        self._shape: Shape | None = None
        self._terms: PodTerms | None = None if pod.spec.affinity is not None else NO_TERMS
        self.volumes: tuple[Volume, ...] = ()
        """Those that rules look at: not configMap, secret, emptyDir, hostPath, projected, ..."""
        if pod.spec.volumes:
            self.volumes = tuple([volume for volume in pod.spec.volumes if _matters(volume)])

    def cached(self, what: str) -> Any:
        """A value plugins keep with the pod (compiled terms, a fragment), or None."""
        return self._caches.get(what)

    def cache(self, what: str, value: Any) -> None:
        self._caches[what] = value

    @property
    def shape(self) -> Shape:
        found = self._shape
        if found is None:
            found = self._shape = shape_of(self.pod)
        return found

    @property
    def requests(self) -> Requests:
        """Effective requests as Filter counts them. Upstream: `fit.go`."""
        return self.shape.requests

    @property
    def node_requests(self) -> Requests:
        """Requests as a node accounts for them once the pod is on it."""
        return self.shape.node_requests

    @property
    def limits(self) -> Requests:
        """Effective limits, as they are shown to people."""
        return self.shape.limits

    @property
    def nonzero(self) -> tuple[int, int]:
        """(milli cpu, memory bytes) with 100m and 200Mi for containers that ask for none."""
        return self.shape.nonzero

    @property
    def ports(self) -> tuple[HostPort, ...]:
        return self.shape.ports

    @property
    def node_name(self) -> str:
        return self.pod.spec.node_name

    @property
    def nominated_node_name(self) -> str:
        return self.pod.status.nominated_node_name

    @property
    def scheduler_name(self) -> str:
        return self.pod.spec.scheduler_name

    @property
    def resource_version(self) -> str:
        return self.pod.metadata.resource_version

    @property
    def terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def start_time(self) -> float:
        """Seconds since the epoch; infinite while it has not started."""
        return _started(self.pod.status.start_time)

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.pod.spec.tolerations or ()

    @property
    def affinity(self) -> Affinity | None:
        return self.pod.spec.affinity

    @property
    def affinity_terms(self) -> PodTerms:
        """Compiled pod affinity and anti-affinity, shared by pods that have the same."""
        found = self._terms
        if found is None:
            found = self._terms = _terms_of(self.affinity, self.namespace)
        return found

    @property
    def resource_claims(self) -> tuple[PodResourceClaim, ...]:
        return self.pod.spec.resource_claims or ()

    @property
    def conditions(self) -> tuple[PodCondition, ...]:
        return self.pod.status.conditions or ()

    @property
    def claim_statuses(self) -> tuple[Any, ...]:
        """What the status says of resource claims made for the pod."""
        status = self.pod.status
        if not status.resource_claim_statuses and status.extended_resource_claim_status is None:
            return _NO_CLAIM_STATUSES
        return (status.resource_claim_statuses or (), status.extended_resource_claim_status)

    @property
    def generation(self) -> int:
        return self.pod.metadata.generation

    @property
    def gated(self) -> bool:
        return bool(self.pod.spec.scheduling_gates)

    @property
    def group(self) -> str | None:
        """Name of the pod group, if the pod belongs to one."""
        found = self.pod.spec.scheduling_group
        return found.pod_group_name if found is not None else None

    @property
    def owner(self) -> OwnerReference | None:
        """The controller."""
        return self.pod.metadata.controller()

    def containers(self) -> tuple[Container, ...]:
        """Init containers, then regular ones."""
        return (*(self.pod.spec.init_containers or ()), *(self.pod.spec.containers or ()))

    def __repr__(self) -> str:
        return f"<PodInfo {self.key}>"


class PlacedPod:
    """A pod with a node, assumed or confirmed. Immutable: a change makes a new record (`row` and `sequence` aside)."""

    __slots__ = (
        "affinity_terms",
        "claim_statuses",
        "conditions",
        "gated",
        "generation",
        "group",
        "key",
        "labels",
        "limits",
        "namespace",
        "node_name",
        "node_requests",
        "nominated_node_name",
        "nonzero",
        "owner",
        "ports",
        "priority",
        "resource_claims",
        "resource_version",
        "row",
        "scheduler_name",
        "sequence",
        "start_time",
        "terminating",
        "tolerations",
        "uid",
        "volumes",
    )

    def __init__(self, info: PodInfo, node_name: str) -> None:
        meta, spec, status, shape = info.pod.metadata, info.pod.spec, info.pod.status, info.shape
        self.key = info.key
        self.uid = info.uid
        self.namespace = intern(info.namespace)
        self.node_name = intern(node_name)
        self.labels = share_labels(info.labels) if info.labels else _NO_LABELS
        self.priority = info.priority
        self.node_requests = shape.node_requests
        self.limits = shape.limits
        self.nonzero = shape.nonzero
        self.ports = shape.ports
        self.scheduler_name = intern(spec.scheduler_name)
        self.resource_version = meta.resource_version
        self.nominated_node_name = status.nominated_node_name
        self.terminating = meta.deletion_timestamp is not None
        self.start_time = _started(status.start_time) if status.start_time else inf
        self.gated = bool(spec.scheduling_gates)
        self.generation = info.generation
        self.claim_statuses = info.claim_statuses
        self.tolerations = share(spec.tolerations) if spec.tolerations else ()
        self.affinity_terms = info.affinity_terms
        self.volumes = info.volumes
        self.resource_claims = spec.resource_claims or ()
        self.conditions = _slim(status.conditions) if status.conditions else ()
        self.group = info.group
        self.owner = share(meta.controller()) if meta.owner_references else None
        self.row = -1
        self.sequence = 0  # order of arrival on its node

    @property
    def name(self) -> str:
        return self.key[len(self.namespace) + 1 :]

    def __repr__(self) -> str:
        return f"<PlacedPod {self.key} on {self.node_name}>"


def _matters(volume: Volume) -> bool:
    """Whether a volume has a source that some rule looks at."""
    source = (
        volume.persistent_volume_claim
        or volume.ephemeral
        or volume.csi
        or volume.aws_elastic_block_store
        or volume.gce_persistent_disk
        or volume.iscsi
        or volume.rbd
        or volume.azure_disk
        or volume.azure_file
        or volume.cinder
        or volume.vsphere_volume
        or volume.portworx_volume
    )
    return source is not None
