"""Unseen cases: recorded ones crossed with each other.

Clusters keep the habits of real ones (odd quantities, taints, volumes, budgets) and come together as nobody recorded
them: pods of one family in the cluster of another, with terms, tolerations, volumes and requests of third ones.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

from generated.configurations import configuration

Json = dict[str, Any]
VOLUME_LISTS = ("pvs", "pvcs", "storageClasses", "csiNodes", "csiDrivers", "csiStorageCapacities", "volumeAttachments")
OTHER_LISTS = ("services", "replicaSets", "replicationControllers", "statefulSets", "pdbs", "namespaces")
ODD = {
    "cpu": ["0", "1m", "100u", "0.1", "250m", "333m", "1", "1.5", "2", "1e3", "7"],
    "memory": ["0", "1", "1500m", "100.035Ki", "64Mi", "0.5Gi", "1e9", "2G", "4Gi", "3Ei", "129M"],
    "ephemeral-storage": ["1Gi", "1G", "0", "15e9", "100.5Mi"],
    "hugepages-2Mi": ["2Mi", "4Mi", "0", "512Mi"],
    "example.com/gpu": ["0", "1", "2", "8"],
    "vendor.io/fpga": ["1", "3"],
    "nvidia.com/gpu": ["1", "4"],
    "kubernetes.io/odd": ["1"],
    "storage": ["1Gi"],
}
SPEC_PARTS = (
    "tolerations", "nodeSelector", "topologySpreadConstraints", "containers", "initContainers", "overhead", "resources",
    "priority", "preemptionPolicy", "volumes", "hostNetwork", "hostUsers",
)  # fmt: skip
AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


class Crossings:
    def __init__(self, pool: Sequence[Json], seed: int) -> None:
        self.pool, self.rng = pool, random.Random(seed)
        self.seed = seed

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def _pick(self) -> Json:
        return self.rng.choice(self.pool)

    def _pod(self) -> Json:
        """A pod of some case: its pending one or one that was placed."""
        case = self._pick()
        pods = [p for p in case.get("pods", ()) if p["spec"].get("nodeName")]
        found = self.rng.choice(pods) if pods and self.chance(0.3) else case["pod"]
        return copy.deepcopy(found)

    def case(self) -> Json:
        """A case without an expectation."""
        case = copy.deepcopy(self._pick())
        case["id"] = f"crossing-{self.seed}"
        nodes = case.get("nodes") or []
        if len(nodes) > 12:
            case["nodes"] = nodes = self.rng.sample(nodes, 12)
        if self.chance(0.5):
            self._change_nodes(nodes)
        pods = case.setdefault("pods", [])
        if self.chance(0.5):
            self._more_pods(pods, nodes)
        self._settle_images(nodes)
        pod = self._pending(case) if self.chance(0.85) else case["pod"]
        if self.chance(0.15):
            self._nominate(case, pod, nodes)
        self._configure(case, pod)
        return case

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _change_nodes(self, nodes: Sequence[Json]) -> None:
        others = [n for _ in range(3) for n in self._pick().get("nodes") or ()]
        for node in nodes:
            if not others or self.chance(0.4):
                continue
            other = copy.deepcopy(self.rng.choice(others))
            what = self.rng.randrange(5)
            if what == 0:
                host = node["metadata"].get("labels", {}).get("kubernetes.io/hostname")
                node["metadata"]["labels"] = {**other["metadata"].get("labels", {})}
                if host is not None:
                    node["metadata"]["labels"]["kubernetes.io/hostname"] = host
            elif what == 1:
                node["spec"]["taints"] = other["spec"].get("taints") or []
            elif what == 2:
                node["status"]["allocatable"] = other["status"]["allocatable"]
            elif what == 3:
                node["status"]["images"] = other["status"].get("images") or []
            else:
                node["status"]["declaredFeatures"] = other["status"].get("declaredFeatures") or []
                node["spec"]["unschedulable"] = self.chance(0.3)

    def _settle_images(self, nodes: Sequence[Json]) -> None:
        """An image has one size, wherever it is."""
        sizes: dict[str, int] = {}
        for node in nodes:
            for image in node["status"].get("images") or ():
                image["names"] = image["names"][:1]
                image["sizeBytes"] = sizes.setdefault(image["names"][0], image.get("sizeBytes", 0))

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _more_pods(self, pods: list[Json], nodes: Sequence[Json]) -> None:
        for i in range(self.rng.randrange(1, 12)):
            pod = self._pod()
            pod["metadata"].update(name=f"more-{i}", uid=f"uid-more-{i}")
            where = self.rng.choice(nodes)["metadata"]["name"] if nodes and self.chance(0.9) else "nowhere"
            pod["spec"]["nodeName"] = where
            pod["spec"].pop("schedulingGates", None)
            pod["status"].pop("nominatedNodeName", None)
            pod["status"]["startTime"] = f"2026-01-03T{i:02}:00:00Z"
            if self.chance(0.1):
                pod["metadata"]["deletionTimestamp"] = "2026-01-04T00:00:00Z"
            for volume in pod["spec"].get("volumes") or ():
                if volume.get("ephemeral") is not None:
                    del volume["ephemeral"]
                    volume["emptyDir"] = {}
            pods.append(pod)

    def _pending(self, case: Json) -> Json:
        pod = self._pod()
        donor = None
        for part in SPEC_PARTS:
            if self.chance(0.12):
                donor = self._pick()
                value = donor["pod"]["spec"].get(part)
                if value is None:
                    pod["spec"].pop(part, None)
                else:
                    pod["spec"][part] = copy.deepcopy(value)
        for kind in AFFINITIES:
            if self.chance(0.15):
                affinity = self._pod()["spec"].get("affinity") or {}
                if kind in affinity:
                    pod["spec"].setdefault("affinity", {})[kind] = affinity[kind]
        if self.chance(0.2):
            pod["metadata"]["labels"] = self._pod()["metadata"].get("labels") or {}
        if self.chance(0.25):
            self._odd_requests(pod)
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral") is not None and self.chance(0.5):
                del volume["ephemeral"]
                volume["emptyDir"] = {}
        pod["metadata"].update(name="pending", uid="uid-pending")
        pod["metadata"].pop("deletionTimestamp", None)
        pod["spec"].pop("nodeName", None)
        pod["status"].pop("startTime", None)
        pod["status"].pop("nominatedNodeName", None)
        pod["status"]["phase"] = "Pending"
        self._bring(case, pod)
        case["pod"] = pod
        return pod

    def _odd_requests(self, pod: Json) -> None:
        for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
            names = self.rng.sample(list(ODD), self.rng.randrange(4))
            found = {name: self.rng.choice(ODD[name]) for name in names}
            container["resources"] = {"requests": found}

    def _bring(self, case: Json, pod: Json) -> None:
        """Objects of other cases, where they don't replace any: claims of the pod's volumes get a volume or a class."""
        lists = (*VOLUME_LISTS, *OTHER_LISTS) if pod["spec"].get("volumes") or self.chance(0.2) else OTHER_LISTS
        for other in (self._pick(), self._pick()):
            for field in lists:
                there = {(o["metadata"].get("namespace"), o["metadata"]["name"]) for o in case.get(field, ())}
                for obj in other.get(field, ()):
                    if (obj["metadata"].get("namespace"), obj["metadata"]["name"]) not in there:
                        case.setdefault(field, []).append(copy.deepcopy(obj))

    def _nominate(self, case: Json, pod: Json, nodes: Sequence[Json]) -> None:
        if not nodes:
            return
        if self.chance(0.3):
            pod["status"]["nominatedNodeName"] = self.rng.choice(nodes)["metadata"]["name"]
        for i in range(self.rng.randrange(3)):
            other = self._pod()
            other["metadata"].update(name=f"nominated-more-{i}", uid=f"uid-nominated-more-{i}")
            other["metadata"].pop("deletionTimestamp", None)
            other["spec"].pop("nodeName", None)
            other["spec"]["priority"] = self.rng.choice([-10, 0, 10, 100, 1000])
            other["status"] = {"phase": "Pending", "nominatedNodeName": self.rng.choice(nodes)["metadata"]["name"]}
            other["spec"]["volumes"] = []
            case["pods"].append(other)

    # --- configuration ------------------------------------------------------------------------------------------------

    def _configure(self, case: Json, pod: Json) -> None:
        if self.chance(0.5):
            config = configuration(self.rng) if self.chance(0.5) else self._pick().get("config")
            if config is None:
                case.pop("config", None)
            else:
                case["config"] = copy.deepcopy(config)
        config = case.get("config")
        profiles = [p.get("schedulerName") or "default-scheduler" for p in (config or {}).get("profiles") or ()]
        pod["spec"]["schedulerName"] = self.rng.choice(profiles) if profiles else "default-scheduler"
