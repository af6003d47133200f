"""The engine without a queue: cache, stores, profiles, filled with objects. What `explain` and the tests ask.

Nothing is bound and nobody evicted: a profile of a cluster answers, and that is all.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from skedge import names
from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.assembly import all_plugins, build_profiles
from skedge.cache.cache import Cache
from skedge.cache.pod_groups import PodGroups
from skedge.clock import VirtualClock
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.types import KubeSchedulerConfiguration
from skedge.framework.handle import Handle, Listers
from skedge.plugins.registry import Factory
from skedge.profiles.profile import Profile
from skedge.snapshot.crowd import Crowd
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo

FINISHED: Final = ("Succeeded", "Failed")

STORES: Final[Mapping[str, str]] = {
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "replication_controllers",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "PodDisruptionBudget": "pod_disruption_budgets",
    "PersistentVolume": "persistent_volumes",
    "PersistentVolumeClaim": "persistent_volume_claims",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "CSIDriver": "csi_drivers",
    "CSIStorageCapacity": "csi_storage_capacities",
    "VolumeAttachment": "volume_attachments",
    "ResourceClaim": "resource_claims",
    "ResourceSlice": "resource_slices",
    "DeviceClass": "device_classes",
    "DeviceTaintRule": "device_taint_rules",
    "PodGroup": "pod_groups",
}
"""Kinds that plugins read besides nodes and pods: their stores' names in `Listers`."""


class Nominations:
    """Nominated pods, as the queue's nominator would hold them."""

    def __init__(self) -> None:
        self._pods: dict[str, list[PlacedPod]] = {}

    def add(self, pod: PlacedPod) -> None:
        self._pods.setdefault(pod.node_name, []).append(pod)

    def remove(self, pod: PlacedPod) -> None:
        left = self._pods[pod.node_name]
        left.remove(pod)
        if not left:
            del self._pods[pod.node_name]

    def nominated_pods(self, node_name: str) -> list[PlacedPod]:
        return self._pods.get(node_name, [])

    def crowd(self, table: NodeTable, priority: int, uid: str) -> Crowd:
        """See `framework.plugin.Nominator`."""
        found = Crowd(table)
        for node, pods in self._pods.items():
            row = table.row_of.get(node)
            if row is not None and table.exists[row]:
                found.put(row, [pod for pod in pods if pod.priority >= priority and pod.uid != uid])
        return found


class Cluster:
    """See the module's docstring. Raises ConfigError for a configuration that no profile can be built from."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration | None = None,
        *,
        gates: FeatureGates | None = None,
        seed: int = 0,
        out_of_tree: Mapping[str, Factory] | None = None,
    ) -> None:
        self.gates = gates or FeatureGates()
        self.cache = Cache()
        self.listers = Listers()
        self.nominator = Nominations()
        self.clock = VirtualClock()
        self.pods: dict[str, PodInfo] = {}  # without a node, by key
        handle = Handle(
            table=self.cache.table,
            listers=self.listers,
            gates=self.gates,
            clock=self.clock,
            rng=random.Random(seed),
            ports=None,
            nominator=self.nominator,
        )
        if self.gates.enabled("GenericWorkload"):
            handle.pod_groups = self.cache.groups = PodGroups()
        self.config = config or default_configuration(self.gates)
        self.profiles: dict[str, Profile] = build_profiles(
            self.config, all_plugins(out_of_tree, legacy=self.config.legacy_plugins), handle
        )

    def put(self, kind: str, obj: Any) -> None:
        """Adds an object, decoded or as JSON value; a kind that nothing reads is passed over.

        Raises msgspec.ValidationError with the path of the fault.
        """
        if kind not in STORES and kind not in ("Node", "Pod"):
            return
        decoded = msgspec.convert(obj, KINDS[kind].struct) if isinstance(obj, Mapping) else obj
        if kind == "Node":
            self.add_node(decoded)
        elif kind == "Pod":
            self.add_pod(decoded)
        else:
            getattr(self.listers, STORES[kind]).set(decoded)

    def add_node(self, node: Node) -> None:
        self.cache.add_node(node)

    def add_pod(self, pod: Pod) -> None:
        """A pod with a node takes room there; one that was nominated is expected there; finished ones are gone."""
        if pod.status.phase in FINISHED:
            return
        info = PodInfo(pod)
        if pod.spec.node_name:
            self.cache.add_pod(PlacedPod(info, pod.spec.node_name))
        else:
            self.pods[info.key] = info
            if self.cache.groups is not None:
                self.cache.groups.put(info)
            if info.nominated_node_name:
                self.nominator.add(PlacedPod(info, info.nominated_node_name))

    def profile_of(self, pod: PodInfo) -> Profile | None:
        """The profile that serves the pod, None for a pod of another scheduler."""
        return self.profiles.get(pod.scheduler_name or names.DEFAULT_SCHEDULER_NAME)
