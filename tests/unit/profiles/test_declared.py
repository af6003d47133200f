"""What plugins declare they depend on: one object of every kind changes, and only rows it touched are asked again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from skedge.api.core import Pod
from skedge.framework.plugin import Depends
from skedge.profiles.search import Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import STORES, Cluster
from skedge.testing.conformance import profile_scores

NODES = 40
Asked = dict[str, int]


class Watched:
    """A cluster and a pod that every kept plugin has something to say about; rows that are asked are counted."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        for i in range(NODES):
            node = make_node(f"n{i}").label(disk="ssd").image("app:v1", 300 << 20)
            node.json["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
            self.cluster.add("nodes", node.json)
        self.there = make_pod("there").req(cpu="1").label(app="a").node("n3")
        self.cluster.add("pods", self.there.json)
        for field, obj in OBJECTS.items():
            self.cluster.add(field, obj)
        pod = make_pod("p").req(cpu="100m", memory="1Gi").toleration("k", operator="Exists", effect="NoSchedule")
        pod.node_selector(disk="ssd").prefer_node(3, "disk", ["ssd"]).host_port(80).image("app:v1")
        pod.json["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
        self.pod = pod.obj()
        self.asked: Asked = {}
        self.answer()
        profile = self.cluster.profiles["default-scheduler"]
        self.kept = profile.kept_names
        standing = profile.standing(PodInfo(self.pod))
        for owner, kept in [(p.name, k) for p, k in standing.filters] + [(w.name, w.kept) for w in standing.scores]:
            kept._rule = self._counting(owner, kept._rule)

    def _counting(self, owner: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def counting(state: Any, info: Any, view: Any) -> Any:
            self.asked[owner] = max(self.asked.get(owner, 0), view.size)
            return rule(state, info, view)

        return counting

    def answer(self) -> dict[str, int]:
        search = Search(self.cluster.profiles["default-scheduler"], PodInfo(self.pod))
        search.run()
        assert profile_scores(search)
        totals = search.scores()
        return {search.table.names[row]: int(total) for row, total in zip(search.rows, totals, strict=True)}

    def node(self, change: Callable[[dict[str, Any]], None]) -> None:
        node = self.cluster.cache.table.nodes[self.cluster.cache.table.row_of["n5"]]
        value = msgspec.to_builtins(node)
        change(value)
        self.cluster.add("nodes", value)


OBJECTS: dict[str, Any] = {
    "namespaces": {"metadata": {"name": "default", "labels": {}}},
    "services": {"metadata": {"name": "s", "namespace": "other"}, "spec": {"selector": {"app": "x"}}},
    "replicaSets": {"metadata": {"name": "s", "namespace": "other"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}},
    "replicationControllers": {"metadata": {"name": "s", "namespace": "other"}, "spec": {"selector": {"a": "b"}}},
    "statefulSets": {"metadata": {"name": "s", "namespace": "o"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}},
    "pdbs": {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {}}, "status": {}},
    "pvs": {"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}, "storageClassName": "c"}, "status": {}},
    "pvcs": {"metadata": {"name": "c", "namespace": "default"}, "spec": {"storageClassName": "c"}, "status": {}},
    "storageClasses": {"metadata": {"name": "c"}, "provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"},
    "csiNodes": {"metadata": {"name": "n5"}, "spec": {"drivers": [{"name": "d", "nodeID": "n5"}]}},
    "csiDrivers": {"metadata": {"name": "d"}, "spec": {}},
    "csiStorageCapacities": {"metadata": {"name": "x", "namespace": "default"}, "storageClassName": "c"},
    "volumeAttachments": {
        "metadata": {"name": "a"},
        "spec": {"attacher": "d", "nodeName": "n5", "source": {"persistentVolumeName": "v"}},
    },
}


def update(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(node: dict[str, Any]) -> None:
        for path, value in changes.items():
            *parts, last = path.split("__")
            at = node
            for part in parts:
                at = at.setdefault(part, {})
            at[last] = value

    return change


def taint(effect: str) -> Callable[[dict[str, Any]], None]:
    return update(spec__taints=[{"key": "other", "value": "", "effect": effect}])


def relabel(watched: Watched) -> None:
    value = copy.deepcopy(watched.there.json)
    value["metadata"]["labels"] = {"app": "b"}
    info = PodInfo(msgspec.convert(value, Pod))
    watched.cluster.cache.update_pod(PlacedPod(info, "n3"))


RESOURCES = {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
TAINTS = {"TaintToleration", "NodeUnschedulable"}
EVERY = RESOURCES | TAINTS | {"NodeName", "NodeAffinity", "NodePorts", "ImageLocality", "NodeDeclaredFeatures"}
"""Fields without an aspect of their own are everybody's."""
DECLARED: dict[str, tuple[Callable[[Watched], None], set[str]]] = {
    "label": (lambda w: w.node(update(metadata__labels={"disk": "hdd"})), {"NodeAffinity"}),
    "taint": (lambda w: w.node(taint("NoSchedule")), TAINTS),
    "soft taint": (lambda w: w.node(taint("PreferNoSchedule")), TAINTS),
    "cordon": (lambda w: w.node(update(spec__unschedulable=True)), TAINTS),
    "allocatable": (lambda w: w.node(update(status__allocatable={"cpu": "1", "pods": "9"})), RESOURCES),
    "other images": (
        lambda w: w.node(
            update(status__images=[{"names": ["app:v1"], "sizeBytes": 300 << 20}, {"names": ["x:1"], "sizeBytes": 1}])
        ),
        {"ImageLocality"},
    ),
    "features": (lambda w: w.node(update(status__declaredFeatures=[])), EVERY),
    "pod comes": (lambda w: w.cluster.cache.add_pod(PlacedPod(make_pod("q").info(), "n5")), RESOURCES),
    "pod with a port comes": (
        lambda w: w.cluster.cache.add_pod(PlacedPod(make_pod("q").host_port(80).info(), "n5")),
        RESOURCES | {"NodePorts"},
    ),
    "labels of a pod": (relabel, {"NodePorts"}),
    "pod goes": (lambda w: w.cluster.cache.remove_pod(w.cluster.cache.find_pod(w.there.obj().metadata.uid)), RESOURCES),
}
"""A change of one row, and the plugins that are asked about it again."""


def renew(field: str) -> Callable[[Watched], None]:
    def change(watched: Watched) -> None:
        value = copy.deepcopy(OBJECTS[field])
        value["metadata"].update(labels={"changed": "yes"}, annotations={"changed": "yes"}, resourceVersion="9")
        watched.cluster.add(field, value)

    return change


UNDECLARED: dict[str, Callable[[Watched], None]] = {field: renew(field) for field in STORES}


@pytest.mark.parametrize("what", DECLARED)
def test_declared_kinds_touch_their_row_and_the_answer_is_that_of_a_new_engine(what: str) -> None:
    watched = Watched()
    change, plugins = DECLARED[what]
    change(watched)
    got = watched.answer()
    assert set(watched.asked) >= (plugins & watched.kept) - {"NodeUnschedulable"}
    assert max(watched.asked.values()) <= 1
    assert set(watched.asked) <= plugins | {"NodePorts"}  # which looks at pods, whatever becomes of them
    assert got == fresh(watched)


@pytest.mark.parametrize("what", UNDECLARED)
def test_undeclared_kinds_change_nothing_that_is_kept(what: str) -> None:
    watched = Watched()
    before = watched.answer()
    watched.asked.clear()
    UNDECLARED[what](watched)
    assert watched.answer() == before
    assert watched.asked == {}
    assert fresh(watched) == before


def fresh(watched: Watched) -> dict[str, int]:
    """The answer of an engine that saw nothing but the end."""
    other = object.__new__(Watched)
    other.cluster, other.pod = Cluster(), watched.pod
    for node in watched.cluster.cache.table.nodes:
        if node is not None:
            other.cluster.cache.add_node(node)
    for pod in watched.cluster.cache.pods():
        slots = object.__new__(PlacedPod)
        for slot in PlacedPod.__slots__:
            setattr(slots, slot, getattr(pod, slot))
        other.cluster.cache.add_pod(slots)
    for field, (attribute, _) in STORES.items():
        for obj in getattr(watched.cluster.listers, attribute):
            getattr(other.cluster.listers, STORES[field][0]).set(obj)
    return other.answer()


def test_the_pod_is_one_that_every_kept_plugin_is_asked_about() -> None:
    watched = Watched()
    profile = watched.cluster.profiles["default-scheduler"]
    standing = profile.standing(PodInfo(watched.pod))
    asked = {plugin.name for plugin, _ in standing.filters} | {weighted.name for weighted in standing.scores}
    assert asked == watched.kept
    for plugin in profile.plugins:
        if getattr(plugin, "depends", None) is Depends.NODE:
            assert plugin.name in watched.kept
