"""A living cluster with volumes and its plain VolumeWorld, changed together at random."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from skedge.api.core import Node, Pod
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.cases import STORES, Cluster
from twins.volumes import AWS, AWS_DRIVER, AWS_ZONE, BETA, ZONES, VolumeWorld

Json = dict[str, Any]
DRIVERS = ["d1.csi", "d2.csi", AWS_DRIVER]
HOST = "kubernetes.io/hostname"
WORLD = {
    "pvs": "pvs",
    "pvcs": "pvcs",
    "storageClasses": "classes",
    "csiNodes": "csi_nodes",
    "csiDrivers": "drivers",
    "csiStorageCapacities": "capacities",
    "volumeAttachments": "attachments",
}
CLASSES = [
    {"name": "late", "provisioner": "d1.csi"},
    {
        "name": "late-zoned",
        "provisioner": "d2.csi",
        "allowed": [{ZONES[0]: ["z1"]}, {ZONES[0]: ["z2"], "rack": ["r1"]}],
    },
    {"name": "late-static", "provisioner": "kubernetes.io/no-provisioner"},
    {"name": "late-aws", "provisioner": AWS},
]


class Furnished:
    """`step` makes one change; `pod` makes a pod to be placed, `other` one that could stand on a node."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster()
        self.world = VolumeWorld()
        self.serial = 0
        for each in CLASSES:
            terms = [
                {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]}
                for term in each.get("allowed", [])  # type: ignore[attr-defined]
            ]
            obj = {"provisioner": each["provisioner"], "volumeBindingMode": "WaitForFirstConsumer"}
            self.put("storageClasses", {"metadata": {"name": each["name"]}, **obj, "allowedTopologies": terms})
        for i in range(8):
            self.volume()
            self.claim(f"c{i}")
        for _ in range(4):
            self.node()
            self.csi_node()

    # --- objects ------------------------------------------------------------------------------------------------------

    def put(self, field: str, obj: Json) -> None:
        self.serial += 1
        obj["metadata"]["resourceVersion"] = str(self.serial)
        obj["metadata"].setdefault("uid", f"uid-{obj['metadata']['name']}")
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        getattr(self.world, WORLD[field])[key] = msgspec.convert(obj, STORES[field][1])
        self.cluster.add(field, obj)

    def drop(self, field: str) -> None:
        objects = getattr(self.world, WORLD[field])
        if objects:
            key = self.rng.choice([*objects])
            getattr(self.cluster.listers, STORES[field][0]).delete(objects.pop(key))

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def node(self) -> None:
        rng, name = self.rng, f"n{self.rng.randrange(7)}"
        labels = {HOST: name} if self.chance(0.9) else {}
        for key, values in (
            (ZONES[0], ["z1", "z2"]),
            (BETA[0], ["z1", "z2"]),
            ("rack", ["r1", "r2"]),
            (AWS_ZONE, ["z1"]),
        ):
            if self.chance(0.6):
                labels[key] = rng.choice(values)
        obj = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"pods": "110"}}}
        self.world.nodes[name] = msgspec.convert(obj, Node)
        self.cluster.add("nodes", obj)

    def no_node(self) -> None:
        if self.world.nodes:
            name = self.rng.choice([*self.world.nodes])
            self.cluster.cache.remove_node(self.world.nodes.pop(name))

    def affinity(self) -> Json:
        rng = self.rng
        expressions: list[list[Json]] = rng.choice(
            [
                [[{"key": HOST, "operator": "In", "values": [f"n{rng.randrange(7)}"]}]],
                [[{"key": ZONES[0], "operator": "In", "values": rng.choice([["z1"], ["z1", "z2"]])}]],
                [[{"key": ZONES[0], "operator": "In", "values": ["z1"]}], [{"key": "rack", "operator": "Exists"}]],
                [[{"key": "rack", "operator": "NotIn", "values": ["r1"]}]],
            ]
        )
        terms = [{"matchExpressions": each} for each in expressions]
        if self.chance(0.1):
            terms[0]["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["other"]}]  # type: ignore[list-item]
        return {"required": {"nodeSelectorTerms": terms}}

    def volume(self) -> None:
        rng = self.rng
        name = f"v{rng.randrange(10)}"
        labels = {}
        if self.chance(0.4):
            labels[rng.choice([ZONES[0], BETA[0], ZONES[1]])] = rng.choice(["z1", "z2", "z1__z2", "z1__"])
        if self.chance(0.3):
            labels["disk"] = rng.choice(["ssd", "hdd"])
        self.serial += 1
        spec: Json = {"capacity": {"storage": f"{rng.randrange(1, 9) * 1000 + self.serial % 1000}Mi"}}
        spec["accessModes"] = rng.choice([["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]])
        spec["storageClassName"] = rng.choice(CLASSES)["name"]
        kind = rng.random()
        if kind < 0.6:
            spec["csi"] = {"driver": rng.choice(DRIVERS), "volumeHandle": f"h{rng.randrange(8)}"}
        elif kind < 0.85:
            spec["awsElasticBlockStore"] = {"volumeID": f"h{rng.randrange(8)}"}
        if self.chance(0.6):
            spec["nodeAffinity"] = self.affinity()
        if self.chance(0.3):
            claim = f"c{rng.randrange(8)}"
            spec["claimRef"] = {"namespace": "one", "name": claim, "uid": rng.choice(["", f"uid-{claim}", "other"])}
        if self.chance(0.1):
            spec["volumeMode"] = "Block"
        meta: Json = {"name": name, "labels": labels}
        if self.chance(0.05):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        phase = rng.choice(["Available", "Available", "Available", "Bound", "Released"])
        self.put("pvs", {"metadata": meta, "spec": spec, "status": {"phase": phase}})

    def claim(self, name: str = "", owner: Json | None = None) -> None:
        rng = self.rng
        name = name or f"c{rng.randrange(8)}"
        meta: Json = {"name": name, "namespace": "one"}
        if owner is not None:
            meta["ownerReferences"] = [owner]
        self.serial += 1
        spec: Json = {"accessModes": rng.choice([["ReadWriteOnce"], ["ReadWriteOncePod"], ["ReadOnlyMany"]])}
        spec["resources"] = {"requests": {"storage": f"{rng.randrange(1, 9) * 1000 - 500 + self.serial % 400}Mi"}}
        spec["storageClassName"] = rng.choice(CLASSES)["name"]
        if self.chance(0.5):
            spec["volumeName"] = f"v{rng.randrange(11)}"
            meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        elif self.chance(0.15):
            meta["annotations"] = {"volume.kubernetes.io/selected-node": f"n{rng.randrange(7)}"}
        if self.chance(0.2):
            spec["selector"] = {"matchLabels": {"disk": "ssd"}}
        self.put("pvcs", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})

    def csi_node(self) -> None:
        rng, name = self.rng, f"n{self.rng.randrange(7)}"
        meta: Json = {"name": name}
        if self.chance(0.5):
            meta["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": rng.choice([AWS, f"x,{AWS}", "x"])}
        drivers = [
            {
                "name": driver,
                "nodeID": name,
                **({"allocatable": {"count": rng.randrange(4)}} if self.chance(0.8) else {}),
            }
            for driver in DRIVERS
            if self.chance(0.7)
        ]
        self.put("csiNodes", {"metadata": meta, "spec": {"drivers": drivers}})

    def driver(self) -> None:
        name = self.rng.choice(DRIVERS)
        self.put("csiDrivers", {"metadata": {"name": name}, "spec": {"storageCapacity": self.chance(0.7)}})

    def capacity(self) -> None:
        rng = self.rng
        obj: Json = {"metadata": {"name": f"cap{rng.randrange(4)}", "namespace": "kube-system"}}
        obj["storageClassName"] = rng.choice(["late", "late-zoned"])
        if self.chance(0.9):
            obj["capacity"] = f"{rng.randrange(9)}Gi"
        if self.chance(0.3):
            obj["maximumVolumeSize"] = f"{rng.randrange(9)}Gi"
        topologies: list[Json] = [
            {},
            {"matchLabels": {ZONES[0]: "z1"}},
            {"matchLabels": {ZONES[0]: "z2", "rack": "r1"}},
        ]
        if self.chance(0.9):
            obj["nodeTopology"] = rng.choice(topologies)
        self.put("csiStorageCapacities", obj)

    def attachment(self) -> None:
        rng = self.rng
        spec = {"attacher": rng.choice(DRIVERS), "nodeName": f"n{rng.randrange(7)}"}
        source = {"persistentVolumeName": f"v{rng.randrange(10)}"}
        self.put(
            "volumeAttachments", {"metadata": {"name": f"a{rng.randrange(5)}"}, "spec": {**spec, "source": source}}
        )

    # --- pods ---------------------------------------------------------------------------------------------------------

    def volumes(self) -> list[Json]:
        rng = self.rng
        found: list[Json] = []
        for i in range(rng.randrange(4)):
            source: Json = rng.choice(
                [
                    {"gcePersistentDisk": {"pdName": rng.choice("ab"), "readOnly": self.chance(0.5)}},
                    {"awsElasticBlockStore": {"volumeID": f"h{rng.randrange(4)}"}},
                    {"iscsi": {"iqn": rng.choice("ab"), "readOnly": self.chance(0.5)}},
                    {"rbd": {"monitors": rng.sample("xyz", 2), "pool": "p", "image": rng.choice("ab")}},
                    *[{"persistentVolumeClaim": {"claimName": f"c{rng.randrange(8)}"}}] * 6,
                ]
            )
            found.append({"name": f"vol{i}", **source})
        return found

    def pod(self, node: str = "") -> Pod:
        self.serial += 1
        name = f"p{self.serial}"
        volumes = self.volumes()
        if self.chance(0.1):
            volumes.append({"name": "own", "ephemeral": {}})
            self.claim(f"{name}-own", {"kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True})
        meta = {"name": name, "namespace": "one", "uid": f"uid-{name}"}
        return msgspec.convert({"metadata": meta, "spec": {"nodeName": node, "volumes": volumes}}, Pod)

    def add_pod(self) -> None:
        pod = self.pod(f"n{self.rng.randrange(8)}")
        self.world.pods[pod.metadata.uid] = pod
        self.cluster.cache.add_pod(placed(pod))

    def no_pod(self) -> None:
        if self.world.pods:
            pod = self.world.pods.pop(self.rng.choice([*self.world.pods]))
            self.cluster.cache.remove_pod(placed(pod))

    def step(self) -> None:
        changes = [self.node, self.no_node, self.volume, self.claim, self.csi_node, self.driver, self.capacity]
        changes += [self.attachment, *[self.add_pod] * 5, *[self.no_pod] * 2]
        self.rng.choice(changes)()
        if self.chance(0.2):
            self.drop(self.rng.choice([field for field in WORLD if field != "storageClasses"]))


def placed(pod: Pod) -> PlacedPod:
    return PlacedPod(PodInfo(pod), pod.spec.node_name)
