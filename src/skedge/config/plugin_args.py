"""Arguments of the in-tree plugins: fields, defaults, rules.

Upstream: `apis/config/{v1,validation}`, `types_pluginargs.go`.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, Final, Self

import msgspec

from skedge import names
from skedge.config.args import PluginArgs, child
from skedge.config.durations import Duration
from skedge.config.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from skedge.config.gates import FeatureGates
from skedge.config.label_names import label_key_errors
from skedge.config.node_selectors import NodeAffinity, node_affinity_errors
from skedge.config.strict import Int32, Int64, Raw, Shaped

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


class ResourceSpec(msgspec.Struct, rename="camel"):
    """A resource and its weight; a weight of 0 in a file becomes 1."""

    name: str = ""
    weight: Int64 = 0


class ShapePoint(msgspec.Struct, rename="camel"):
    """A point of a utilization (0..100) → score (0..10) function."""

    go_name = "UtilizationShapePoint"

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(msgspec.Struct, rename="camel"):
    go_name = "RequestedToCapacityRatioParam"

    shape: list[ShapePoint] = []


class ScoringStrategy(msgspec.Struct, rename="camel"):
    type: str = ""
    resources: list[ResourceSpec] = []
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class SpreadConstraint(msgspec.Struct, rename="camel"):
    """A default topology spread constraint (core/v1's fields; the selector is never given)."""

    go_name = "TopologySpreadConstraint"

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: Raw = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class DefaultPreemptionArgs(PluginArgs, dict=True):
    """How many candidate nodes a preemption dry run looks at: a share of the nodes, and a floor.

    Where a configuration gives no arguments, `everywhere` holds: all nodes are looked at.
    """

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    @classmethod
    def default(cls, gates: FeatureGates | None = None) -> Self:
        args = super().default(gates)
        args.__dict__["unasked"] = True
        return args

    @property
    def everywhere(self) -> bool:
        return "unasked" in self.__dict__

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        share, floor = child(path, "minCandidateNodesPercentage"), child(path, "minCandidateNodesAbsolute")
        errors = _in_range(share, self.min_candidate_nodes_percentage, 0, 100)
        if self.min_candidate_nodes_absolute < 0:
            errors.append(invalid(floor, self.min_candidate_nodes_absolute, "not in valid range [0, inf)"))
        if self.min_candidate_nodes_percentage == 0 and self.min_candidate_nodes_absolute == 0:
            text = "cannot be zero at the same time as "
            errors.append(invalid(share, 0, text + "minCandidateNodesAbsolute"))
            errors.append(invalid(floor, 0, text + "minCandidateNodesPercentage"))
        return errors


class DynamicResourcesArgs(PluginArgs):
    """Time limits: of allocating on one node (0 = none), and of waiting for binding conditions. None: gate off."""

    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None

    def set_defaults(self, gates: FeatureGates) -> None:
        if self.filter_timeout is None and gates.enabled("DRASchedulerFilterTimeout"):
            self.filter_timeout = Duration.of(10)
        if self.binding_timeout is None and _binding_conditions(gates):
            self.binding_timeout = Duration.of(600)

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        errors = []
        here = child(path, "filterTimeout")
        if self.filter_timeout is not None:
            if not gates.enabled("DRASchedulerFilterTimeout"):
                errors.append(forbidden(here, "DRASchedulingFilterTimeout feature gate is disabled"))
            elif self.filter_timeout < 0:
                errors.append(invalid(here, str(self.filter_timeout), "must be zero or positive"))
        here = child(path, "bindingTimeout")
        if self.binding_timeout is not None:
            if not _binding_conditions(gates):
                text = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
                errors.append(forbidden(here, text))
            elif self.binding_timeout < Duration.of(1):
                errors.append(invalid(here, str(self.binding_timeout), "must be at least 1 second"))
        return errors


class InterPodAffinityArgs(PluginArgs):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        return _in_range(child(path, "hardPodAffinityWeight"), self.hard_pod_affinity_weight, 0, 100)


class NodeAffinityArgs(PluginArgs):
    """`added_affinity`: a core/v1 NodeAffinity as plain data of checked structure, ANDed with the pod's own."""

    added_affinity: Annotated[dict[str, Any] | None, Shaped(NodeAffinity)] = None

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        return node_affinity_errors(self.added_affinity, child(path, "addedAffinity"))


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    resources: list[ResourceSpec] = []

    def set_defaults(self, gates: FeatureGates) -> None:
        self.resources = _default_resources(self.resources)

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            here = child(path, f"resources[{index}]")
            if resource.name in seen:
                errors.append(duplicate(f"{here}.name", resource.name))
            elif problems := label_key_errors(resource.name):
                errors.append(invalid(f"{here}.name", resource.name, problems[0]))
            seen.add(resource.name)
            if resource.weight != 1:
                errors.append(invalid(f"{here}.weight", resource.weight, "must be 1"))
        return errors


class NodeResourcesFitArgs(PluginArgs):
    """Resources that the filter overlooks, and how the score looks at the rest.

    Checked when the plugin is made, not with the configuration: see `validation`.
    """

    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=lambda: ScoringStrategy(type=LEAST_ALLOCATED))

    def set_defaults(self, gates: FeatureGates) -> None:
        self.scoring_strategy.resources = _default_resources(self.scoring_strategy.resources)

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        errors = []
        for index, name in enumerate(self.ignored_resources):
            here = child(path, f"ignoredResources[{index}]")
            errors += [invalid(here, name, problem) for problem in label_key_errors(name)]
        for index, name in enumerate(self.ignored_resource_groups):
            here = child(path, f"ignoredResourceGroups[{index}]")
            if "/" in name:
                errors.append(invalid(here, name, "resource group name can't contain '/'"))
            errors += [invalid(here, name, problem) for problem in label_key_errors(name)]
        return errors + _strategy_errors(self.scoring_strategy, child(path, "scoringStrategy"))


