"""Which in-tree plugin implements which extension point: a plain table for these tests."""

_FILTERS = (
    "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
    "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
)
POINTS = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption GangScheduling",
    "queueSort": "PrioritySort",
    "preFilter": _FILTERS,
    "filter": f"NodeUnschedulable NodeName TaintToleration {_FILTERS}",
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
    "NodeResourcesBalancedAllocation",
    "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
    "DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    "reserve": "VolumeBinding DynamicResources GangScheduling",
    "permit": "GangScheduling",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
    "placementGenerate": "TopologyPlacementGenerator",
    "placementScore": "NodeResourcesFit PodGroupPodsCount",
}
_SETS = {point: set(plugins.split()) for point, plugins in POINTS.items()}


def implements(plugin: str, point: str) -> bool:
    return plugin in _SETS[point] or (plugin == "Foo" and point in ("queueSort", "filter"))
