"""Which strategy each storage name follows."""

from __future__ import annotations

from skedge.controlplane.strategies import clusterkinds, storagekinds, workloads
from skedge.controlplane.strategies.base import PathNamed, Strategy
from skedge.controlplane.strategies.pods import Pods

_PLAIN = Strategy()

_STRATEGIES: dict[str, Strategy] = {
    "pods": Pods(),
    "nodes": clusterkinds.Nodes(),
    "namespaces": clusterkinds.Namespaces(),
    "events": clusterkinds.Events(),
    "configmaps": clusterkinds.ConfigMaps(),
    "limitranges": clusterkinds.LimitRanges(),
    "resourcequotas": clusterkinds.Quotas(),
    "serviceaccounts": clusterkinds.ReturnsDeleted(),
    "podtemplates": clusterkinds.ReturnsDeleted(),
    "persistentvolumes": storagekinds.Volumes(),
    "persistentvolumeclaims": storagekinds.Claims(),
    "services": storagekinds.Services(),
    "secrets": storagekinds.Secrets(),
    "replicationcontrollers": workloads.ReplicationControllers(),
    "deployments.apps": workloads.Deployments(),
    "replicasets.apps": workloads.ReplicaSets(),
    "statefulsets.apps": workloads.StatefulSets(),
    "daemonsets.apps": workloads.DaemonSets(),
    "jobs.batch": workloads.Jobs(),
    "cronjobs.batch": workloads.CronJobs(),
    "leases.coordination.k8s.io": clusterkinds.Leases(),
    "poddisruptionbudgets.policy": clusterkinds.DisruptionBudgets(),
    "priorityclasses.scheduling.k8s.io": clusterkinds.PriorityClasses(),
    "podgroups.scheduling.k8s.io": storagekinds.StatusOnly(),
    "storageclasses.storage.k8s.io": storagekinds.StorageClasses(),
    "csidrivers.storage.k8s.io": storagekinds.Drivers(),
    "volumeattachments.storage.k8s.io": storagekinds.StatusOnly(),
    "roles.rbac.authorization.k8s.io": PathNamed(),
    "clusterroles.rbac.authorization.k8s.io": PathNamed(),
    "rolebindings.rbac.authorization.k8s.io": storagekinds.Bindings(),
    "clusterrolebindings.rbac.authorization.k8s.io": storagekinds.Bindings(),
    "resourceclaims.resource.k8s.io": storagekinds.Claimables(),
    "resourceslices.resource.k8s.io": storagekinds.Generation1(),
    "deviceclasses.resource.k8s.io": storagekinds.Generation1(),
    "devicetaintrules.resource.k8s.io": storagekinds.StatusOnly(),
}


def strategy(storage: str) -> Strategy:
    """The strategy of a storage name; kinds without peculiarities share one."""
    return _STRATEGIES.get(storage, _PLAIN)
