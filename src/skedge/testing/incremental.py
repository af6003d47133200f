"""A recorded case, reached on a crooked way: the last answer must be that of the straight one.

From an empty cluster the objects of a case come one by one in random order, pods before and after their nodes. In
between things happen that are undone again: nodes are changed, leave and come back (into other rows), pods come, are
assumed, relabelled, and go, namespaces and stored objects change. The pod is evaluated several times on the way.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from skedge.api.core import Node, Pod
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_pod
from skedge.testing.cases import STORES, Cluster


class Growth:
    """Fills a cluster with a case's objects, with detours."""

    def __init__(self, case: Mapping[str, Any], seed: int) -> None:
        self.case = case
        self.rng = random.Random(f"{case['id']}/{seed}")
        self.cluster = Cluster(case.get("config"))
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
        what = self.rng.randrange(5)
        if what == 0:
            changed["metadata"].setdefault("labels", {}).update({"topology.kubernetes.io/zone": "elsewhere", "x": "y"})
        elif what == 1:
            changed["spec"]["taints"] = [{"key": "detour", "value": "", "effect": "NoSchedule"}]
        elif what == 2:
            changed["status"]["allocatable"] = {"cpu": "1", "pods": "1"}
        elif what == 3:
            changed["spec"]["unschedulable"] = True
        else:
            changed["status"]["images"] = []
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
        if self.rng.random() < 0.5:
            changed = copy.deepcopy(obj)
            changed["metadata"]["labels"] = {"detour": "yes"}
            self.cluster.add(field, changed)
        else:
            attribute, kind = STORES[field]
            getattr(self.cluster.listers, attribute).delete(msgspec.convert(obj, kind))
        self._looks()
        self.cluster.add(field, obj)
