"""How many pods with a volume are decided a second: `python -m bench.micro_volumes [--nodes N] [--pods N] [WAY ...]`

Pods go through handlers, queue, cycle and a binder that answers at once. Ways:

    none      the same pods without volumes, for comparison
    csi       each pod has a claim bound to a CSI volume of its own; CSINodes allow 39 (SchedulingCSIPVs)
    migrated  the same with in-tree volumes on nodes that have migrated the plugin (SchedulingMigratedInTreePVs)
    zonal     CSI volumes with a node affinity to one of three zones
    dynamic   each claim waits for its pod, a volume is then made for it at once; capacities are published by zone
    local     as many free local volumes as nodes; each claim gets one of them

Prints one JSON object a way.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import time
from collections.abc import Callable
from typing import Any

import msgspec

from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.app.objects import ClockSignal
from skedge.app.watches import WATCHED
from skedge.assembly import build
from skedge.clock import RealClock
from skedge.config.defaults import default_configuration
from skedge.framework.handle import Listers
from skedge.framework.ports import Ports
from skedge.snapshot.pods import PlacedPod, PodInfo

DRIVER = "ebs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
Json = dict[str, Any]


class World:
    """The API server's and the volume controller's side: what is bound or written is confirmed at once."""

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo | PlacedPod] = {}
        self.bodies: dict[str, bytes] = {}
        self.listers = Listers()
        self._version = 1_000_000
        self.scheduler = build(
            default_configuration(),
            ports=Ports(self, self, self, self, self),
            clock=RealClock(),
            pod_lister=self.pods.get,
            listers=self.listers,
            rng=random.Random(1),
        )

    def create(self, body: bytes) -> None:
        info = PodInfo(msgspec.json.decode(body, type=Pod))
        self.bodies[info.key] = body
        self.pods[info.key] = info
        self.scheduler.handlers.pod_added(info)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        body = self.bodies.pop(pod.key).replace(b'"spec":{', b'"spec":{"nodeName":"%s",' % node_name.encode(), 1)
        new = PlacedPod(PodInfo(msgspec.json.decode(body, type=Pod)), node_name)
        old, self.pods[pod.key] = self.pods[pod.key], new
        self.scheduler.handlers.pod_updated(old, new)

    async def patch_status(self, pod: Any, patch: Any) -> None:
        pass

    async def delete(self, pod: PlacedPod) -> bool:
        return False

    def event(self, *args: Any, **more: Any) -> None:
        pass

    async def place(self, bodies: list[bytes]) -> list[float]:
        """Creates pods and schedules them; seconds a cycle took, binding included."""
        for body in bodies:
            self.create(body)
        cycles: list[float] = []
        while self.bodies:
            start = time.perf_counter()
            done = self.scheduler.run_slice()
            await asyncio.sleep(0)
            if done:
                cycles += [(time.perf_counter() - start) / done] * done
            elif not self.scheduler.dispatcher.unfinished_bindings:
                break
        return cycles

    def put(self, kind: str, obj: Json) -> Any:
        self._version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        obj["metadata"].setdefault("uid", f"uid-{obj['metadata']['name']}")
        watched = next(each for each in WATCHED if each.kind == kind)
        store = getattr(self.listers, watched.store)
        watcher = self.scheduler.handlers.of_store(watched.resource or kind, store)
        new = msgspec.convert(obj, KINDS[kind].struct)
        meta = new.metadata
        old = store.get(meta.name, meta.namespace)
        if old is None:
            watcher.added(new)
        else:
            watcher.updated(old, new)
        return new

    async def update(self, kind: str, obj: Any, change: Callable[[Json], None]) -> Any:
        raw = msgspec.to_builtins(obj)
        change(raw)
        if kind == "PersistentVolumeClaim":
            name = f"pv-{obj.metadata.name}"
            self.put("PersistentVolume", csi_volume(name, obj.metadata.name))
            raw["spec"]["volumeName"] = name
            raw["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
            return self.put(kind, raw)
        written = self.put(kind, raw)
        ref = written.spec.claim_ref
        claim = self.listers.persistent_volume_claims.get(ref.name, ref.namespace)
        bound = msgspec.to_builtins(claim)
        bound["spec"]["volumeName"] = written.metadata.name
        bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self.put("PersistentVolumeClaim", bound)
        return written

    def signal(self) -> ClockSignal:
        return ClockSignal(RealClock())


def volume(name: str, source: Json, claim: str = "", storage_class: str = "") -> Json:
    spec: Json = {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1Gi"}, **source}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound" if claim else "Available"}}


def csi_volume(name: str, claim: str) -> Json:
    return volume(name, {"csi": {"driver": DRIVER, "volumeHandle": name}}, claim)


def affinity(key: str, value: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


def claim(name: str, volume_name: str = "", storage_class: str = "") -> Json:
    spec: Json = {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
    meta: Json = {"name": name, "namespace": "default"}
    if volume_name:
        spec["volumeName"] = volume_name
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "true"}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": meta, "spec": spec}


def furnish(way: str, storage: World, nodes: int, pods: int) -> None:
    """Everything but nodes and pods."""
    for i in range(nodes):
        driver = {"name": DRIVER, "nodeID": f"node-{i}", "allocatable": {"count": 39}}
        meta: Json = {"name": f"node-{i}"}
        if way == "migrated":
            meta["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
        storage.put("CSINode", {"metadata": meta, "spec": {"drivers": [driver]}})
    if way in ("dynamic", "local"):
        provisioner = DRIVER if way == "dynamic" else "kubernetes.io/no-provisioner"
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        storage.put("StorageClass", {"metadata": {"name": "late"}, **mode})
    if way == "dynamic":
        storage.put("CSIDriver", {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}})
        for zone in range(3):
            topology = {"matchLabels": {ZONE: f"zone-{zone}"}}
            capacity = {"storageClassName": "late", "capacity": "100Ti", "nodeTopology": topology}
            storage.put(
                "CSIStorageCapacity", {"metadata": {"name": f"c{zone}", "namespace": "kube-system"}, **capacity}
            )
    if way == "local":
        for i in range(nodes):
            where = affinity("kubernetes.io/hostname", f"node-{i}")
            storage.put("PersistentVolume", volume(f"local-{i}", {"local": {}, **where}, storage_class="late"))
    for i in range(pods):
        name = f"claim-{i}"
        if way in ("dynamic", "local"):
            storage.put("PersistentVolumeClaim", claim(name, storage_class="late"))
        elif way != "none":
            found = csi_volume(f"pv-{i}", name)
            if way == "migrated":
                found = volume(f"pv-{i}", {"awsElasticBlockStore": {"volumeID": f"vol-{i}"}}, name)
            elif way == "zonal":
                found["spec"] |= affinity(ZONE, f"zone-{i % 3}")
            storage.put("PersistentVolume", found)
            storage.put("PersistentVolumeClaim", claim(name, f"pv-{i}"))


async def run(way: str, nodes: int, pods: int) -> Json:
    world = World()
    world.scheduler.dispatcher.start()
    for i in range(nodes):
        labels = {ZONE: f"zone-{i % 3}", "kubernetes.io/hostname": f"node-{i}"}
        status = {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}}
        node = {"metadata": {"name": f"node-{i}", "uid": f"node-{i}", "labels": labels}, "status": status}
        world.scheduler.handlers.node_added(msgspec.convert(node, Node))
    furnish(way, world, nodes, pods)
    bodies = []
    for i in range(pods):
        container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
        spec: Json = {"schedulerName": "default-scheduler", "containers": [container]}
        if way != "none":
            spec["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": f"claim-{i}"}}]
        meta = {"name": f"pod-{i}", "namespace": "default", "uid": f"pod-{i}", "resourceVersion": "1"}
        bodies.append(msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}))
    first, rest = bodies[: pods // 10], bodies[pods // 10 :]
    await world.place(first)
    gc.collect()
    gc.freeze()
    cpu, start = time.process_time(), time.perf_counter()
    latencies = sorted(await world.place(rest))
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    await world.scheduler.dispatcher.close()
    return {
        "way": way,
        "nodes": nodes,
        "pods": len(rest),
        "unplaced": len(bodies) - sum(1 for _ in world.scheduler.cache.pods()),
        "pods_per_s": round(len(rest) / took),
        "cpu_ms_per_pod": round(cpu * 1000 / len(rest), 3),
        "p99_ms": round(latencies[len(latencies) * 99 // 100] * 1000, 3),
    }


def main() -> None:
    ways = ("none", "csi", "migrated", "zonal", "dynamic", "local")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("ways", nargs="*", choices=[*ways, []], default=[])
    arguments = parser.parse_args()
    for way in arguments.ways or ways:
        print(json.dumps(asyncio.run(run(way, arguments.nodes, arguments.pods))), flush=True)


if __name__ == "__main__":
    main()
