"""A v1alpha1 KubeSchedulerConfiguration made into a v1 one.

Upstream (v1.17): `kube-scheduler/config/v1alpha1/types.go`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from skedge import names
from skedge.config import documents, plugin_sets
from skedge.config.args import ArgsType
from skedge.config.defaults import set_defaults
from skedge.config.fields import ConfigError, required
from skedge.config.gates import FeatureGates
from skedge.config.legacy.apply import PolicyConfigMap, PolicyFile, disable_preemption, use_profile
from skedge.config.legacy.convert import convert_provider
from skedge.config.legacy.registry import DEFAULT_PROVIDER
from skedge.config.load import decode_args
from skedge.config.plugin_args import InterPodAffinityArgs, VolumeBindingArgs
from skedge.config.strict import Int32, Int64, StrictError, decode_struct
from skedge.config.types import (
    KIND,
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

VERSIONS = ("kubescheduler.config.k8s.io/v1alpha1", "componentconfig/v1alpha1")


class PolicySource(msgspec.Struct, rename="camel"):
    file: PolicyFile | None = None
    config_map: PolicyConfigMap | None = None


class AlgorithmSource(msgspec.Struct, rename="camel"):
    """Exactly one of the two."""

    policy: PolicySource | None = None
    provider: str | None = None


class LegacyLeaderElection(LeaderElection, rename="camel"):
    lock_object_namespace: str = ""
    lock_object_name: str = ""


class LegacyPlugins(Plugins, rename="camel"):
    """v1alpha1 spelt preScore as postFilter; unreserve is part of reserve today."""

    unreserve: PluginSet = msgspec.field(default_factory=PluginSet)


class LegacyConfiguration(msgspec.Struct, rename="camel"):
    """The fields of v1alpha1."""

    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME
    algorithm_source: AlgorithmSource | None = None
    hard_pod_affinity_symmetric_weight: Int32 = 1
    leader_election: LegacyLeaderElection = msgspec.field(default_factory=LegacyLeaderElection)
    client_connection: ClientConnection = msgspec.field(default_factory=ClientConnection)
    healthz_bind_address: str = ""
    metrics_bind_address: str = ""
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    disable_preemption: bool = False
    percentage_of_nodes_to_score: Int32 | None = None
    bind_timeout_seconds: Int64 = 600
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    plugins: LegacyPlugins = msgspec.field(default_factory=LegacyPlugins)
    plugin_config: list[PluginConfig] = []


class Converted(msgspec.Struct):
    """A configuration made from legacy input, with notes for the log; `policy` is still to be read, if it is set."""

    config: KubeSchedulerConfiguration
    warnings: list[str]
    policy: PolicyFile | PolicyConfigMap | None = None


def is_legacy(data: object) -> bool:
    """Whether a document's data is a v1alpha1 configuration."""
    return isinstance(data, dict) and data.get("kind") == KIND and data.get("apiVersion") in VERSIONS


def convert_component_config(
    text: str | bytes, *, args_types: Mapping[str, ArgsType], gates: FeatureGates | None = None
) -> Converted:
    """Decode and convert a v1alpha1 configuration; raises ConfigError."""
    gates = gates or FeatureGates()
    document = documents.load(text)
    if not is_legacy(document.data) or not isinstance(document.data, dict):
        raise ConfigError(f"expected a {KIND} of version {VERSIONS[0]}")
    if document.duplicates:
        raise StrictError(document.duplicates)
    old = decode_struct(document.data, LegacyConfiguration, ignore=frozenset({"kind", "apiVersion"}))
    source, provider = _source(old.algorithm_source)
    own_plugins = old.plugins != LegacyPlugins() or bool(old.plugin_config)
    if source is not None and own_plugins:
        raise ConfigError("cannot set a Plugin config and Policy config")

    warnings = _warnings(document.data)
    config = KubeSchedulerConfiguration(
        leader_election=_leader_election(old.leader_election),
        client_connection=old.client_connection,
        enable_profiling=old.enable_profiling,
        enable_contention_profiling=old.enable_contention_profiling,
        pod_initial_backoff_seconds=old.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=old.pod_max_backoff_seconds,
        profiles=[Profile(scheduler_name=old.scheduler_name)],
    )
    if old.percentage_of_nodes_to_score is not None:
        config.percentage_of_nodes_to_score = old.percentage_of_nodes_to_score
    config.profiles[0].plugin_config = old.plugin_config
    if strict := decode_args(config, args_types):
        raise StrictError(strict)
    set_defaults(config, gates, {})
    converted = convert_provider(provider, scheduler_name=old.scheduler_name)
    _set_args(converted.profile, names.INTER_POD_AFFINITY, InterPodAffinityArgs(old.hard_pod_affinity_symmetric_weight))
    _set_args(converted.profile, names.VOLUME_BINDING, VolumeBindingArgs(old.bind_timeout_seconds))
    for entry in old.plugin_config:
        _set_args(converted.profile, entry.name, entry.args)
    converted.profile.plugins = plugin_sets.merge(converted.profile.plugins, _plugins(old.plugins))
    use_profile(config, converted, args_types=args_types, gates=gates)
    if old.disable_preemption:
        disable_preemption(config)
    return Converted(config, warnings, source)


def _source(given: AlgorithmSource | None) -> tuple[PolicyFile | PolicyConfigMap | None, str]:
    """The place of a Policy, if one is asked for, and the provider to begin with."""
    if given is None:
        return None, DEFAULT_PROVIDER
    policy = given.policy
    if (policy is None) == (given.provider is None):
        raise ConfigError(str(required("algorithmSource", "exactly one of policy and provider must be given")))
    if policy is None:
        return None, given.provider or DEFAULT_PROVIDER
    if (policy.file is None) == (policy.config_map is None):
        raise ConfigError(str(required("algorithmSource.policy", "exactly one of file and configMap must be given")))
    return policy.file or policy.config_map, DEFAULT_PROVIDER


def _warnings(data: dict[str, Any]) -> list[str]:
    return [
        f"{name} has no effect: health and metrics are served on the secure port only"
        for name in ("healthzBindAddress", "metricsBindAddress")
        if data.get(name)
    ]


def _leader_election(old: LegacyLeaderElection) -> LeaderElection:
    values = {name: getattr(old, name) for name in LeaderElection.__struct_fields__}
    if old.resource_lock in ("endpoints", "configmaps", "endpointsleases", "configmapsleases"):
        values["resource_lock"] = "leases"
    values["resource_namespace"] = old.lock_object_namespace or old.resource_namespace
    values["resource_name"] = old.lock_object_name or old.resource_name
    return LeaderElection(**values)


def _plugins(old: LegacyPlugins) -> Plugins:
    plugins = Plugins()
    for name in Plugins.__struct_fields__:
        setattr(plugins, name, getattr(old, name))
    plugins.pre_score = PluginSet(
        enabled=[*old.pre_score.enabled, *old.post_filter.enabled],
        disabled=[*old.pre_score.disabled, *old.post_filter.disabled],
    )
    plugins.post_filter = PluginSet()
    have = {plugin.name for plugin in old.reserve.enabled}
    plugins.reserve = PluginSet(
        enabled=[*old.reserve.enabled, *(plugin for plugin in old.unreserve.enabled if plugin.name not in have)],
        disabled=[*old.reserve.disabled, *old.unreserve.disabled],
    )
    return plugins


def _set_args(profile: Profile, name: str, args: object) -> None:
    profile.plugin_config = [entry for entry in profile.plugin_config if entry.name != name]
    profile.plugin_config.append(PluginConfig(name, args))
