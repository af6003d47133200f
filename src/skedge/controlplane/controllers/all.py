"""Every controller, in the order they are started."""

from __future__ import annotations

from collections.abc import Callable

from skedge.controlplane.controllers.base import Context, Controller
from skedge.controlplane.controllers.cronjob import CronJobs
from skedge.controlplane.controllers.daemonset import DaemonSets
from skedge.controlplane.controllers.deployment import Deployments
from skedge.controlplane.controllers.disruption import DisruptionBudgets
from skedge.controlplane.controllers.ephemeral_volumes import EphemeralVolumes
from skedge.controlplane.controllers.event_expiry import EventExpiry
from skedge.controlplane.controllers.gc import GarbageCollector
from skedge.controlplane.controllers.job import Jobs
from skedge.controlplane.controllers.namespaces import Namespaces
from skedge.controlplane.controllers.node_lifecycle import NodeLifecycle
from skedge.controlplane.controllers.persistent_volumes import PersistentVolumes
from skedge.controlplane.controllers.pod_gc import PodGC
from skedge.controlplane.controllers.quota import Quotas
from skedge.controlplane.controllers.replicaset import ReplicaSets, ReplicationControllers
from skedge.controlplane.controllers.resource_claims import ResourceClaims
from skedge.controlplane.controllers.statefulset import StatefulSets
from skedge.controlplane.controllers.storage_protection import StorageProtection
from skedge.controlplane.controllers.taint_eviction import TaintEviction

CONTROLLERS: tuple[Callable[[Context], Controller], ...] = (
    NodeLifecycle,
    TaintEviction,
    Deployments,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
    DisruptionBudgets,
    PersistentVolumes,
    EphemeralVolumes,
    StorageProtection,
    ResourceClaims,
    Quotas,
    Namespaces,
    PodGC,
    GarbageCollector,
    EventExpiry,
)
