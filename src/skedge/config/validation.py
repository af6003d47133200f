"""The rules of a complete configuration, in the reference's order and words.

Upstream: `apis/config/validation/validation.go`.
"""

from collections.abc import Iterator, Mapping

from skedge import names
from skedge.config.args import ArgsType, PluginArgs
from skedge.config.fields import FieldError, Verbatim, duplicate, invalid, required
from skedge.config.gates import FeatureGates
from skedge.config.label_names import is_extended_resource, label_key_errors
from skedge.config.types import (
    API_VERSION,
    KIND,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginConfig,
    Plugins,
    Profile,
)

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED = f'was invalid in version "{API_VERSION}" ({KIND} is version "{API_VERSION}")'
_PERCENTAGE = "not in valid range [0-100]"


def validate(
    config: KubeSchedulerConfiguration, *, args_types: Mapping[str, ArgsType], gates: FeatureGates | None = None
) -> list[FieldError]:
    """All broken rules; the configuration is usable if there are none."""
    gates = gates or FeatureGates()
    errors = []
    if config.client_connection.burst < 0:
        errors.append(invalid("clientConnection.burst", config.client_connection.burst, "must be non-negative"))
    errors += _leader_election(config.leader_election)
    if config.parallelism <= 0:
        errors.append(invalid("parallelism", config.parallelism, "should be an integer value greater than zero"))
    errors += _profiles(config.profiles, args_types, gates)
    if not 0 <= config.percentage_of_nodes_to_score <= 100:
        errors.append(invalid("percentageOfNodesToScore", config.percentage_of_nodes_to_score, _PERCENTAGE))
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        errors.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        text = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid("podMaxBackoffSeconds", longest, text))
    errors += _extenders(config.extenders)
    return errors


def _leader_election(election: LeaderElection) -> Iterator[FieldError]:
    if not election.leader_elect:
        return
    for name, value in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if value <= 0:
            yield invalid(f"leaderElection.{name}", str(value), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        text = "must be greater than `RenewDeadline`"
        yield invalid("leaderElection.leaseDuration", str(election.renew_deadline), text)
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            yield required(f"leaderElection.{name}")
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _profiles(profiles: list[Profile], args_types: Mapping[str, ArgsType], gates: FeatureGates) -> Iterator[FieldError]:
    if not profiles:
        yield required("profiles")
        return
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        yield from _profile(profile, path, args_types, gates)
        if profile.scheduler_name in seen:
            earlier = f"profiles[{seen[profile.scheduler_name]}].schedulerName"
            yield duplicate(f"{path}.schedulerName", Verbatim(earlier))
        seen[profile.scheduler_name] = index
    yield from _common_queue_sort(profiles)


def _profile(
    profile: Profile, path: str, args_types: Mapping[str, ArgsType], gates: FeatureGates
) -> Iterator[FieldError]:
    if not profile.scheduler_name:
        yield required(f"{path}.schedulerName")
    percentage = profile.percentage_of_nodes_to_score
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(f"{path}.percentageOfNodesToScore", percentage, _PERCENTAGE)
    yield from _removed_plugins(profile.plugins, f"{path}.plugins")
    seen: set[str] = set()
    for index, config in enumerate(profile.plugin_config):
        here = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(here, config.name)
        elif config.name in REMOVED_PLUGINS:
            yield invalid(here, config.name, _REMOVED)
        else:
            yield from _args(config, f"{here}.args", args_types, gates)
        seen.add(config.name)


def _removed_plugins(plugins: Plugins, path: str) -> Iterator[FieldError]:
    for point in names.POD_EXTENSION_POINTS:
        for index, plugin in enumerate(plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield invalid(f"{path}.{point}.enabled[{index}]", plugin.name, _REMOVED)


def _args(
    config: PluginConfig, path: str, args_types: Mapping[str, ArgsType], gates: FeatureGates
) -> Iterator[FieldError]:
    # The reference looks for NodeResourcesFit's rules under a wrong name, so they speak when the plugin is made.
    if config.name not in args_types or config.name == names.NODE_RESOURCES_FIT:
        return
    if not isinstance(config.args, args_types[config.name]):
        yield invalid(path, config.args, "has to match plugin args")
        return
    assert isinstance(config.args, PluginArgs)
    yield from config.args.validate(path, gates)


def _common_queue_sort(profiles: list[Profile]) -> Iterator[FieldError]:
    first = profiles[0]
    standard = first.plugins.queue_sort
    if (count := len(standard.enabled)) > 1:
        yield invalid("profiles[0].plugins.queueSort.Enabled", count, "only one queue sort plugin can be enabled")
    name = standard.enabled[0].name if standard.enabled else ""
    args = first.args_of(name) if name else None
    for index, profile in enumerate(profiles[1:], 1):
        path = f"profiles[{index}]"
        if profile.plugins.queue_sort != standard:
            yield invalid(f"{path}.plugins.queueSort", profile.plugins.queue_sort, "must be the same for all profiles")
        for config in profile.plugin_config:
            if name and config.name == name and config.args != args:
                text = "queueSort must be the same for all profiles"
                yield invalid(f"{path}.pluginConfig.args", config.args, text)


def _extenders(extenders: list[Extender]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{number}].name"
            if problems := label_key_errors(resource.name):
                yield from (invalid(here, resource.name, problem) for problem in problems)
            elif not is_extended_resource(resource.name):
                yield invalid(here, resource.name, "is an invalid extended resource name")
            if resource.name in seen:
                yield invalid(here, resource.name, "duplicate extender managed resource name")
            seen.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        yield invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )
