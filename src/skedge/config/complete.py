"""From options to a complete, valid configuration.

Upstream: `cmd/kube-scheduler/app/options/{options,deprecated}.go`.
"""

from collections.abc import Callable, Mapping

import msgspec

from skedge.config.args import ArgsType
from skedge.config.defaults import set_defaults
from skedge.config.fields import ConfigError, aggregate
from skedge.config.gates import FeatureGates
from skedge.config.legacy.apply import PolicyConfigMap, policy_text, use_policy, use_profile
from skedge.config.legacy.args import LEGACY_ARGS
from skedge.config.legacy.convert import convert_provider
from skedge.config.legacy.policy import decode_policy
from skedge.config.load import decode
from skedge.config.options import Options
from skedge.config.plugin_args import PLUGIN_ARGS, InterPodAffinityArgs
from skedge.config.types import KubeSchedulerConfiguration, PluginConfig, Profile
from skedge.config.validation import validate

ReadFile = Callable[[str], bytes]


class Completed(msgspec.Struct):
    """A valid configuration and notes for the log.

    With `policy` set, the plugins are still the default ones: read that ConfigMap and call `use_config_map`.
    """

    config: KubeSchedulerConfiguration
    warnings: list[str]
    policy: PolicyConfigMap | None = None


def complete(
    options: Options,
    read_file: ReadFile,
    *,
    gates: FeatureGates | None = None,
    args_types: Mapping[str, ArgsType] = PLUGIN_ARGS,
) -> Completed:
    """Apply the options to the file of `--config` or to the defaults, and validate; raises ConfigError.

    `read_file` returns a file's bytes or raises OSError.
    """
    gates = gates or FeatureGates()
    done = (
        _from_file(options, read_file, gates, args_types) if options.config else _from_flags(options, gates, args_types)
    )
    if not options.config:
        _apply_legacy(done, options, read_file, gates, args_types)
    _apply_leader_election(done.config, options)
    check(done.config, gates, args_types)
    return done


def check(config: KubeSchedulerConfiguration, gates: FeatureGates, args_types: Mapping[str, ArgsType]) -> None:
    """Raise ConfigError with all broken rules of a configuration, if there are any."""
    if errors := validate(config, args_types=_with_legacy(config, args_types), gates=gates):
        raise ConfigError(aggregate(errors))


def use_config_map(
    done: Completed,
    data: Mapping[str, str],
    *,
    gates: FeatureGates | None = None,
    args_types: Mapping[str, ArgsType] = PLUGIN_ARGS,
) -> Completed:
    """Put the Policy of a ConfigMap's data into effect; raises ConfigError."""
    gates = gates or FeatureGates()
    assert done.policy is not None
    policy = decode_policy(policy_text(done.policy, data))
    done.warnings += use_policy(done.config, policy, args_types=args_types, gates=gates)
    done.policy = None
    check(done.config, gates, args_types)
    return done


def read(path: str, read_file: ReadFile) -> bytes:
    """A file's bytes; raises ConfigError worded as the reference words a failing open."""
    try:
        return read_file(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"open {path}: {reason}") from None


def _with_legacy(config: KubeSchedulerConfiguration, args_types: Mapping[str, ArgsType]) -> Mapping[str, ArgsType]:
    return {**args_types, **LEGACY_ARGS} if config.legacy_plugins else args_types


def _from_file(
    options: Options, read_file: ReadFile, gates: FeatureGates, args_types: Mapping[str, ArgsType]
) -> Completed:
    text = read(options.config, read_file)
    sampling = options.upstream_node_sampling
    return Completed(decode(text, args_types=args_types, gates=gates, upstream_node_sampling=sampling), [])


def _from_flags(options: Options, gates: FeatureGates, args_types: Mapping[str, ArgsType]) -> Completed:
    """The defaults with the deprecated flags on top; only flags that were given count."""
    config = KubeSchedulerConfiguration(profiles=[Profile(scheduler_name=options.scheduler_name)])
    if options.upstream_node_sampling:
        config.percentage_of_nodes_to_score = 0
    set_defaults(config, gates, args_types)
    given = options.given
    if "profiling" in given:
        config.enable_profiling = options.profiling
    if "contention-profiling" in given:
        config.enable_contention_profiling = options.contention_profiling
    connection = config.client_connection
    if "kubeconfig" in given:
        connection.kubeconfig = options.kubeconfig
    if "kube-api-content-type" in given:
        connection.content_type = options.kube_api_content_type
    if "kube-api-qps" in given:
        connection.qps = options.kube_api_qps
    if "kube-api-burst" in given:
        connection.burst = options.kube_api_burst
    return Completed(config, [])


def _apply_leader_election(config: KubeSchedulerConfiguration, options: Options) -> None:
    given, election = options.given, config.leader_election
    if "lock-object-name" in given:
        election.resource_name = options.lock_object_name
    if "lock-object-namespace" in given:
        election.resource_namespace = options.lock_object_namespace
    if "leader-elect" in given:
        election.leader_elect = options.leader_elect
    if "leader-elect-lease-duration" in given:
        election.lease_duration = options.leader_elect_lease_duration
    if "leader-elect-renew-deadline" in given:
        election.renew_deadline = options.leader_elect_renew_deadline
    if "leader-elect-retry-period" in given:
        election.retry_period = options.leader_elect_retry_period
    if "leader-elect-resource-lock" in given:
        election.resource_lock = options.leader_elect_resource_lock
    if "leader-elect-resource-name" in given:
        election.resource_name = options.leader_elect_resource_name
    if "leader-elect-resource-namespace" in given:
        election.resource_namespace = options.leader_elect_resource_namespace


def _apply_legacy(
    done: Completed, options: Options, read_file: ReadFile, gates: FeatureGates, args_types: Mapping[str, ArgsType]
) -> None:
    """The one source of the algorithm: a Policy file, a Policy ConfigMap, a provider, or today's defaults."""
    if "failure-domains" in options.given:
        done.warnings.append("--failure-domains has no effect")
    if options.use_legacy_policy_config or (options.policy_config_file and not options.policy_configmap):
        policy = decode_policy(_policy_file(options.policy_config_file, read_file))
        done.warnings += use_policy(done.config, policy, args_types=args_types, gates=gates)
    elif options.policy_configmap:
        done.policy = PolicyConfigMap(options.policy_configmap_namespace, options.policy_configmap)
    elif options.algorithm_provider:
        converted = convert_provider(options.algorithm_provider, scheduler_name=options.scheduler_name)
        weight = InterPodAffinityArgs(hard_pod_affinity_weight=options.hard_pod_affinity_symmetric_weight)
        converted.profile.plugin_config.append(PluginConfig("InterPodAffinity", weight))
        done.warnings += converted.warnings
        use_profile(done.config, converted, args_types=args_types, gates=gates)
    elif "hard-pod-affinity-symmetric-weight" in options.given:
        args = done.config.profiles[0].args_of("InterPodAffinity")
        assert isinstance(args, InterPodAffinityArgs)
        args.hard_pod_affinity_weight = options.hard_pod_affinity_symmetric_weight


def _policy_file(path: str, read_file: ReadFile) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        raise ConfigError(f"missing policy config file {path}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"couldn't read policy config: open {path}: {reason}") from None
