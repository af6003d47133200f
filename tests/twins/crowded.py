"""Small full clusters at random: pods of several priorities that are in each other's way in several manners."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from skedge.api.core import Pod
from skedge.snapshot.pods import PodInfo
from skedge.testing.cases import Cluster

NAMESPACES = ["one", "two"]
APPS = ["a", "b", "c"]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


class Crowded:
    def __init__(self, seed: int, config: Any = None) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(config, seed=seed)
        self.serial = 0
        for name in NAMESPACES:
            self.cluster.add("namespaces", {"metadata": {"name": name, "labels": {"team": name}}})
        for i in range(self.rng.randrange(2, 7)):
            self.node(f"n{i}")
        for _ in range(self.rng.choice([0, 0, 1, 2, 3])):
            self.budget()
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.nominated()

    def node(self, name: str) -> None:
        rng = self.rng
        labels = {HOST: name, ZONE: rng.choice(["z1", "z2"])}
        taints = [{"key": "k", "effect": "NoSchedule"}] if rng.random() < 0.1 else []
        allocatable = {"cpu": str(rng.randrange(2, 5)), "memory": "8Gi", "pods": rng.choice(["4", "110"])}
        status = {"allocatable": allocatable}
        self.cluster.add(
            "nodes", {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}
        )
        for _ in range(rng.randrange(7)):
            self.cluster.add("pods", self.json(rng.choice([-10, 0, 0, 10, 20, 100]), node=name))

    def budget(self) -> None:
        rng = self.rng
        self.serial += 1
        selector = rng.choice([{}, {"matchLabels": {"app": rng.choice(APPS)}}, {"matchLabels": {"app": "a"}}])
        status: dict[str, Any] = {"disruptionsAllowed": rng.randrange(3)}
        if rng.random() < 0.3:
            status["disruptedPods"] = {f"p{rng.randrange(20)}": "2026-01-01T00:00:00Z"}
        meta = {"name": f"b{self.serial}", "namespace": rng.choice(NAMESPACES)}
        self.cluster.add("pdbs", {"metadata": meta, "spec": {"selector": selector}, "status": status})

    def nominated(self) -> None:
        json = self.json(self.rng.choice([10, 60, 100]))
        json["status"]["nominatedNodeName"] = f"n{self.rng.randrange(4)}"
        self.cluster.add("pods", json)

    def pod(self) -> PodInfo:
        """The preemptor."""
        return PodInfo(msgspec.convert(self.json(50, big=True), Pod))

    def json(self, priority: int, node: str = "", big: bool = False) -> dict[str, Any]:
        rng = self.rng
        self.serial += 1
        name = f"p{self.serial}"
        labels = {"app": rng.choice(APPS)} if rng.random() < 0.8 else {}
        cpu = rng.choice(["1", "2", "3"]) if big else rng.choice(["0", "250m", "500m", "1", "2"])
        container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        if rng.random() < 0.25:
            ip = rng.choice(["", "10.0.0.1", "10.0.0.2"])
            container["ports"] = [{"containerPort": 80, "hostPort": 80, "hostIP": ip, "protocol": "TCP"}]
        spec: dict[str, Any] = {
            "priority": priority,
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "containers": [container],
        }
        selector = {"matchLabels": {"app": rng.choice(APPS)}}
        if rng.random() < 0.25:
            term = {"topologyKey": rng.choice([HOST, ZONE]), "labelSelector": selector}
            kind = rng.choice(["podAffinity", "podAntiAffinity", "podAntiAffinity"])
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if big and rng.random() < 0.3:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": rng.randrange(1, 3),
                    "topologyKey": rng.choice([HOST, ZONE]),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        start = f"2026-01-01T{self.serial // 60 % 24:02}:{self.serial % 60:02}:00Z"
        meta = {"name": name, "namespace": rng.choice(NAMESPACES), "uid": name, "labels": labels}
        return {"metadata": meta, "spec": spec, "status": {"startTime": start} if node else {}}
