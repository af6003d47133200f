"""What a configuration is when it says nothing. Upstream: `apis/config/v1/{defaults,default_plugins}.go`."""

import logging
from collections.abc import Mapping

from skedge import names
from skedge.config import plugin_sets
from skedge.config.args import ArgsType, PluginArgs
from skedge.config.durations import Duration
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import (
    PLUGIN_SETS,
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

# The keys and values of a line travel as `values`; the formatters of `telemetry` write them.
_log = logging.getLogger(__name__)

_MULTI_POINT = (
    (names.SCHEDULING_GATES, 0),
    (names.PRIORITY_SORT, 0),
    (names.NODE_UNSCHEDULABLE, 0),
    (names.NODE_NAME, 0),
    (names.TAINT_TOLERATION, 3),
    (names.NODE_AFFINITY, 2),
    (names.NODE_PORTS, 0),
    (names.NODE_RESOURCES_FIT, 1),
    (names.VOLUME_RESTRICTIONS, 0),
    (names.NODE_VOLUME_LIMITS, 0),
    (names.VOLUME_BINDING, 0),
    (names.VOLUME_ZONE, 0),
    (names.POD_TOPOLOGY_SPREAD, 2),
    (names.INTER_POD_AFFINITY, 2),
    (names.DYNAMIC_RESOURCES, 2),
    (names.DEFAULT_PREEMPTION, 0),
    (names.NODE_RESOURCES_BALANCED_ALLOCATION, 1),
    (names.IMAGE_LOCALITY, 1),
    (names.DEFAULT_BINDER, 0),
)
_GATED = (
    ("NodeDeclaredFeatures", ((names.NODE_DECLARED_FEATURES, 0),)),
    ("GangScheduling", ((names.GANG_SCHEDULING, 0),)),
    ("TopologyAwareWorkloadScheduling", ((names.TOPOLOGY_PLACEMENT_GENERATOR, 0), (names.POD_GROUP_PODS_COUNT, 1))),
)


def default_plugins(gates: FeatureGates) -> Plugins:
    """The default plugin sets: everything through multiPoint, in this order."""
    rows = [*_MULTI_POINT, *(row for gate, added in _GATED if gates.enabled(gate) for row in added)]
    return Plugins(multi_point=PluginSet(enabled=[Plugin(name, weight) for name, weight in rows]))


def default_configuration(gates: FeatureGates | None = None) -> KubeSchedulerConfiguration:
    """The configuration of a scheduler that was given none."""
    gates = gates or FeatureGates()
    config = KubeSchedulerConfiguration(profiles=[Profile(scheduler_name=names.DEFAULT_SCHEDULER_NAME)])
    set_defaults(config, gates, PLUGIN_ARGS)
    return config


def set_defaults(config: KubeSchedulerConfiguration, gates: FeatureGates, args_types: Mapping[str, ArgsType]) -> None:
    """Complete a decoded configuration in place: sizes, profiles, merged plugin sets, arguments."""
    _set_leader_election(config.leader_election)
    _set_client_connection(config.client_connection)
    for profile in config.profiles:
        standard = default_plugins(gates)
        for name in plugin_sets.overridden(standard, profile.plugins):
            text = "Default plugin is explicitly re-configured; overriding"
            _log.info(text, extra={"values": {"plugin": name}, "v": 0})
        profile.plugins = plugin_sets.merge(standard, profile.plugins)
        set_plugin_config(profile, gates, args_types)


def set_plugin_config(profile: Profile, gates: FeatureGates, args_types: Mapping[str, ArgsType]) -> None:
    """Default the given arguments, and append those of the other enabled plugins, sorted by name."""
    given = {config.name for config in profile.plugin_config}
    for config in profile.plugin_config:
        if isinstance(config.args, PluginArgs):
            config.args.set_defaults(gates)
    enabled = {plugin.name for point in PLUGIN_SETS for plugin in profile.plugins.at(point).enabled}
    for name in sorted((enabled & args_types.keys()) - given):
        profile.plugin_config.append(PluginConfig(name, args_types[name].default(gates)))


def _set_leader_election(given: LeaderElection) -> None:
    standard = LeaderElection()
    given.lease_duration = given.lease_duration or standard.lease_duration
    given.renew_deadline = given.renew_deadline or standard.renew_deadline
    given.retry_period = given.retry_period or standard.retry_period
    given.resource_lock = given.resource_lock or standard.resource_lock
    given.resource_name = given.resource_name or standard.resource_name
    given.resource_namespace = given.resource_namespace or standard.resource_namespace


def _set_client_connection(given: ClientConnection) -> None:
    standard = ClientConnection()
    given.content_type = given.content_type or standard.content_type
    given.qps = given.qps or standard.qps
    given.burst = given.burst or standard.burst


EXTENDER_TIMEOUT = Duration.of(5)
"""What an extender's httpTimeout of 0 stands for."""
