"""Recorded cases as clusters: a case's objects put into a cache and stores, its pod evaluated by the real profile."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from skedge import names
from skedge.api.core import Namespace, Node, Pod
from skedge.api.policy import PodDisruptionBudget
from skedge.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from skedge.assembly import build_profiles, registry
from skedge.cache.cache import Cache
from skedge.clock import VirtualClock
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.framework.handle import Handle, Listers
from skedge.profiles.profile import Profile
from skedge.snapshot.pods import PlacedPod, PodInfo

FINISHED: Final = ("Succeeded", "Failed")


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


class Nominations:
    """Nominated pods of a case, as the queue's nominator would hold them."""

    def __init__(self) -> None:
        self._pods: dict[str, list[PlacedPod]] = {}

    def add(self, pod: PlacedPod) -> None:
        self._pods.setdefault(pod.node_name, []).append(pod)

    def nominated_nodes(self) -> Iterable[str]:
        return self._pods

    def nominated_pods(self, node_name: str) -> list[PlacedPod]:
        return self._pods.get(node_name, [])


class Cluster:
    """The engine without a queue: cache, stores, profiles. Objects go in as JSON values."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, gates: FeatureGates | None = None, seed: int = 0
    ) -> None:
        self.gates = gates or FeatureGates()
        self.cache = Cache()
        self.listers = Listers()
        self.nominator = Nominations()
        self.clock = VirtualClock()
        self.pods: dict[str, PodInfo] = {}  # pending ones that are not evaluated, by key
        handle = Handle(
            table=self.cache.table,
            listers=self.listers,
            gates=self.gates,
            clock=self.clock,
            rng=random.Random(seed),
            ports=None,
            nominator=self.nominator,
        )
        if config is None:
            configuration = default_configuration(self.gates)
        else:
            configuration = decode(json.dumps(config), args_types=PLUGIN_ARGS, gates=self.gates)
        self.profiles: dict[str, Profile] = build_profiles(configuration, registry(), handle)

    def add(self, field: str, obj: Mapping[str, Any]) -> None:
        """Adds or replaces an object; `field` is its list's name in a case (`nodes`, `pods`, `pvcs`, ...)."""
        if field == "nodes":
            self.cache.add_node(msgspec.convert(obj, Node))
        elif field == "pods":
            self.add_pod(msgspec.convert(obj, Pod))
        elif field in STORES:
            attribute, kind = STORES[field]
            getattr(self.listers, attribute).set(msgspec.convert(obj, kind))
        else:
            raise ValueError(f"unknown kind of object in a case: {field}")

    def add_pod(self, pod: Pod) -> None:
        if pod.status.phase in FINISHED:
            return
        info = PodInfo(pod)
        if pod.spec.node_name:
            self.cache.add_pod(PlacedPod(info, pod.spec.node_name))
        else:
            self.pods[info.key] = info
            if info.nominated_node_name:
                self.nominator.add(PlacedPod(info, info.nominated_node_name))

    def fill(self, case: Mapping[str, Any]) -> None:
        """Adds all objects of a case."""
        for field in ("namespaces", "nodes", *STORES, "pods"):
            for obj in case.get(field, ()):
                self.add(field, obj)

    def profile_of(self, pod: PodInfo) -> Profile | None:
        return self.profiles.get(pod.scheduler_name or names.DEFAULT_SCHEDULER_NAME)


STORES: Final[dict[str, tuple[str, Any]]] = {
    "namespaces": ("namespaces", Namespace),
    "pdbs": ("pod_disruption_budgets", PodDisruptionBudget),
    "services": ("services", Service),
    "replicaSets": ("replica_sets", ReplicaSet),
    "replicationControllers": ("replication_controllers", ReplicationController),
    "statefulSets": ("stateful_sets", StatefulSet),
}
