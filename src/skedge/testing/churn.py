"""A cluster that does not keep still: random users, kubelets, a volume controller and a second scheduler, by a seed.

Everything happens at a `MemoryServer`, by requests that a real one would get. The scheduler under test sees it through
its watches only. Left out is what the reference's hints sleep through as well (required terms with a namespace
selector, several required terms of anti-affinity): there only the 5-minute flush wakes a pod.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from skedge.controlplane.errors import ApiError
from skedge.controlplane.store import Stored
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from skedge.testing.memory_server import MemoryServer

JSON = dict[str, Any]

NAMESPACES: Final = ("team-a", "team-b")
PROFILES: Final = ("default-scheduler", "second-scheduler")
STRANGER: Final = "strange-scheduler"
MERGE: Final = "application/merge-patch+json"
PRIORITIES: Final = {"some": 10, "much": 1000}
ZONES: Final = ("a", "b", "c")
APPS: Final = ("web", "db", "batch")
MAX_NODES: Final = 10
MAX_PODS: Final = 90


class Churn:
    """`step` does one random thing; `tick` is everybody else's second; `calm` makes sure nobody waits for the user."""

    def __init__(self, server: MemoryServer, rng: random.Random) -> None:
        self._server = server
        self._rng = rng
        self._number = 0
        self.refused = 0
        self._steps: list[tuple[int, Callable[[], None]]] = [
            (40, self._create_pod),
            (8, self._delete_pod),
            (5, self._relabel_pod),
            (4, self._open_gate),
            (3, self._finish_pod),
            (2, self._recreate_pod),
            (6, self._create_node),
            (3, self._delete_node),
            (2, self._recreate_node),
            (6, self._relabel_node),
            (5, self._taint_node),
            (4, self._cordon_node),
            (4, self._resize_node),
            (3, self._relabel_namespace),
            (6, self._create_volume),
            (6, self._create_claim),
            (2, self._create_service),
            (2, self._create_budget),
            (3, self._strangers_work),
        ]

    # --- the beginning ------------------------------------------------------------------------------------------------

    def found(self) -> None:
        """What there is from the start: namespaces, storage classes, priorities, a few nodes."""
        for name in NAMESPACES:
            self._post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": name[-1]}}})
        for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer")):
            body = {
                "metadata": {"name": name},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": mode,
            }
            self._post("/apis/storage.k8s.io/v1/storageclasses", body)
        for name, value in PRIORITIES.items():
            self._post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        for create in (self._create_node, self._create_volume, self._create_claim):
            for _ in range(6):
                create()

    def step(self) -> str:
        """One random thing; its name."""
        weights = [weight for weight, _ in self._steps]
        _, act = self._rng.choices(self._steps, weights)[0]
        act()
        return act.__name__.lstrip("_")

    # --- the server ---------------------------------------------------------------------------------------------------

    def _do(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """A request; what the server refuses (the object is gone, its namespace too) is not done."""
        try:
            return self._server.do(method, path, body, content_type)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            self.refused += 1
            return None

    def _post(self, path: str, body: JSON) -> Any:
        return self._do("POST", path, body)

    def _all(self, storage: str) -> list[Stored]:
        return [*self._server.cluster.collection(storage).objects.values()]

    def _any(self, storage: str, wanted: Callable[[JSON], bool] = lambda obj: True) -> JSON | None:
        """One of the objects of a kind, or None."""
        stored = self._all(storage)
        self._rng.shuffle(stored)
        return next((obj for each in stored if wanted(obj := each.load())), None)

    def pods(self) -> list[JSON]:
        return [stored.load() for stored in self._all("pods")]

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _new_pod(self, name: str, namespace: str) -> PodBuilder:
        rng = self._rng
        app = rng.choice(APPS)
        pod = make_pod(name, namespace).label(app=app)
        pod.req(cpu=f"{rng.choice([100, 250, 500, 1000, 2000])}m", memory=f"{rng.choice([128, 512, 1024])}Mi")
        pod.scheduler(rng.choices([*PROFILES, STRANGER], [12, 4, 1])[0])
        if rng.random() < 0.25:
            pod.json["spec"]["priorityClassName"] = rng.choice(list(PRIORITIES))
        changes: tuple[tuple[float, Callable[[], PodBuilder]], ...] = (
            (0.15, lambda: pod.node_selector(disk=rng.choice(["ssd", "hdd"]))),
            (0.12, lambda: pod.spread("topology.kubernetes.io/zone", {"app": app}, rng.choice([1, 2]))),
            (0.06, lambda: pod.spread("kubernetes.io/hostname", {"app": app}, 1, nodeTaintsPolicy="Honor")),
            (0.10, lambda: pod.pod_affinity("kubernetes.io/hostname", {"app": app}, anti=True)),
            (0.08, lambda: pod.pod_affinity("topology.kubernetes.io/zone", {"app": rng.choice(APPS)})),
            (0.08, lambda: pod.host_port(rng.choice([8080, 8081]))),
            (0.10, lambda: pod.toleration("dedicated", "x", "NoSchedule")),
            (0.10, lambda: pod.gates("example.com/wait")),
            (0.15, lambda: pod.pvc(f"claim-{rng.randrange(6)}")),
            (0.05, lambda: _with_gpu(pod)),
        )
        for chance, change in changes:
            if rng.random() < chance:
                change()
        if rng.random() < 0.06:
            term = {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "db"}},
                "namespaceSelector": {"matchLabels": {"team": rng.choice(["a", "b", "c"])}},
            }
            kind = rng.choice(["podAffinity", "podAntiAffinity"])
            affinity = pod.json["spec"].setdefault("affinity", {}).setdefault(kind, {})
            preferred = affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
            preferred.append({"weight": 10, "podAffinityTerm": term})
        return pod

    def _create_pod(self) -> None:
        if len(self._all("pods")) >= MAX_PODS:
            self._delete_pod()
            return
        self._send_pod(self._new_pod(self._name("pod"), self._rng.choice(NAMESPACES)))

    def _send_pod(self, pod: PodBuilder) -> None:
        body = pod.json
        for key in ("uid", "resourceVersion", "generation"):
            body["metadata"].pop(key, None)
        body["spec"]["terminationGracePeriodSeconds"] = self._rng.choice([0, 1, 30])
        self._post(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)

    def _delete_pod(self) -> None:
        pod = self._any("pods")
        if pod is not None:
            self._do("DELETE", _path(pod, "pods"))

    def _recreate_pod(self) -> None:
        """Another pod of the same name, at once: what a StatefulSet does."""
        pod = self._any("pods")
        if pod is not None:
            self._do("DELETE", _path(pod, "pods"), {"gracePeriodSeconds": 0})
            self._send_pod(self._new_pod(pod["metadata"]["name"], pod["metadata"]["namespace"]))

    def _relabel_pod(self) -> None:
        pod = self._any("pods")
        if pod is not None:
            self._patch(pod, "pods", {"metadata": {"labels": {"app": self._rng.choice(APPS)}}})

    def _open_gate(self) -> None:
        pod = self._any("pods", lambda pod: bool(pod["spec"].get("schedulingGates")))
        if pod is not None:
            self._patch(pod, "pods", {"spec": {"schedulingGates": []}})

    def _finish_pod(self) -> None:
        pod = self._any("pods", lambda pod: bool(pod["spec"].get("nodeName")))
        if pod is not None:
            self._patch(pod, "pods", {"status": {"phase": self._rng.choice(["Succeeded", "Failed"])}}, "/status")

    def _patch(self, obj: JSON, plural: str, change: JSON, subresource: str = "") -> None:
        self._do("PATCH", _path(obj, plural) + subresource, change, MERGE)

    def _strangers_work(self) -> None:
        """The other scheduler binds one of its pods, to any node."""
        pod = self._any("pods", lambda p: p["spec"]["schedulerName"] == STRANGER and not p["spec"].get("nodeName"))
        node = self._any("nodes")
        if pod is not None and node is not None:
            self._bind(pod, node["metadata"]["name"])

    def _bind(self, pod: JSON, node: str) -> None:
        body = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        self._post(f"{_path(pod, 'pods')}/binding", body)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _create_node(self) -> None:
        if len(self._all("nodes")) >= MAX_NODES:
            self._delete_node()
        else:
            self._send_node(self._new_node(self._name("node")))

    def _new_node(self, name: str) -> NodeBuilder:
        rng = self._rng
        node = make_node(name).capacity(cpu=rng.choice(["2", "4", "8"]), memory="8Gi", pods=rng.choice(["6", "30"]))
        node.label(disk=rng.choice(["ssd", "hdd"]))
        if rng.random() < 0.8:
            node.zone(rng.choice(ZONES))
        if rng.random() < 0.2:
            node.resource("example.com/gpu", "2")
        if rng.random() < 0.2:
            node.taint("dedicated", "x")
        return node

    def _send_node(self, node: NodeBuilder) -> None:
        for key in ("uid", "resourceVersion"):
            node.json["metadata"].pop(key, None)
        self._post("/api/v1/nodes", node.json)

    def _delete_node(self) -> None:
        node = self._any("nodes")
        if node is not None and len(self._all("nodes")) > 2:
            self._do("DELETE", _path(node, "nodes"))

    def _recreate_node(self) -> None:
        node = self._any("nodes")
        if node is not None:
            self._do("DELETE", _path(node, "nodes"))
            self._send_node(self._new_node(node["metadata"]["name"]))

    def _relabel_node(self) -> None:
        node, rng = self._any("nodes"), self._rng
        if node is not None:
            labels = rng.choice(
                [{"disk": rng.choice(["ssd", "hdd"])}, {"topology.kubernetes.io/zone": rng.choice(ZONES)}]
            )
            self._patch(node, "nodes", {"metadata": {"labels": labels}})

    def _taint_node(self) -> None:
        node = self._any("nodes")
        if node is not None and (node["spec"].get("taints") or self._rng.random() < 0.3):
            taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
            self._patch(node, "nodes", {"spec": {"taints": None if node["spec"].get("taints") else [taint]}})

    def _cordon_node(self) -> None:
        node = self._any("nodes")
        if node is not None and (node["spec"].get("unschedulable") or self._rng.random() < 0.3):
            self._patch(node, "nodes", {"spec": {"unschedulable": not node["spec"].get("unschedulable")}})

    def _resize_node(self) -> None:
        node = self._any("nodes")
        if node is not None:
            amounts = {"cpu": self._rng.choice(["1", "2", "4", "6"])}
            self._patch(node, "nodes", {"status": {"allocatable": amounts, "capacity": amounts}}, "/status")

    # --- everything else ----------------------------------------------------------------------------------------------

    def _relabel_namespace(self) -> None:
        name = self._rng.choice(NAMESPACES)
        change = {"metadata": {"labels": {"team": self._rng.choice(["a", "b", "c"])}}}
        self._do("PATCH", f"/api/v1/namespaces/{name}", change, MERGE)

    def _create_volume(self) -> None:
        rng = self._rng
        required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
        spec: JSON = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": rng.choice(["now", "later", "later"]),
            "local": {"path": "/data"},
            "nodeAffinity": {"required": required},
        }
        self._post("/api/v1/persistentvolumes", {"metadata": {"name": self._name("volume")}, "spec": spec})

    def _create_claim(self) -> None:
        rng = self._rng
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
            "storageClassName": rng.choice(["now", "later", "later"]),
        }
        body = {"metadata": {"name": f"claim-{rng.randrange(6)}"}, "spec": spec}
        self._post(f"/api/v1/namespaces/{rng.choice(NAMESPACES)}/persistentvolumeclaims", body)

    def _create_service(self) -> None:
        spec = {"selector": {"app": self._rng.choice(APPS)}, "ports": [{"port": 80}]}
        body = {"metadata": {"name": self._name("service")}, "spec": spec}
        self._post(f"/api/v1/namespaces/{self._rng.choice(NAMESPACES)}/services", body)

    def _create_budget(self) -> None:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": self._rng.choice(APPS)}}}
        body = {"metadata": {"name": self._name("budget")}, "spec": spec}
        self._post(f"/apis/policy/v1/namespaces/{self._rng.choice(NAMESPACES)}/poddisruptionbudgets", body)

    # --- controllers --------------------------------------------------------------------------------------------------

    def tick(self, chance: float = 0.5) -> None:
        """Kubelets, pod garbage and volume controller do with this chance what they have to do about each object."""
        rng = self._rng
        nodes = {stored.name for stored in self._all("nodes")}
        for pod in self.pods():
            node, meta = pod["spec"].get("nodeName"), pod["metadata"]
            if not node or rng.random() >= chance:
                continue
            if meta.get("deletionTimestamp") or node not in nodes:
                precondition = {"preconditions": {"uid": meta["uid"]}, "gracePeriodSeconds": 0}
                self._do("DELETE", _path(pod, "pods"), precondition)
            elif pod["status"].get("phase") == "Pending":
                self._patch(pod, "pods", {"status": {"phase": "Running"}}, "/status")
        self._bind_volumes(chance)

    def _bind_volumes(self, chance: float) -> None:
        """Finishes what a scheduler began, and binds claims that do not wait for a pod."""
        volumes = [stored.load() for stored in self._all("persistentvolumes")]
        claims = {stored.key: stored.load() for stored in self._all("persistentvolumeclaims")}
        for volume in volumes:
            if self._rng.random() >= chance or volume["status"].get("phase") == "Bound":
                continue
            if volume["status"].get("phase") != "Available":
                self._patch(volume, "persistentvolumes", {"status": {"phase": "Available"}}, "/status")
            ref = volume["spec"].get("claimRef")
            if ref is None:
                claim = next((c for c in claims.values() if self._wants(c, volume)), None)
            else:
                claim = claims.get(f"{ref['namespace']}/{ref['name']}")
            if (
                claim is not None
                and claim["spec"].get("volumeName", volume["metadata"]["name"]) == volume["metadata"]["name"]
            ):
                self._join(volume, claim)
                claim["spec"]["volumeName"] = volume["metadata"]["name"]

    def _wants(self, claim: JSON, volume: JSON) -> bool:
        same = claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == "now"
        return bool(same and "volumeName" not in claim["spec"])

    def _join(self, volume: JSON, claim: JSON) -> None:
        meta, name = claim["metadata"], volume["metadata"]["name"]
        ref = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta["namespace"]}
        ref |= {"name": meta["name"], "uid": meta["uid"]}
        self._patch(volume, "persistentvolumes", {"spec": {"claimRef": ref}})
        self._patch(volume, "persistentvolumes", {"status": {"phase": "Bound"}}, "/status")
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        change = {"metadata": {"annotations": bound}, "spec": {"volumeName": name}}
        self._patch(claim, "persistentvolumeclaims", change)
        self._patch(claim, "persistentvolumeclaims", {"status": {"phase": "Bound"}}, "/status")


def _with_gpu(pod: PodBuilder) -> PodBuilder:
    pod.json["spec"]["containers"][0].setdefault("resources", {})["limits"] = {"example.com/gpu": "1"}
    return pod.resource("example.com/gpu", "1")


def _path(obj: JSON, plural: str) -> str:
    meta = obj["metadata"]
    where = f"namespaces/{meta['namespace']}/" if meta.get("namespace") else ""
    return f"/api/v1/{where}{plural}/{meta['name']}"
