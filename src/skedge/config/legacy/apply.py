"""Legacy input put into effect in a configuration. Upstream (v1.20): `scheduler.go`, `factory.go`."""

from collections.abc import Mapping

import msgspec

from skedge import names
from skedge.config.args import ArgsType
from skedge.config.defaults import set_plugin_config
from skedge.config.fields import ConfigError, aggregate
from skedge.config.gates import FeatureGates
from skedge.config.legacy.convert import ConvertedProfile, convert_policy
from skedge.config.legacy.policy import UNUSABLE, Policy
from skedge.config.plugin_args import NodeResourcesFitArgs
from skedge.config.types import KubeSchedulerConfiguration, PluginConfig

POLICY_KEY = "policy.cfg"
"""The key of a ConfigMap that holds a Policy."""


class PolicyFile(msgspec.Struct, rename="camel"):
    path: str = ""


class PolicyConfigMap(msgspec.Struct, rename="camel", frozen=True):
    """Where a Policy lies in the cluster: read it once at start, key `policy.cfg`."""

    namespace: str = "kube-system"
    name: str = ""


def use_profile(
    config: KubeSchedulerConfiguration,
    converted: ConvertedProfile,
    *,
    args_types: Mapping[str, ArgsType],
    gates: FeatureGates,
) -> None:
    """Put a converted profile's plugins and arguments into every profile of a configuration.

    Resources that its extenders want ignored replace those of NodeResourcesFit; its extenders replace configured ones.
    """
    for profile in config.profiles:
        profile.plugins = converted.profile.plugins
        profile.plugin_config = [PluginConfig(entry.name, entry.args) for entry in converted.profile.plugin_config]
        profile.run_all_filters = converted.profile.run_all_filters
        set_plugin_config(profile, gates, args_types)
    if converted.extenders:
        config.extenders = converted.extenders
    config.legacy_plugins = bool(converted.legacy_plugins)


def use_policy(
    config: KubeSchedulerConfiguration, policy: Policy, *, args_types: Mapping[str, ArgsType], gates: FeatureGates
) -> list[str]:
    """Let a Policy decide what every profile of a configuration runs; returns notes for the log.

    A configuration without preemption stays so, and the time limit for binding volumes is kept.
    """
    try:
        converted = convert_policy(policy, scheduler_name=config.profiles[0].scheduler_name)
    except ConfigError as error:
        raise ConfigError(f"{UNUSABLE}: {error}") from None
    fit = next((e.args for e in converted.profile.plugin_config if isinstance(e.args, NodeResourcesFitArgs)), None)
    if fit is not None and (errors := fit.validate("", gates)):
        raise ConfigError(f"{UNUSABLE}: {aggregate(errors)}")
    before = config.profiles[0]
    if (volume_args := before.args_of(names.VOLUME_BINDING)) is not None:
        converted.profile.plugin_config.append(PluginConfig(names.VOLUME_BINDING, volume_args))
    preempts = any(
        plugin.name == names.DEFAULT_PREEMPTION
        for plugins in (before.plugins.post_filter, before.plugins.multi_point)
        for plugin in plugins.enabled
    )
    use_profile(config, converted, args_types=args_types, gates=gates)
    if not preempts:
        disable_preemption(config)
    return converted.warnings


def disable_preemption(config: KubeSchedulerConfiguration) -> None:
    """Take DefaultPreemption out of every profile."""
    for profile in config.profiles:
        for plugins in (profile.plugins.pre_enqueue, profile.plugins.post_filter):
            plugins.enabled = [plugin for plugin in plugins.enabled if plugin.name != names.DEFAULT_PREEMPTION]


def policy_text(source: PolicyConfigMap, data: Mapping[str, str]) -> str:
    """The Policy in a ConfigMap's data; raises ConfigError if its key is absent."""
    if POLICY_KEY not in data:
        raise ConfigError(f'missing policy config map value at key "{POLICY_KEY}"')
    return data[POLICY_KEY]
