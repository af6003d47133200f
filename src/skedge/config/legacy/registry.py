"""Names of predicates, priorities and providers, and the plugins they stand for.

Upstream (v1.20): `framework/plugins/legacy_registry.go`, `algorithmprovider/registry.go`.
"""

from typing import Final

import msgspec

from skedge import names


class Predicate(msgspec.Struct, frozen=True):
    """A predicate: the plugins whose filters it stands for, and whether it is on by default, or always."""

    plugins: tuple[str, ...]
    default: bool = False
    mandatory: bool = False


class Priority(msgspec.Struct, frozen=True):
    """A priority: the plugin whose score it stands for ("" for none); weight 0: not in the default set."""

    plugin: str
    weight: int = 0


PREDICATES: Final[dict[str, Predicate]] = {
    "CheckNodeUnschedulable": Predicate((names.NODE_UNSCHEDULABLE,), default=True, mandatory=True),
    "GeneralPredicates": Predicate(
        (names.NODE_RESOURCES_FIT, names.NODE_NAME, names.NODE_PORTS, names.NODE_AFFINITY), default=True
    ),
    "HostName": Predicate((names.NODE_NAME,)),
    "PodFitsHostPorts": Predicate((names.NODE_PORTS,)),
    "PodFitsPorts": Predicate((names.NODE_PORTS,)),
    "MatchNodeSelector": Predicate((names.NODE_AFFINITY,)),
    "PodFitsResources": Predicate((names.NODE_RESOURCES_FIT,)),
    "NoDiskConflict": Predicate((names.VOLUME_RESTRICTIONS,), default=True),
    "PodToleratesNodeTaints": Predicate((names.TAINT_TOLERATION,), default=True, mandatory=True),
    "CheckNodeLabelPresence": Predicate((names.NODE_LABEL,)),
    "CheckServiceAffinity": Predicate((names.SERVICE_AFFINITY,)),
    "MaxEBSVolumeCount": Predicate((names.NODE_VOLUME_LIMITS,), default=True),
    "MaxGCEPDVolumeCount": Predicate((names.NODE_VOLUME_LIMITS,), default=True),
    "MaxCSIVolumeCountPred": Predicate((names.NODE_VOLUME_LIMITS,), default=True),
    "MaxAzureDiskVolumeCount": Predicate((names.NODE_VOLUME_LIMITS,), default=True),
    "MaxCinderVolumeCount": Predicate((names.NODE_VOLUME_LIMITS,)),
    "CheckVolumeBinding": Predicate((names.VOLUME_BINDING,), default=True),
    "NoVolumeZoneConflict": Predicate((names.VOLUME_ZONE,), default=True),
    "EvenPodsSpread": Predicate((names.POD_TOPOLOGY_SPREAD,), default=True),
    "MatchInterPodAffinity": Predicate((names.INTER_POD_AFFINITY,), default=True),
}
"""All predicates, in the fixed order of evaluation; a Policy's own order means nothing."""

RETIRED_PREDICATES: Final = frozenset(
    {"CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"}
)
"""Predicates whose work taints took over: read, and without effect."""

LEAST_REQUESTED: Final = "LeastRequestedPriority"
MOST_REQUESTED: Final = "MostRequestedPriority"
CAPACITY_RATIO: Final = "RequestedToCapacityRatioPriority"
SELECTOR_SPREAD: Final = "SelectorSpreadPriority"
ALIASES: Final = {"ServiceSpreadingPriority": SELECTOR_SPREAD}
EVEN_SPREAD: Final = "EvenPodsSpreadPriority"

PRIORITIES: Final[dict[str, Priority]] = {
    "BalancedResourceAllocation": Priority(names.NODE_RESOURCES_BALANCED_ALLOCATION, 1),
    "EqualPriority": Priority(""),
    EVEN_SPREAD: Priority(names.POD_TOPOLOGY_SPREAD, 2),
    "ImageLocalityPriority": Priority(names.IMAGE_LOCALITY, 1),
    "InterPodAffinityPriority": Priority(names.INTER_POD_AFFINITY, 1),
    LEAST_REQUESTED: Priority(names.NODE_RESOURCES_LEAST_ALLOCATED, 1),
    MOST_REQUESTED: Priority(names.NODE_RESOURCES_MOST_ALLOCATED),
    "NodeAffinityPriority": Priority(names.NODE_AFFINITY, 1),
    "NodePreferAvoidPodsPriority": Priority(names.NODE_PREFER_AVOID_PODS, 10000),
    CAPACITY_RATIO: Priority(names.REQUESTED_TO_CAPACITY_RATIO),
    SELECTOR_SPREAD: Priority(names.POD_TOPOLOGY_SPREAD, 1),
    "ServiceSpreadingPriority": Priority(names.POD_TOPOLOGY_SPREAD),
    "TaintTolerationPriority": Priority(names.TAINT_TOLERATION, 1),
}
"""All priorities, sorted by name, which is the order they are processed in."""

RETIRED_PRIORITIES: Final = frozenset({"ResourceLimitsPriority"})
"""Priorities that never left their alpha gate: read, and without effect."""

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
PROVIDERS: Final = (AUTOSCALER_PROVIDER, DEFAULT_PROVIDER)
"""The algorithm providers, sorted."""

NEEDS_PRE_FILTER: Final = frozenset(
    {
        names.NODE_RESOURCES_FIT,
        names.NODE_PORTS,
        names.NODE_AFFINITY,
        names.VOLUME_RESTRICTIONS,
        names.NODE_VOLUME_LIMITS,
        names.VOLUME_ZONE,
        names.VOLUME_BINDING,
        names.POD_TOPOLOGY_SPREAD,
        names.INTER_POD_AFFINITY,
        names.SERVICE_AFFINITY,
        names.DYNAMIC_RESOURCES,
        names.NODE_DECLARED_FEATURES,
    }
)
"""Plugins whose filter needs their preFilter."""

NEEDS_PRE_SCORE: Final = frozenset(
    {
        names.NODE_RESOURCES_FIT,
        names.NODE_AFFINITY,
        names.VOLUME_BINDING,
        names.POD_TOPOLOGY_SPREAD,
        names.INTER_POD_AFFINITY,
        names.TAINT_TOLERATION,
        names.NODE_RESOURCES_BALANCED_ALLOCATION,
        names.SELECTOR_SPREAD,
    }
)
"""Plugins whose score needs their preScore."""


def legacy_names(plugin: str) -> list[str]:
    """The predicates and priorities that a plugin stands for today, for listings."""
    found = [name for name, predicate in PREDICATES.items() if plugin in predicate.plugins]
    found += [name for name, priority in PRIORITIES.items() if priority.plugin == plugin]
    if plugin == names.NODE_RESOURCES_FIT:
        found += [LEAST_REQUESTED, MOST_REQUESTED, CAPACITY_RATIO]
    return found
