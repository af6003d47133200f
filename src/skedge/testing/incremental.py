"""A recorded case, reached on a crooked way: the last answer must be that of the straight one.

From an empty cluster the objects of a case come one by one in random order, pods before and after their nodes. In
between things happen that are undone again: nodes are changed, leave and come back (into other rows), pods come, are
assumed, nominated, relabelled, and go, namespaces are relabelled, volumes, claims, CSI nodes and other stored objects
change or are gone for a while. The pod is evaluated several times on the way, by another profile too where the case
leaves the configuration open.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from skedge.api.core import Node, Pod
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_pod
from skedge.testing.cases import STORES, Cluster

_ELSE: Final = "elsewhere-scheduler"
_TWO_PROFILES: Final[Mapping[str, Any]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 100,
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": _ELSE,
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "ignoredResources": ["example.com/gpu"],
                        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]},
                    },
                },
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": "topology.kubernetes.io/zone",
                                "whenUnsatisfiable": "DoNotSchedule",
                            }
                        ],
                    },
                },
            ],
        },
    ],
}
"""The default profile, and one with other arguments."""


class Growth:
    """Fills a cluster with a case's objects, with detours."""

    def __init__(self, case: Mapping[str, Any], seed: int) -> None:
        self.case = case
        self.rng = random.Random(f"{case['id']}/{seed}")
        self.cluster = Cluster(case.get("config") or _TWO_PROFILES)
        self.pod = msgspec.convert(case["pod"], Pod)
        self.there: list[tuple[str, dict[str, Any]]] = []
        self._serial = 0

    def run(self) -> Cluster:
        """The filled cluster."""
        lists = [(field, obj) for field in ("namespaces", "nodes", "pods", *STORES) for obj in self.case.get(field, ())]
        seen: set[tuple[str, str]] = set()
        objects = []
        for field, obj in lists:  # STORES names namespaces too
            key = (field, msgspec.json.encode(obj).decode())
            if key not in seen:
                seen.add(key)
                objects.append((field, obj))
        self.rng.shuffle(objects)
        for field, obj in objects:
            self.cluster.add(field, obj)
            self.there.append((field, obj))
            while self.rng.random() < 0.35:
                self._detour()
            if self.rng.random() < 0.15:
                self._look()
        for _ in range(5):
            self._detour()
            self._look()
        self.cluster.cache.validate()
        return self.cluster

    def _look(self) -> None:
        """Evaluates the pod for nothing."""
        info = PodInfo(self.pod)
        profile = self.cluster.profile_of(info)
        others = [each for each in self.cluster.profiles.values() if each is not profile]
        if others and self.rng.random() < 0.3:
            profile = self.rng.choice(others)
        if profile is None:
            return
        search = Search(profile, info, self.cluster.nominator)
        try:
            search.run()
            if len(search.rows) > 1 and profile.score:
                search.scores()
            elif not len(search.rows):
                search.explain().message()
        except CycleError:
            pass

    def _detour(self) -> None:
        detours: list[Callable[[], None]] = [
            self._node_changes,
            self._node_leaves,
            self._foreign_node,
            self._foreign_pod,
            self._pod_leaves,
            self._pod_changes,
            self._object_changes,
            self._nomination,
        ]
        self.rng.choice(detours)()

    def _one(self, *fields: str) -> tuple[str, dict[str, Any]] | None:
        found = [entry for entry in self.there if entry[0] in fields]
        return self.rng.choice(found) if found else None

    def _looks(self) -> None:
        if self.rng.random() < 0.3:
            self._look()

    def _node_changes(self) -> None:
        entry = self._one("nodes")
        if entry is None:
            return
        changed = copy.deepcopy(entry[1])
        what = self.rng.randrange(7)
        if what == 0:
            changed["metadata"].setdefault("labels", {}).update({"topology.kubernetes.io/zone": "elsewhere", "x": "y"})
        elif what == 1:
            changed["spec"]["taints"] = [{"key": "detour", "value": "", "effect": "NoSchedule"}]
        elif what == 2:
            changed["status"]["allocatable"] = {"cpu": "1", "pods": "1"}
        elif what == 3:
            changed["spec"]["unschedulable"] = True
        elif what == 4:
            changed["status"]["images"] = []
        elif what == 5:
            changed["status"]["images"] = [{"names": ["detour:latest", "nginx:latest"], "sizeBytes": 500 << 20}]
        else:
            changed["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
        self.cluster.add("nodes", changed)
        self._looks()
        self.cluster.add("nodes", entry[1])

    def _node_leaves(self) -> None:
        entry = self._one("nodes")
        if entry is None:
            return
        self.cluster.cache.remove_node(msgspec.convert(entry[1], Node))
        self._looks()
        if self.rng.random() < 0.5:
            self._foreign_node()
        self.cluster.add("nodes", entry[1])

    def _foreign_node(self) -> None:
        self._serial += 1
        name = f"detour-{self._serial}"
        entry = self._one("nodes")
        node = copy.deepcopy(entry[1]) if entry else {"metadata": {}, "spec": {}, "status": {}}
        node["metadata"] = {**node["metadata"], "name": name, "uid": name}
        self.cluster.add("nodes", node)
        self._foreign_pod(on=name)
        self._looks()
        self.cluster.cache.remove_node(msgspec.convert(node, Node))

    def _foreign_pod(self, on: str | None = None) -> None:
        """A pod comes and goes: one of the case under another name, or a plain one."""
        self._serial += 1
        entry = self._one("pods")
        node = self._one("nodes")
        name = on or (node[1]["metadata"]["name"] if node and self.rng.random() < 0.8 else "nowhere")
        if entry is not None and self.rng.random() < 0.7:
            value = copy.deepcopy(entry[1])
            value["metadata"].update(name=f"detour-{self._serial}", uid=f"detour-{self._serial}")
            value["status"].pop("nominatedNodeName", None)
            info = PodInfo(msgspec.convert(value, Pod))
        else:
            info = make_pod(f"detour-{self._serial}").req(cpu="1").info()
        cache = self.cluster.cache
        if self.rng.random() < 0.5:
            placed = cache.assume_pod(info, name)
            self._looks()
            if self.rng.random() < 0.5:
                cache.forget_pod(placed, name)
                return
            placed = PlacedPod(info, name)
        else:
            placed = PlacedPod(info, name)
        cache.add_pod(placed)
        self._looks()
        cache.remove_pod(placed)

    def _nomination(self) -> None:
        """A pod of a high or low priority is promised a node for a while, an existing or a missing one."""
        self._serial += 1
        node = self._one("nodes")
        entry = self._one("pods")
        name = node[1]["metadata"]["name"] if node and self.rng.random() < 0.9 else "nowhere"
        if entry is not None:
            value = copy.deepcopy(entry[1])
            value["metadata"].update(name=f"detour-{self._serial}", uid=f"detour-{self._serial}")
            value["spec"].update(nodeName="", priority=self.rng.choice([-100, 0, 10**6]))
            info = PodInfo(msgspec.convert(value, Pod))
        else:
            info = make_pod(f"detour-{self._serial}").req(cpu="64").info()
        placed = PlacedPod(info, name)
        self.cluster.nominator.add(placed)
        self._looks()
        self.cluster.nominator.remove(placed)

    def _placed(self) -> PlacedPod | None:
        entry = self._one("pods")
        return None if entry is None else self.cluster.cache.find_pod(entry[1]["metadata"]["uid"])

    def _pod_leaves(self) -> None:
        placed = self._placed()
        if placed is None:
            return
        self.cluster.cache.remove_pod(placed)
        self._looks()
        entry = next(e for e in self.there if e[0] == "pods" and e[1]["metadata"]["uid"] == placed.uid)
        self.cluster.add("pods", entry[1])

    def _pod_changes(self) -> None:
        placed = self._placed()
        if placed is None:
            return
        entry = next(e for e in self.there if e[0] == "pods" and e[1]["metadata"]["uid"] == placed.uid)
        changed = copy.deepcopy(entry[1])
        if self.rng.random() < 0.5:
            changed["metadata"]["labels"] = {"detour": "yes"}
        else:
            changed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self._update(changed)
        self._looks()
        self._update(entry[1])

    def _update(self, value: dict[str, Any]) -> None:
        info = PodInfo(msgspec.convert(value, Pod))
        self.cluster.cache.update_pod(PlacedPod(info, info.node_name))

    def _object_changes(self) -> None:
        """A namespace or another stored object changes, or goes, and is what it was again."""
        entry = self._one("namespaces", *STORES)
        if entry is None:
            return
        field, obj = entry
        if self.rng.random() < 0.7:
            self.cluster.add(field, self._changed(field, obj))
        else:
            attribute, kind = STORES[field]
            getattr(self.cluster.listers, attribute).delete(msgspec.convert(obj, kind))
        self._looks()
        self.cluster.add(field, obj)

    def _changed(self, field: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        """The object with something in it that plugins look at changed."""
        changed: dict[str, Any] = copy.deepcopy(dict(obj))
        changes = _CHANGES.get(field)
        if changes is None or self.rng.random() < 0.3:
            changed["metadata"]["labels"] = {"detour": "yes"}
        else:
            self.rng.choice(changes)(changed)
        return changed


def _elsewhere(pv: dict[str, Any]) -> None:
    terms = [{"matchExpressions": [{"key": "detour", "operator": "Exists"}]}]
    pv["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}


def _unbound(claim: dict[str, Any]) -> None:
    claim["spec"].pop("volumeName", None)
    claim["metadata"].pop("annotations", None)


def _full(csi_node: dict[str, Any]) -> None:
    for driver in csi_node["spec"].get("drivers") or ():
        driver["allocatable"] = {"count": 0}


_CHANGES: Final[Mapping[str, list[Callable[[dict[str, Any]], None]]]] = {
    "pvs": [
        _elsewhere,
        lambda pv: pv["spec"].update(capacity={"storage": "1"}),
        lambda pv: pv["status"].update(phase="Released"),
        lambda pv: pv["metadata"].update(labels={"topology.kubernetes.io/zone": "elsewhere"}),
    ],
    "pvcs": [
        _unbound,
        lambda claim: claim["spec"].update(volumeName="detour"),
        lambda claim: claim["spec"].update(accessModes=["ReadWriteOncePod"]),
        lambda claim: claim["metadata"].update(annotations={"volume.kubernetes.io/selected-node": "nowhere"}),
        lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    "csiNodes": [
        _full,
        lambda csi_node: csi_node["spec"].update(drivers=[]),
        lambda csi_node: csi_node["metadata"].update(
            annotations={"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
        ),
    ],
    "storageClasses": [
        lambda each: each.update(volumeBindingMode="Immediate"),
        lambda each: each.update(provisioner="kubernetes.io/no-provisioner"),
        lambda each: each.update(
            allowedTopologies=[{"matchLabelExpressions": [{"key": "detour", "values": ["nowhere"]}]}]
        ),
    ],
    "csiDrivers": [lambda driver: driver["spec"].update(storageCapacity=not driver["spec"].get("storageCapacity"))],
    "csiStorageCapacities": [lambda each: each.update(capacity="1", maximumVolumeSize="1")],
    "volumeAttachments": [lambda each: each["spec"].update(nodeName="nowhere")],
    "services": [lambda each: each["spec"].update(selector={"app": "detour"})],
    "pdbs": [lambda each: each["status"].update(disruptionsAllowed=0)],
}
"""What becomes of an object for a while, by the list it is in."""