class PodTopologySpreadArgs(PluginArgs):
    """Constraints for pods without their own: built-in ones (System) or those given (List)."""

    default_constraints: list[SpreadConstraint] = []
    defaulting_type: str = SYSTEM_DEFAULTING

    def set_defaults(self, gates: FeatureGates) -> None:
        self.defaulting_type = self.defaulting_type or SYSTEM_DEFAULTING

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        kind = child(path, "defaultingType")
        errors: list[FieldError] = []
        if self.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            errors.append(not_supported(kind, self.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
        elif self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            errors.append(invalid(kind, self.defaulting_type, "when .defaultConstraints are not empty"))
        seen: set[str] = set()
        for index, constraint in enumerate(self.default_constraints):
            here = child(path, f"defaultConstraints[{index}]")
            errors += _constraint_errors(constraint, here)
            pair = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
            if pair in seen:
                errors.append(duplicate(here, pair))
            seen.add(pair)
        return errors


class VolumeBindingArgs(PluginArgs):
    """`shape` scores nodes by the use of their storage; only with gate StorageCapacityScoring."""

    bind_timeout_seconds: Int64 = 600
    shape: list[ShapePoint] = []

    def set_defaults(self, gates: FeatureGates) -> None:
        if not self.shape and gates.enabled("StorageCapacityScoring"):
            self.shape = [ShapePoint(0, 10), ShapePoint(100, 0)]

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        errors = []
        if self.bind_timeout_seconds < 0:
            text = "invalid BindTimeoutSeconds, should not be a negative value"
            errors.append(invalid(child(path, "bindTimeoutSeconds"), self.bind_timeout_seconds, text))
        here = child(path, "shape")
        if gates.enabled("StorageCapacityScoring"):
            errors += shape_errors(self.shape, here)
        elif self.shape:
            text = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            errors.append(invalid(here, self.shape, text))
        return errors


PLUGIN_ARGS: Final[dict[str, type[PluginArgs]]] = {
    names.DEFAULT_PREEMPTION: DefaultPreemptionArgs,
    names.DYNAMIC_RESOURCES: DynamicResourcesArgs,
    names.INTER_POD_AFFINITY: InterPodAffinityArgs,
    names.NODE_AFFINITY: NodeAffinityArgs,
    names.NODE_RESOURCES_BALANCED_ALLOCATION: NodeResourcesBalancedAllocationArgs,
    names.NODE_RESOURCES_FIT: NodeResourcesFitArgs,
    names.POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs,
    names.VOLUME_BINDING: VolumeBindingArgs,
}
"""The in-tree plugins that take arguments."""


def shape_errors(shape: list[ShapePoint], path: str) -> list[FieldError]:
    """Rules of a utilization → score function: points, strictly rising, in range."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index, (before, point) in enumerate(pairwise(shape), 1):
        if point.utilization <= before.utilization:
            here = f"{path}[{index}].utilization"
            errors.append(invalid(here, point.utilization, "values must be sorted in increasing order"))
    for index, point in enumerate(shape):
        errors += _in_range(f"{path}[{index}].utilization", point.utilization, 0, 100)
        errors += _in_range(f"{path}[{index}].score", point.score, 0, 10)
    return errors


def _binding_conditions(gates: FeatureGates) -> bool:
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")


def _in_range(path: str, value: int, low: int, high: int) -> list[FieldError]:
    return [] if low <= value <= high else [invalid(path, value, f"not in valid range [{low}, {high}]")]


def _default_resources(given: Iterable[ResourceSpec]) -> list[ResourceSpec]:
    resources = [ResourceSpec(one.name, one.weight or 1) for one in given]
    return resources or [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]


def _strategy_errors(strategy: ScoringStrategy, path: str) -> list[FieldError]:
    kinds = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    errors = [] if strategy.type in kinds else [not_supported(f"{path}.type", strategy.type, kinds)]
    for index, resource in enumerate(strategy.resources):
        if not 1 <= resource.weight <= 100:
            text = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.append(invalid(f"{path}.resources[{index}].weight", resource.weight, text))
    ratio, here = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            errors.append(required(here, "must be specified when type is RequestedToCapacityRatio"))
        else:
            errors += shape_errors(ratio.shape, f"{here}.shape")
    elif ratio is not None:
        errors.append(forbidden(here, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def _constraint_errors(constraint: SpreadConstraint, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if constraint.max_skew <= 0:
        errors.append(invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)"))
    if not constraint.topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        problems = label_key_errors(constraint.topology_key)
        errors += [invalid(f"{path}.topologyKey", constraint.topology_key, problem) for problem in problems]
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        errors.append(required(f"{path}.whenUnsatisfiable", "can not be empty"))
    elif constraint.when_unsatisfiable not in actions:
        errors.append(not_supported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, actions))
    if constraint.label_selector is not None:
        text = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(f"{path}.labelSelector", text))
    return errors
