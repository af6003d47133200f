"""Objects for tests and benchmarks, a call a property: `make_pod("p").req(cpu="1").node_selector(disk="ssd").obj()`.

The builders make JSON values, as an API server would return them, and decode them on `obj()`; so a test sees what the
product sees.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from skedge.api.core import Node, Pod
from skedge.snapshot.pods import PlacedPod, PodInfo

_versions = itertools.count(1)


class _Builder:
    def __init__(self, kind: str, name: str) -> None:
        self.json: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "resourceVersion": str(next(_versions))},
            "spec": {},
            "status": {},
        }

    @property
    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.json["metadata"]
        return meta

    @property
    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.json["spec"]
        return spec

    def label(self, **labels: str) -> Self:
        self._meta.setdefault("labels", {}).update(labels)
        return self

    def labels(self, labels: Mapping[str, str]) -> Self:
        self._meta.setdefault("labels", {}).update(labels)
        return self

    def uid(self, uid: str) -> Self:
        self._meta["uid"] = uid
        return self

    def version(self, version: str | None = None) -> Self:
        """A resourceVersion; without an argument the next one."""
        self._meta["resourceVersion"] = version or str(next(_versions))
        return self


class PodBuilder(_Builder):
    """A pending pod of `default-scheduler` with one container, until told otherwise."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__("Pod", name)
        self._meta.update(namespace=namespace, uid=f"uid-{namespace}-{name}", generation=1)
        self._spec.update(schedulerName="default-scheduler", containers=[{"name": "c", "image": "pause"}])
        self.json["status"]["phase"] = "Pending"

    def req(self, **amounts: str) -> Self:
        """Requests of the (last) container; `example_com__gpu` is written `example.com/gpu` with `resource`."""
        resources = self._spec["containers"][-1].setdefault("resources", {})
        resources.setdefault("requests", {}).update(amounts)
        return self

    def resource(self, name: str, amount: str) -> Self:
        return self.req(**{name: amount})

    def container(self, image: str = "pause", **amounts: str) -> Self:
        self._spec["containers"].append(
            {"name": f"c{len(self._spec['containers'])}", "image": image, "resources": {"requests": amounts}}
        )
        return self

    def image(self, image: str) -> Self:
        self._spec["containers"][-1]["image"] = image
        return self

    def host_port(self, port: int, protocol: str = "TCP", ip: str = "") -> Self:
        entry = {"containerPort": port, "hostPort": port, "protocol": protocol} | ({"hostIP": ip} if ip else {})
        self._spec["containers"][-1].setdefault("ports", []).append(entry)
        return self

    def node(self, name: str) -> Self:
        self._spec["nodeName"] = name
        return self

    def nominated(self, name: str) -> Self:
        self.json["status"]["nominatedNodeName"] = name
        return self

    def priority(self, priority: int) -> Self:
        self._spec["priority"] = priority
        return self

    def scheduler(self, name: str) -> Self:
        self._spec["schedulerName"] = name
        return self

    def node_selector(self, **labels: str) -> Self:
        self._spec.setdefault("nodeSelector", {}).update(labels)
        return self

    def node_affinity_in(self, key: str, values: Sequence[str]) -> Self:
        """A required node affinity term of one requirement; several calls are alternatives."""
        affinity = self._spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
        required["nodeSelectorTerms"].append(
            {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
        )
        return self

    def prefer_node(self, weight: int, key: str, values: Sequence[str]) -> Self:
        affinity = self._spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
            {
                "weight": weight,
                "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]},
            }
        )
        return self

    def pod_affinity(self, topology_key: str, match: Mapping[str, str], *, anti: bool = False) -> Self:
        """A required term that selects pods with these labels."""
        affinity = self._spec.setdefault("affinity", {}).setdefault("podAntiAffinity" if anti else "podAffinity", {})
        affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(
            {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(match)}}
        )
        return self

    def prefer_pods(self, weight: int, topology_key: str, match: Mapping[str, str], *, anti: bool = False) -> Self:
        affinity = self._spec.setdefault("affinity", {}).setdefault("podAntiAffinity" if anti else "podAffinity", {})
        term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(match)}}
        affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
            {"weight": weight, "podAffinityTerm": term}
        )
        return self

    def spread(
        self, topology_key: str, match: Mapping[str, str], max_skew: int = 1, when: str = "DoNotSchedule", **more: Any
    ) -> Self:
        self._spec.setdefault("topologySpreadConstraints", []).append(
            {
                "maxSkew": max_skew,
                "topologyKey": topology_key,
                "whenUnsatisfiable": when,
                "labelSelector": {"matchLabels": dict(match)},
                **more,
            }
        )
        return self

    def toleration(self, key: str = "", value: str = "", effect: str = "", operator: str = "Equal") -> Self:
        self._spec.setdefault("tolerations", []).append(
            {"key": key, "value": value, "effect": effect, "operator": operator}
        )
        return self

    def gates(self, *names: str) -> Self:
        self._spec["schedulingGates"] = [{"name": name} for name in names]
        return self

    def pvc(self, claim: str) -> Self:
        self._spec.setdefault("volumes", []).append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
        return self

    def terminating(self, at: str = "2026-01-01T00:00:00Z") -> Self:
        self._meta["deletionTimestamp"] = at
        return self

    def start_time(self, at: str) -> Self:
        self.json["status"]["startTime"] = at
        return self

    def owner(self, kind: str, name: str, uid: str = "") -> Self:
        self._meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}
        ]
        return self

    def obj(self) -> Pod:
        return msgspec.convert(self.json, Pod)

    def info(self) -> PodInfo:
        return PodInfo(self.obj())

    def placed(self) -> PlacedPod:
        info = self.info()
        return PlacedPod(info, info.node_name)


class NodeBuilder(_Builder):
    """A Ready node with 4 cpu, 32Gi and room for 110 pods, labelled with its host name, until told otherwise."""

    def __init__(self, name: str) -> None:
        super().__init__("Node", name)
        self._meta.update(uid=f"uid-node-{name}", labels={"kubernetes.io/hostname": name})
        self.json["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.capacity(cpu="4", memory="32Gi", pods="110")

    def capacity(self, **amounts: str) -> Self:
        self.json["status"].setdefault("allocatable", {}).update(amounts)
        self.json["status"].setdefault("capacity", {}).update(amounts)
        return self

    def resource(self, name: str, amount: str) -> Self:
        return self.capacity(**{name: amount})

    def zone(self, zone: str, region: str = "") -> Self:
        self.labels({"topology.kubernetes.io/zone": zone})
        return self.labels({"topology.kubernetes.io/region": region}) if region else self

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self._spec.setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def unschedulable(self, on: bool = True) -> Self:
        self._spec["unschedulable"] = on
        return self

    def image(self, name: str, size: int) -> Self:
        self.json["status"].setdefault("images", []).append({"names": [name], "sizeBytes": size})
        return self

    def obj(self) -> Node:
        return msgspec.convert(self.json, Node)


def make_pod(name: str = "p", namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def make_node(name: str = "n") -> NodeBuilder:
    return NodeBuilder(name)
