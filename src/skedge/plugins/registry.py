"""The in-tree plugins by name. Upstream: `plugins/registry.go`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skedge.plugins.default_binder import DefaultBinder
from skedge.plugins.default_preemption import DefaultPreemption
from skedge.plugins.dynamic_resources import DynamicResources
from skedge.plugins.gang_scheduling import GangScheduling
from skedge.plugins.image_locality import ImageLocality
from skedge.plugins.inter_pod_affinity.plugin import InterPodAffinity
from skedge.plugins.node_affinity import NodeAffinity
from skedge.plugins.node_declared_features import NodeDeclaredFeatures
from skedge.plugins.node_name import NodeName
from skedge.plugins.node_ports import NodePorts
from skedge.plugins.node_unschedulable import NodeUnschedulable
from skedge.plugins.node_volume_limits import NodeVolumeLimits
from skedge.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from skedge.plugins.noderesources.fit import NodeResourcesFit
from skedge.plugins.pod_group_pods_count import PodGroupPodsCount
from skedge.plugins.pod_topology_spread.plugin import PodTopologySpread
from skedge.plugins.priority_sort import PrioritySort
from skedge.plugins.scheduling_gates import SchedulingGates
from skedge.plugins.taint_toleration import TaintToleration
from skedge.plugins.topology_placement import TopologyPlacementGenerator
from skedge.plugins.volume_binding.plugin import VolumeBinding
from skedge.plugins.volume_restrictions import VolumeRestrictions
from skedge.plugins.volume_zone import VolumeZone

Factory = Callable[[Any, Any], Any]
"""`(args, handle) -> plugin`; the class of an in-tree plugin is its factory."""

IN_TREE: Final[Mapping[str, Factory]] = {
    plugin.name: plugin
    for plugin in (
        PrioritySort,
        SchedulingGates,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        NodeResourcesBalancedAllocation,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        ImageLocality,
        DynamicResources,
        NodeDeclaredFeatures,
        GangScheduling,
        TopologyPlacementGenerator,
        PodGroupPodsCount,
        DefaultPreemption,
        DefaultBinder,
    )
}
