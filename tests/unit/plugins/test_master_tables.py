"""What all plugins have in common, on the registry: events by object, dependence, extension points, words."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.framework.events import ActionType, ClusterEventWithHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import Depends
from skedge.plugins.registry import IN_TREE
from skedge.testing.cases import Cluster

A = ActionType


def made() -> dict[str, Any]:
    """Every plugin of the registry, with the defaults of its arguments."""
    gates = FeatureGates()
    cluster = Cluster()
    handle = Handle(
        table=cluster.cache.table,
        listers=cluster.listers,
        gates=gates,
        clock=cluster.clock,
        rng=None,  # type: ignore[arg-type]
        ports=None,
    )
    args = {name: kind.default(gates) for name, kind in PLUGIN_ARGS.items()}
    return {name: factory(args.get(name), handle) for name, factory in IN_TREE.items()}


def test_registry() -> None:
    assert len(IN_TREE) == 23


def registered() -> dict[str, dict[str, set[str]]]:
    """Object -> action -> plugins."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, plugin in made().items():
        if not hasattr(plugin, "events_to_register"):
            continue
        for entry in plugin.events_to_register():
            assert isinstance(entry, ClusterEventWithHint)
            event = entry.event
            for action in A:
                if action in event.action:
                    found[event.resource][action.name or ""].add(name)
    return found


NODE_ADD = {
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
}
EVENTS = {
    ("Node", "ADD"): NODE_ADD,
    ("Node", "DELETE"): {"PodTopologySpread"},
    ("Node", "UPDATE_NODE_LABEL"): {
        "NodeAffinity",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    },
    ("Node", "UPDATE_NODE_TAINT"): {"NodeUnschedulable", "TaintToleration", "PodTopologySpread"},
    ("Node", "UPDATE_NODE_ALLOCATABLE"): {"NodeResourcesFit"},
    ("Node", "UPDATE_NODE_DECLARED_FEATURE"): {"NodeDeclaredFeatures"},
    ("Node", "UPDATE_NODE_CONDITION"): set(),
    ("Node", "UPDATE_NODE_ANNOTATION"): set(),
    ("Pod", "ADD"): {"PodTopologySpread", "InterPodAffinity"},
    ("Pod", "UPDATE_POD_LABEL"): {"PodTopologySpread", "InterPodAffinity"},
    ("Pod", "UPDATE_POD_TOLERATION"): {"NodeUnschedulable", "TaintToleration", "PodTopologySpread"},
    ("Pod", "UPDATE_POD_SCALE_DOWN"): {"NodeResourcesFit"},
    ("Pod", "UPDATE_POD_SCHEDULING_GATES_ELIMINATED"): {"SchedulingGates"},
    ("Pod", "UPDATE_POD_GENERATED_RESOURCE_CLAIM"): {"DynamicResources"},
    ("Pod", "DELETE"): {
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "InterPodAffinity",
        "DefaultPreemption",
    },
    ("PersistentVolumeClaim", "ADD"): {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"},
    ("PersistentVolumeClaim", "UPDATE"): {"VolumeBinding", "VolumeZone"},
    ("PersistentVolume", "ADD"): {"VolumeBinding", "VolumeZone"},
    ("PersistentVolume", "UPDATE"): {"VolumeBinding", "VolumeZone"},
    ("storage.k8s.io/StorageClass", "ADD"): {"VolumeBinding", "VolumeZone"},
    ("storage.k8s.io/StorageClass", "UPDATE"): {"VolumeBinding"},
    ("storage.k8s.io/CSINode", "ADD"): {"NodeVolumeLimits", "VolumeBinding"},
    ("storage.k8s.io/CSINode", "UPDATE"): {"NodeVolumeLimits", "VolumeBinding"},
    ("storage.k8s.io/CSIDriver", "ADD"): set(),
    ("storage.k8s.io/CSIDriver", "UPDATE"): {"VolumeBinding"},
    ("storage.k8s.io/CSIStorageCapacity", "ADD"): {"VolumeBinding"},
    ("storage.k8s.io/CSIStorageCapacity", "UPDATE"): {"VolumeBinding"},
    ("storage.k8s.io/VolumeAttachment", "ADD"): set(),
    ("storage.k8s.io/VolumeAttachment", "DELETE"): {"NodeVolumeLimits"},
    ("resource.k8s.io/DeviceClass", "ADD"): {"NodeResourcesFit"},
    ("resource.k8s.io/DeviceClass", "UPDATE"): {"NodeResourcesFit"},
}
"""The table of events by object. DynamicResources' part is that of pods without claims."""
GENERIC = {("Pod", "NodeDeclaredFeatures")}
"""Who is registered for every kind of update, and stands in no row of a special one."""
OTHERS = {"DynamicResources", "GangScheduling"}


@pytest.mark.parametrize(("resource", "action"), EVENTS, ids=lambda part: str(part))
def test_events_by_object(resource: str, action: str) -> None:
    by_action = registered()[resource]
    if action == "UPDATE":  # of kinds whose updates are not told apart
        found = {name for key, names in by_action.items() if key not in ("ADD", "DELETE") for name in names}
    else:
        found = set(by_action[action])
    left_out = {name for kind, name in GENERIC if kind == resource and action.startswith("UPDATE_POD")}
    extra = OTHERS if (resource, action) != ("Pod", "UPDATE_POD_GENERATED_RESOURCE_CLAIM") else {"GangScheduling"}
    assert found - left_out - extra == EVENTS[resource, action]


POINTS = {
    "pre_enqueue": {"SchedulingGates", "DynamicResources", "DefaultPreemption", "GangScheduling"},
    "sort_key": {"PrioritySort"},
    "pre_filter": {
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    },
    "filter": NODE_ADD | {"NodeVolumeLimits", "DynamicResources"},
    "post_filter": {"DynamicResources", "DefaultPreemption"},
    "pre_score": {
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    },
    "score": {
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    },
    "reserve": {"VolumeBinding", "DynamicResources"},
    "pre_bind": {"VolumeBinding", "DynamicResources"},
    "bind": {"DefaultBinder"},
    "placement_generate": {"TopologyPlacementGenerator"},
    "placement_score": {"NodeResourcesFit", "PodGroupPodsCount"},
    "sign": NODE_ADD | {"NodeVolumeLimits", "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality"},
}


@pytest.mark.parametrize("point", POINTS)
def test_extension_points(point: str) -> None:
    found = {name for name, plugin in IN_TREE.items() if hasattr(plugin, point)}
    assert found - {"GangScheduling"} == POINTS[point] - {"GangScheduling"}


def test_every_filter_and_score_says_what_it_depends_on() -> None:
    for name, plugin in IN_TREE.items():
        if hasattr(plugin, "filter") or hasattr(plugin, "score"):
            assert isinstance(plugin.depends, Depends), name  # type: ignore[attr-defined]
            if plugin.depends is Depends.NODE:  # type: ignore[attr-defined]
                assert hasattr(plugin, "fragment"), name
                assert hasattr(plugin, "reads"), name
