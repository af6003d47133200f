"""A living cluster and its plain World, changed together at random."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from skedge.api.core import Node, Pod
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.cases import Cluster
from twins.world import World

APPS = ["a", "b", "c"]
TIERS = ["x", "y"]
KEYS = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"]
NAMESPACES = ["one", "two", "three"]
POLICIES = [None, "Honor", "Ignore"]


class Growing:
    """`step` makes one change; `pod` makes a pod to be placed; `other` one that could stand on a node."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster()
        self.world = World()
        self.serial = 0
        for name in NAMESPACES[:2]:
            self.namespace(name)
        for _ in range(self.rng.randrange(1, 6)):
            self.node()

    # --- changes ------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        weighted = [(self.node, 2), (self.no_node, 1), (self.add_pod, 8), (self.no_pod, 3), (self.change_pod, 2)]
        change = self.rng.choices([c for c, _ in weighted], [w for _, w in weighted])[0]
        change()
        if self.rng.random() < 0.2:
            self.namespace(self.rng.choice(NAMESPACES))

    def namespace(self, name: str) -> None:
        labels = self.some({"team": ["red", "blue"], "env": ["prod"]})
        self.world.namespaces[name] = labels
        self.cluster.add("namespaces", {"metadata": {"name": name, "labels": labels}})

    def node(self) -> None:
        rng = self.rng
        name = f"n{rng.randrange(8)}"
        labels = self.some({KEYS[1]: ["z1", "z2", "z3", ""], "rack": ["r1", "r2"], "disk": ["ssd", "hdd"]}, 0.8)
        if rng.random() < 0.9:
            labels[KEYS[0]] = name
        taints = [{"key": "t", "value": "v", "effect": rng.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])}]
        spec = {"taints": taints} if rng.random() < 0.5 else {}
        obj = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": {"pods": "110"}}}
        self.world.nodes[name] = msgspec.convert(obj, Node)
        self.cluster.add("nodes", obj)

    def no_node(self) -> None:
        if self.world.nodes:
            node = self.world.nodes.pop(self.rng.choice(sorted(self.world.nodes)))
            self.cluster.cache.remove_node(node)

    def add_pod(self) -> None:
        pod = self.other(f"n{self.rng.randrange(9)}")
        self.world.pods[pod.metadata.uid] = pod
        self.cluster.cache.add_pod(placed(pod))

    def no_pod(self) -> None:
        if self.world.pods:
            pod = self.world.pods.pop(self.rng.choice(sorted(self.world.pods)))
            self.cluster.cache.remove_pod(placed(pod))

    def change_pod(self) -> None:
        """New labels, a deletion mark, or nothing but a new version."""
        if self.world.pods:
            uid = self.rng.choice(sorted(self.world.pods))
            pod = msgspec.convert(msgspec.to_builtins(self.world.pods[uid]), Pod)
            what = self.rng.randrange(3)
            if what == 0:
                pod.metadata.labels = self.labels()
            elif what == 1:
                pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
            self.world.pods[uid] = pod
            self.cluster.cache.update_pod(placed(pod))

    # --- objects ------------------------------------------------------------------------------------------------------

    def some(self, choices: dict[str, list[str]], share: float = 0.7) -> dict[str, str]:
        return {key: self.rng.choice(values) for key, values in choices.items() if self.rng.random() < share}

    def labels(self) -> dict[str, str]:
        return self.some({"app": APPS, "tier": TIERS})

    def other(self, node_name: str) -> Pod:
        json = self._pod()
        json["spec"]["nodeName"] = node_name
        if self.rng.random() < 0.1:
            json["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return msgspec.convert(json, Pod)

    def pod(self) -> Pod:
        """A pod to be placed, with spread constraints and tolerations too."""
        rng, json = self.rng, self._pod()
        seen = set()
        constraints = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            constraint = self._constraint()
            pair = (constraint["topologyKey"], constraint["whenUnsatisfiable"])
            if pair not in seen:
                seen.add(pair)
                constraints.append(constraint)
        json["spec"]["topologySpreadConstraints"] = constraints
        if rng.random() < 0.5:
            json["spec"]["nodeSelector"] = {"disk": "ssd"}
        if rng.random() < 0.3:
            json["spec"]["tolerations"] = [{"key": "t", "operator": "Exists"}]
        return msgspec.convert(json, Pod)

    def _pod(self) -> dict[str, Any]:
        rng = self.rng
        self.serial += 1
        name = f"p{self.serial}"
        meta = {"name": name, "namespace": rng.choice(NAMESPACES), "uid": name, "labels": self.labels()}
        affinity: dict[str, Any] = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if rng.random() < 0.35:
                terms = [self._term() for _ in range(rng.choice([0, 1, 1, 2]))]
                weighted = [
                    {"weight": rng.randrange(1, 101), "podAffinityTerm": self._term()}
                    for _ in range(rng.choice([0, 1, 2]))
                ]
                affinity[kind] = {
                    "requiredDuringSchedulingIgnoredDuringExecution": terms,
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                }
        spec = {"affinity": affinity, "schedulerName": "default-scheduler", "containers": [{"name": "c"}]}
        return {"metadata": meta, "spec": spec, "status": {}}

    def _selector(self) -> dict[str, Any] | None:
        rng = self.rng
        choices: list[dict[str, Any] | None] = [
            None,
            {},
            {"matchLabels": {"app": rng.choice(APPS)}},
            {"matchLabels": {"app": rng.choice(APPS), "tier": rng.choice(TIERS)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [rng.choice(APPS)]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        ]
        return rng.choices(choices, [1, 1, 6, 3, 3, 1, 1])[0]

    def _term(self) -> dict[str, Any]:
        rng = self.rng
        term: dict[str, Any] = {"topologyKey": rng.choice([*KEYS, "absent"]), "labelSelector": self._selector()}
        if rng.random() < 0.3:
            term["namespaces"] = rng.sample(NAMESPACES, rng.randrange(1, 3))
        if rng.random() < 0.3:
            term["namespaceSelector"] = rng.choice(
                [
                    {},
                    {"matchLabels": {"team": "red"}},
                    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
                ]
            )
        return term

    def _constraint(self) -> dict[str, Any]:
        rng = self.rng
        when = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
        constraint: dict[str, Any] = {
            "maxSkew": rng.randrange(1, 4),
            "topologyKey": rng.choice([*KEYS, "absent"] if rng.random() < 0.2 else KEYS),
            "whenUnsatisfiable": when,
            "labelSelector": self._selector(),
            "nodeAffinityPolicy": rng.choice(POLICIES),
            "nodeTaintsPolicy": rng.choice(POLICIES),
        }
        if when == "DoNotSchedule" and rng.random() < 0.3:
            constraint["minDomains"] = rng.randrange(1, 5)
        if rng.random() < 0.2:
            constraint["matchLabelKeys"] = ["tier"]
        return constraint


def placed(pod: Pod) -> PlacedPod:
    info = PodInfo(pod)
    return PlacedPod(info, pod.spec.node_name)
