"""Words shared by all of skedge: plugins, extension points, default names, event reasons. Upstream: `plugins/names`.

A leaf: imports nothing of skedge, everybody may import it.
"""

from typing import Final

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
COMPONENT_NAME: Final = "kube-scheduler"
KUBERNETES_VERSION: Final = "1.36.2"
"""The version whose behaviour this is, without the leading `v`."""

# Plugins, in the order of the reference's registry.
DYNAMIC_RESOURCES: Final = "DynamicResources"
IMAGE_LOCALITY: Final = "ImageLocality"
TAINT_TOLERATION: Final = "TaintToleration"
NODE_NAME: Final = "NodeName"
NODE_PORTS: Final = "NodePorts"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_RESOURCES_FIT: Final = "NodeResourcesFit"
NODE_RESOURCES_BALANCED_ALLOCATION: Final = "NodeResourcesBalancedAllocation"
VOLUME_BINDING: Final = "VolumeBinding"
VOLUME_RESTRICTIONS: Final = "VolumeRestrictions"
VOLUME_ZONE: Final = "VolumeZone"
NODE_VOLUME_LIMITS: Final = "NodeVolumeLimits"
INTER_POD_AFFINITY: Final = "InterPodAffinity"
PRIORITY_SORT: Final = "PrioritySort"
DEFAULT_BINDER: Final = "DefaultBinder"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
SCHEDULING_GATES: Final = "SchedulingGates"
GANG_SCHEDULING: Final = "GangScheduling"
TOPOLOGY_PLACEMENT_GENERATOR: Final = "TopologyPlacementGenerator"
POD_GROUP_PODS_COUNT: Final = "PodGroupPodsCount"

IN_TREE_PLUGINS: Final = (
    DYNAMIC_RESOURCES,
    IMAGE_LOCALITY,
    TAINT_TOLERATION,
    NODE_NAME,
    NODE_PORTS,
    NODE_AFFINITY,
    NODE_DECLARED_FEATURES,
    POD_TOPOLOGY_SPREAD,
    NODE_UNSCHEDULABLE,
    NODE_RESOURCES_FIT,
    NODE_RESOURCES_BALANCED_ALLOCATION,
    VOLUME_BINDING,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    NODE_VOLUME_LIMITS,
    INTER_POD_AFFINITY,
    PRIORITY_SORT,
    DEFAULT_BINDER,
    DEFAULT_PREEMPTION,
    SCHEDULING_GATES,
    GANG_SCHEDULING,
    TOPOLOGY_PLACEMENT_GENERATOR,
    POD_GROUP_PODS_COUNT,
)

# Plugins of releases up to 1.22, reachable through a legacy Policy or provider only.
NODE_LABEL: Final = "NodeLabel"
SERVICE_AFFINITY: Final = "ServiceAffinity"
SELECTOR_SPREAD: Final = "SelectorSpread"
NODE_PREFER_AVOID_PODS: Final = "NodePreferAvoidPods"
NODE_RESOURCES_LEAST_ALLOCATED: Final = "NodeResourcesLeastAllocated"
NODE_RESOURCES_MOST_ALLOCATED: Final = "NodeResourcesMostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"

LEGACY_PLUGINS: Final = (
    NODE_LABEL,
    SERVICE_AFFINITY,
    SELECTOR_SPREAD,
    NODE_PREFER_AVOID_PODS,
    NODE_RESOURCES_LEAST_ALLOCATED,
    NODE_RESOURCES_MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
)

# Extension points, spelled as in a configuration file.
PRE_ENQUEUE: Final = "preEnqueue"
QUEUE_SORT: Final = "queueSort"
PRE_FILTER: Final = "preFilter"
FILTER: Final = "filter"
POST_FILTER: Final = "postFilter"
PRE_SCORE: Final = "preScore"
SCORE: Final = "score"
RESERVE: Final = "reserve"
PERMIT: Final = "permit"
PRE_BIND: Final = "preBind"
BIND: Final = "bind"
POST_BIND: Final = "postBind"
MULTI_POINT: Final = "multiPoint"
PLACEMENT_GENERATE: Final = "placementGenerate"
PLACEMENT_SCORE: Final = "placementScore"

POD_EXTENSION_POINTS: Final = (
    PRE_ENQUEUE,
    QUEUE_SORT,
    PRE_FILTER,
    FILTER,
    POST_FILTER,
    PRE_SCORE,
    SCORE,
    RESERVE,
    PERMIT,
    PRE_BIND,
    BIND,
    POST_BIND,
)
"""The extension points of a single pod's way, in the order of a configuration file."""

EXTENSION_POINTS: Final = (*POD_EXTENSION_POINTS, PLACEMENT_GENERATE, PLACEMENT_SCORE)
"""Every point a plugin can be enabled at (multiPoint stands for all of them and is none itself)."""

# Event reasons and actions.
REASON_SCHEDULED: Final = "Scheduled"
REASON_FAILED_SCHEDULING: Final = "FailedScheduling"
REASON_PREEMPTED: Final = "Preempted"
ACTION_BINDING: Final = "Binding"
ACTION_SCHEDULING: Final = "Scheduling"
ACTION_PREEMPTING: Final = "Preempting"
