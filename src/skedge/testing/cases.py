"""Recorded cases as clusters: a case's objects put into a cache and stores, its pod evaluated by the real profile."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from skedge.api.core import Namespace, Node, Pod
from skedge.api.policy import PodDisruptionBudget
from skedge.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from skedge.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from skedge.config.gates import FeatureGates
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.simulate import cluster as simulate
from skedge.simulate.cluster import FINISHED as FINISHED


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a `.jsonl` or `.jsonl.gz` file."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


class Difference(NamedTuple):
    case: str
    node: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        where = f"{self.case} {self.node or '-'} {self.field}"
        return f"{where}: expected {json.dumps(self.expected)}, got {json.dumps(self.got)}"


Compare = Callable[[str, str, Any, Any], None]
"""`(node, field, expected, got)`"""


class Cluster(simulate.Cluster):
    """A cluster that is filled with a case's lists. `config` is a configuration file's content."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, gates: FeatureGates | None = None, seed: int = 0
    ) -> None:
        decoded = None if config is None else decode(json.dumps(config), args_types=PLUGIN_ARGS, gates=gates)
        super().__init__(decoded, gates=gates, seed=seed)

    def add(self, field: str, obj: Mapping[str, Any]) -> None:
        """Adds an object; `field` is its list's name in a case (`nodes`, `pods`, `pvcs`, ...)."""
        if field == "nodes":
            self.add_node(msgspec.convert(obj, Node))
        elif field == "pods":
            self.add_pod(msgspec.convert(obj, Pod))
        elif field in STORES:
            attribute, kind = STORES[field]
            getattr(self.listers, attribute).set(msgspec.convert(obj, kind))
        else:
            raise ValueError(f"unknown kind of object in a case: {field}")

    def fill(self, case: Mapping[str, Any]) -> None:
        """Adds all objects of a case."""
        for field in ("namespaces", "nodes", *STORES, "pods"):
            for obj in case.get(field, ()):
                self.add(field, obj)


STORES: Final[dict[str, tuple[str, Any]]] = {
    "namespaces": ("namespaces", Namespace),
    "pdbs": ("pod_disruption_budgets", PodDisruptionBudget),
    "services": ("services", Service),
    "replicaSets": ("replica_sets", ReplicaSet),
    "replicationControllers": ("replication_controllers", ReplicationController),
    "statefulSets": ("stateful_sets", StatefulSet),
    "pvs": ("persistent_volumes", PersistentVolume),
    "pvcs": ("persistent_volume_claims", PersistentVolumeClaim),
    "storageClasses": ("storage_classes", StorageClass),
    "csiNodes": ("csi_nodes", CSINode),
    "csiDrivers": ("csi_drivers", CSIDriver),
    "csiStorageCapacities": ("csi_storage_capacities", CSIStorageCapacity),
    "volumeAttachments": ("volume_attachments", VolumeAttachment),
}
