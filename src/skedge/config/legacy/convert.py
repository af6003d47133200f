"""From a Policy or a provider to a profile of today. Upstream (v1.20): `factory.go`, `legacy_registry.go`."""

from collections.abc import Iterable

import msgspec

from skedge import names
from skedge.config.args import PluginArgs
from skedge.config.fields import ConfigError, aggregate, go_quote
from skedge.config.gates import FeatureGates
from skedge.config.legacy import registry
from skedge.config.legacy.args import NodeLabelArgs, RequestedToCapacityRatioArgs, ServiceAffinityArgs
from skedge.config.legacy.policy import Policy, label_preference, label_presence
from skedge.config.plugin_args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from skedge.config.types import Extender, Plugin, PluginConfig, Plugins, PluginSet, Profile

_INFRASTRUCTURE = (names.DYNAMIC_RESOURCES, names.NODE_DECLARED_FEATURES)
_STRATEGIES = {
    names.NODE_RESOURCES_LEAST_ALLOCATED: LEAST_ALLOCATED,
    names.NODE_RESOURCES_MOST_ALLOCATED: MOST_ALLOCATED,
    names.REQUESTED_TO_CAPACITY_RATIO: REQUESTED_TO_CAPACITY_RATIO,
}
# What RequestedToCapacityRatioPriority did before it took arguments: the emptier, the better.
_FIXED_SHAPE = (ShapePoint(0, 10), ShapePoint(100, 0))


class ConvertedProfile(msgspec.Struct):
    """A profile (sets and arguments as a user would write them), its extenders, and notes on what could not be kept."""

    profile: Profile
    extenders: list[Extender]
    warnings: list[str]

    @property
    def legacy_plugins(self) -> list[str]:
        """The plugins in use that exist for legacy input only; a v1 file cannot name them."""
        used = {plugin.name for point in names.EXTENSION_POINTS for plugin in self.profile.plugins.at(point).enabled}
        return [name for name in names.LEGACY_PLUGINS if name in used]


def convert_policy(
    policy: Policy, *, scheduler_name: str = names.DEFAULT_SCHEDULER_NAME, infrastructure: bool = True
) -> ConvertedProfile:
    """The profile a Policy asks for; raises ConfigError for names that are not known.

    With `infrastructure` it also gets the plugins that pods with resource claims and declared features need.
    """
    warnings: list[str] = []
    args: dict[str, PluginArgs] = {}
    filters = _filters(policy, args, warnings)
    scores = _scores(policy, args, warnings)
    scores = _resource_scorers(scores, args)
    _fit_args(policy.extenders, args)
    profile = Profile(
        scheduler_name=scheduler_name,
        plugins=_plugins(filters, scores, infrastructure),
        plugin_config=[PluginConfig(name, args[name]) for name in sorted(args)],
        run_all_filters=policy.always_check_all_predicates,
    )
    if policy.always_check_all_predicates:
        warnings.append("alwaysCheckAllPredicates has no field in a v1 configuration; it holds for this process only")
    return ConvertedProfile(profile, policy.extenders, warnings)


def convert_provider(
    provider: str, *, scheduler_name: str = names.DEFAULT_SCHEDULER_NAME, infrastructure: bool = True
) -> ConvertedProfile:
    """The profile of an algorithm provider, with the weights it had; raises ConfigError for an unknown one."""
    if provider not in registry.PROVIDERS:
        text = f"algorithm provider {go_quote(provider)} is not registered"
        raise ConfigError(f"couldn't create scheduler using provider {go_quote(provider)}: {text}")
    strategy = MOST_ALLOCATED if provider == registry.AUTOSCALER_PROVIDER else LEAST_ALLOCATED
    filters = [
        names.NODE_UNSCHEDULABLE,
        names.NODE_NAME,
        names.TAINT_TOLERATION,
        names.NODE_AFFINITY,
        names.NODE_PORTS,
        names.NODE_RESOURCES_FIT,
        names.VOLUME_RESTRICTIONS,
        names.NODE_VOLUME_LIMITS,
        names.VOLUME_BINDING,
        names.VOLUME_ZONE,
        names.POD_TOPOLOGY_SPREAD,
        names.INTER_POD_AFFINITY,
    ]
    scores = {
        names.NODE_RESOURCES_BALANCED_ALLOCATION: 1,
        names.IMAGE_LOCALITY: 1,
        names.INTER_POD_AFFINITY: 1,
        names.NODE_RESOURCES_FIT: 1,
        names.NODE_AFFINITY: 1,
        names.NODE_PREFER_AVOID_PODS: 10000,
        names.POD_TOPOLOGY_SPREAD: 2,
        names.TAINT_TOLERATION: 1,
    }
    plugins = _plugins(filters, scores, infrastructure)
    first = (
        names.NODE_RESOURCES_FIT,
        names.NODE_PORTS,
        names.POD_TOPOLOGY_SPREAD,
        names.INTER_POD_AFFINITY,
        names.VOLUME_BINDING,
    )
    _move_to_front(plugins.pre_filter, first)
    _move_to_front(plugins.pre_score, (names.INTER_POD_AFFINITY, names.POD_TOPOLOGY_SPREAD, names.TAINT_TOLERATION))
    config = [
        PluginConfig(names.NODE_RESOURCES_FIT, _fit(strategy)),
        PluginConfig(names.POD_TOPOLOGY_SPREAD, PodTopologySpreadArgs()),
    ]
    profile = Profile(scheduler_name=scheduler_name, plugins=plugins, plugin_config=config)
    return ConvertedProfile(profile, [], [])


