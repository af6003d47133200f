"""The kinds controllers read and write, and the paths they are reached at."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

from skedge.client.watch import Resource
from skedge.controlplane.controllers.objects import Lease, Node, Pod, slim_pod

JSON = dict[str, Any]


class Kind(NamedTuple):
    """One served kind. An empty namespace stands for all of them, or for a cluster-wide kind."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The collection, or the object or subresource where they are named."""
        parts = ["/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def of(self, obj: JSON, subresource: str = "") -> str:
        """The path of an object at hand."""
        meta = obj["metadata"]
        return self.path(meta.get("namespace", ""), meta["name"], subresource)

    @property
    def resource(self) -> Resource[JSON]:
        """What to watch to see every object of the kind whole."""
        return Resource.of(self.path(), dict)


NODE = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ATTRIBUTES_CLASS = Kind("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", namespaced=False)
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
REPLICATION_CONTROLLER = Kind("v1", "ReplicationController", "replicationcontrollers")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
REVISION = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
JOB = Kind("batch/v1", "Job", "jobs")
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs")
BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
RESOURCE_CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")

NODE_LEASES = "kube-node-lease"

PODS: Resource[Pod] = Resource.of(POD.path(), Pod).transformed(slim_pod)
"""All pods, narrowly decoded: one informer serves every controller and the fake nodes."""
NODES: Resource[Node] = Resource.of(NODE.path(), Node)
LEASES: Resource[Lease] = Resource.of(LEASE.path(), Lease)
"""All leases; those in `NODE_LEASES` are the heartbeats of nodes."""