def _move_to_front(plugins: PluginSet, first: tuple[str, ...]) -> None:
    rank = {name: index for index, name in enumerate(first)}
    plugins.enabled.sort(key=lambda plugin: rank.get(plugin.name, len(first)))


def _filters(policy: Policy, args: dict[str, PluginArgs], warnings: list[str]) -> list[str]:
    """The filter plugins in the fixed order of predicates."""
    wanted = {name for name, predicate in registry.PREDICATES.items() if predicate.mandatory}
    if policy.predicates is None:
        wanted |= {name for name, predicate in registry.PREDICATES.items() if predicate.default}
    for predicate in policy.predicates or []:
        if predicate.name in registry.PREDICATES:
            wanted.add(predicate.name)
        elif predicate.argument is not None:
            labels = predicate.argument.labels_presence is not None
            wanted.add("CheckNodeLabelPresence" if labels else "CheckServiceAffinity")
            if predicate.argument.service_affinity is not None:
                _service_args(args).affinity_labels += predicate.argument.service_affinity.labels
        elif predicate.name in registry.RETIRED_PREDICATES:
            warnings.append(f"predicate {predicate.name} has no effect: node conditions are taints")
        else:
            raise ConfigError(f"Invalid configuration: Predicate type not found for {go_quote(predicate.name)}")
    if "CheckNodeLabelPresence" in wanted:
        label_args = _label_args(args)
        label_args.present_labels, label_args.absent_labels = label_presence(policy)
    if "CheckServiceAffinity" in wanted:
        _service_args(args)
    order = [plugin for name, p in registry.PREDICATES.items() if name in wanted for plugin in p.plugins]
    return list(dict.fromkeys(order))


def _scores(policy: Policy, args: dict[str, PluginArgs], warnings: list[str]) -> dict[str, int]:
    """Score plugins and weights in the order of priority names; resource scorers are still the legacy ones."""
    weights: dict[str, int] = {}
    if policy.priorities is None:
        weights = {name: priority.weight for name, priority in registry.PRIORITIES.items() if priority.weight}
    collected: dict[str, int] = {}
    for priority in policy.priorities or []:
        if priority.name in registry.PRIORITIES:
            weights[registry.ALIASES.get(priority.name, priority.name)] = priority.weight
        elif priority.argument is None:
            if priority.name not in registry.RETIRED_PRIORITIES:
                raise ConfigError(f"Invalid configuration: Priority type not found for {go_quote(priority.name)}")
            warnings.append(f"priority {priority.name} has no effect: its feature was removed")
        elif (ratio := priority.argument.requested_to_capacity_ratio_arguments) is not None:
            weights[REQUESTED_TO_CAPACITY_RATIO] = priority.weight
            ratio_args = RequestedToCapacityRatioArgs(
                shape=list(ratio.shape), resources=[ResourceSpec(r.name, r.weight or 1) for r in ratio.resources]
            )
            if errors := ratio_args.validate("", FeatureGates()):
                raise ConfigError(aggregate(errors))
            args[names.REQUESTED_TO_CAPACITY_RATIO] = ratio_args
        else:
            kind = names.NODE_LABEL if priority.argument.label_preference is not None else names.SERVICE_AFFINITY
            collected[kind] = collected.get(kind, 0) + priority.weight
            if (spread := priority.argument.service_anti_affinity) is not None:
                _service_args(args).anti_affinity_labels_preference.append(spread.label)
    if names.NODE_LABEL in collected:
        label_args = _label_args(args)
        label_args.present_labels_preference, label_args.absent_labels_preference = label_preference(policy)
    if registry.CAPACITY_RATIO in weights and names.REQUESTED_TO_CAPACITY_RATIO not in args:
        args[names.REQUESTED_TO_CAPACITY_RATIO] = RequestedToCapacityRatioArgs(shape=list(_FIXED_SHAPE))
    _priority_args(policy, weights, args, warnings)
    scores: dict[str, int] = {}
    for name, weight in sorted((weights | collected).items()):
        known = registry.PRIORITIES.get(name)
        plugin = known.plugin if known else name
        if plugin:
            scores.setdefault(plugin, weight)
    return scores


def _priority_args(policy: Policy, weights: dict[str, int], args: dict[str, PluginArgs], warnings: list[str]) -> None:
    if registry.SELECTOR_SPREAD in weights:
        args[names.POD_TOPOLOGY_SPREAD] = PodTopologySpreadArgs()
    elif registry.EVEN_SPREAD in weights:
        args[names.POD_TOPOLOGY_SPREAD] = PodTopologySpreadArgs(defaulting_type=LIST_DEFAULTING)
    if hard := policy.hard_pod_affinity_symmetric_weight:
        if "InterPodAffinityPriority" in weights:
            args[names.INTER_POD_AFFINITY] = InterPodAffinityArgs(hard_pod_affinity_weight=hard)
        else:
            text = "has no effect without InterPodAffinityPriority"
            warnings.append(f"hardPodAffinitySymmetricWeight {hard} {text}")


def _resource_scorers(scores: dict[str, int], args: dict[str, PluginArgs]) -> dict[str, int]:
    """A single legacy resource scorer becomes a strategy of NodeResourcesFit; several stay what they are."""
    used = [name for name in scores if name in _STRATEGIES]
    ratio = args.get(names.REQUESTED_TO_CAPACITY_RATIO)
    if isinstance(ratio, RequestedToCapacityRatioArgs) and not ratio.resources:
        ratio.resources = [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]
    if len(used) != 1:
        return scores
    strategy = _fit(_STRATEGIES[used[0]])
    if isinstance(ratio, RequestedToCapacityRatioArgs):
        strategy.scoring_strategy.resources = ratio.resources
        strategy.scoring_strategy.requested_to_capacity_ratio = RequestedToCapacityRatio(ratio.shape)
        del args[names.REQUESTED_TO_CAPACITY_RATIO]
    args[names.NODE_RESOURCES_FIT] = strategy
    return {names.NODE_RESOURCES_FIT if name in _STRATEGIES else name: weight for name, weight in scores.items()}


def _fit_args(extenders: list[Extender], args: dict[str, PluginArgs]) -> None:
    ignored = [r.name for extender in extenders for r in extender.managed_resources if r.ignored_by_scheduler]
    if ignored:
        fit = args.setdefault(names.NODE_RESOURCES_FIT, _fit(LEAST_ALLOCATED))
        assert isinstance(fit, NodeResourcesFitArgs)
        fit.ignored_resources = ignored


def _plugins(filters: list[str], scores: dict[str, int], infrastructure: bool) -> Plugins:
    """Sets per point, because a plugin in multiPoint would also score where only its filter was asked for."""
    extra = list(_INFRASTRUCTURE) if infrastructure else []
    filters = [*filters, *extra]
    reserve = [name for name in (names.VOLUME_BINDING, names.DYNAMIC_RESOURCES) if name in filters]
    claims = [name for name in (names.DYNAMIC_RESOURCES,) if name in filters]
    multi_point = _set([names.SCHEDULING_GATES, names.PRIORITY_SORT, names.DEFAULT_BINDER])
    multi_point.disabled = [Plugin("*")]
    return Plugins(
        multi_point=multi_point,
        pre_enqueue=_set([*claims, names.DEFAULT_PREEMPTION]),
        pre_filter=_set([name for name in filters if name in registry.NEEDS_PRE_FILTER]),
        filter=_set(filters),
        post_filter=_set([*claims, names.DEFAULT_PREEMPTION]),
        pre_score=_set([name for name in scores if name in registry.NEEDS_PRE_SCORE]),
        score=PluginSet(enabled=[Plugin(name, weight) for name, weight in scores.items()]),
        reserve=_set(reserve),
        pre_bind=_set(reserve),
    )


def _set(plugins: Iterable[str]) -> PluginSet:
    return PluginSet(enabled=[Plugin(name) for name in plugins])


def _fit(strategy: str) -> NodeResourcesFitArgs:
    resources = [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=strategy, resources=resources))


def _label_args(args: dict[str, PluginArgs]) -> NodeLabelArgs:
    found = args.setdefault(names.NODE_LABEL, NodeLabelArgs())
    assert isinstance(found, NodeLabelArgs)
    return found


def _service_args(args: dict[str, PluginArgs]) -> ServiceAffinityArgs:
    found = args.setdefault(names.SERVICE_AFFINITY, ServiceAffinityArgs())
    assert isinstance(found, ServiceAffinityArgs)
    return found
