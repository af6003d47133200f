"""Configuration + registry + ports + clock -> profiles and a scheduler. The only module that joins them.

Upstream: `pkg/scheduler/scheduler.go` (New), `pkg/scheduler/profile`, `framework/runtime` (NewFramework).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from skedge import names
from skedge.cache.cache import Cache
from skedge.cache.pod_groups import PodGroups
from skedge.clock import Clock
from skedge.config import build_checks
from skedge.config import types as config_types
from skedge.config.fields import ConfigError, go_quote
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS, NodeResourcesFitArgs
from skedge.framework.handle import Handle, Listers
from skedge.framework.node_form import lifted
from skedge.framework.ports import Extender, Inbox, Ports
from skedge.plugins.legacy.registry import LEGACY
from skedge.plugins.registry import IN_TREE, Factory
from skedge.profiles.measures import CountedMeasures
from skedge.profiles.profile import Enabled, Profile, extends
from skedge.profiles.sampling import Sampler
from skedge.queue.hints import ProfileQueueing, hint_map
from skedge.queue.scheduling_queue import SchedulingQueue
from skedge.scheduler.dispatcher import Dispatcher
from skedge.scheduler.preemption_executor import PreemptionExecutor
from skedge.scheduler.scheduler import Scheduler
from skedge.scheduler.workload_preemption import WorkloadPreemption
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks


class Absent:
    """An in-tree plugin that this build lacks takes part in nothing."""

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass


def all_plugins(out_of_tree: Mapping[str, Factory] | None = None, *, legacy: bool = False) -> dict[str, Factory]:
    """In-tree plugins and those of the caller, by name; with `legacy` also those that only a Policy can ask for.

    Raises ConfigError for a name that is given twice.
    """
    merged: dict[str, Factory] = {name: IN_TREE.get(name, Absent) for name in names.IN_TREE_PLUGINS}
    if legacy:
        merged.update(LEGACY)
    build_checks.merge_registries(merged, dict(out_of_tree or {}))
    return merged


class _Plugins:
    """The plugins of one profile, each made when it is first asked for."""

    def __init__(
        self,
        config: config_types.Profile,
        factories: Mapping[str, Factory],
        handle: Handle,
    ) -> None:
        self._config = config
        self._factories = factories
        self._handle = handle
        self._made: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self._made:
            args = self._config.args_of(name)
            if args is None and name in PLUGIN_ARGS:
                args = PLUGIN_ARGS[name].default(self._handle.gates)
            try:
                self._made[name] = lifted(self._factories[name](args, self._handle))
            except Exception as error:
                raise ConfigError(f"initializing plugin {go_quote(name)}: {error}") from error
        return self._made[name]


def _leave_to_extenders(config: config_types.KubeSchedulerConfiguration) -> None:
    """Resources that extenders look after are none of NodeResourcesFit's business, as its arguments then say."""
    resources = (each for extender in config.extenders for each in extender.managed_resources)
    ignored = [each.name for each in resources if each.ignored_by_scheduler]
    if not ignored:
        return
    for profile in config.profiles:
        fit = next((each for each in profile.plugin_config if each.name == names.NODE_RESOURCES_FIT), None)
        if fit is None:
            raise ConfigError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
        if not isinstance(fit.args, NodeResourcesFitArgs):
            kind = type(fit.args).__name__
            raise ConfigError(f"couldn't build extenders: want args to be of type NodeResourcesFitArgs, got {kind}")
        fit.args = msgspec.structs.replace(fit.args, ignored_resources=ignored)


def build_profiles(
    config: config_types.KubeSchedulerConfiguration, factories: Mapping[str, Factory], handle: Handle
) -> dict[str, Profile]:
    """All profiles of a configuration, by scheduler name. Raises ConfigError.

    What extenders look after is noted in the configuration, as whoever is shown it is to see.
    """
    _leave_to_extenders(config)
    percentages = [
        config.percentage_of_nodes_to_score
        if entry.percentage_of_nodes_to_score is None
        else entry.percentage_of_nodes_to_score
        for entry in config.profiles
    ]
    sampler = Sampler(handle.table) if min(percentages, default=100) < 100 else None
    plugins = {entry.scheduler_name: _Plugins(entry, factories, handle) for entry in config.profiles}

    def implements(name: str, point: str) -> bool:
        """Whether a plugin takes part in a point: its class tells, or, behind a factory function, an instance."""
        factory = factories[name]
        if isinstance(factory, type):
            return extends(factory, point)
        return extends(next(iter(plugins.values())).get(name), point)

    expanded = build_checks.expand_profiles(config, implements, factories, handle.gates)
    profiles: dict[str, Profile] = {}
    for entry, percentage in zip(config.profiles, percentages, strict=True):
        made = plugins[entry.scheduler_name]
        try:
            points = {
                point: [Enabled(made.get(plugin.name), max(plugin.weight, 1)) for plugin in enabled]
                for point, enabled in expanded[entry.scheduler_name].items()
            }
        except ConfigError as error:
            prefix = f"initializing profiles: creating profile for scheduler name {entry.scheduler_name}: "
            raise ConfigError(f"{prefix}{error}") from error
        profiles[entry.scheduler_name] = Profile(
            entry.scheduler_name,
            points,
            handle.table,
            percentage_of_nodes_to_score=percentage,
            sampler=sampler,
            extended=any(each.filter_verb or each.prioritize_verb for each in config.extenders),
            run_all_filters=entry.run_all_filters,
        )
    return profiles


def build(
    config: config_types.KubeSchedulerConfiguration,
    *,
    ports: Ports,
    clock: Clock,
    pod_lister: Callable[[str], PodInfo | PlacedPod | None],
    gates: FeatureGates | None = None,
    registry: Mapping[str, Factory] | None = None,
    listers: Listers | None = None,
    rng: random.Random | None = None,
    hooks: SchedulerHooks | None = None,
    connections: int = 48,
    max_in_unschedulable: float = 300.0,
    extenders: Sequence[Extender] = (),
    inbox: Inbox | None = None,
) -> Scheduler:
    """A scheduler, ready to be fed by its `handlers` and run. Raises ConfigError.

    `registry`: plugins of the caller, by name; the names of in-tree ones are taken.

    `connections`: bindings under way at a time; `max_in_unschedulable`: seconds before a rejected pod is tried without
    an event. `extenders` are those of the configuration, connected; with any, `inbox` is where whoever feeds the
    `handlers` submits his calls.
    """
    gates = gates or FeatureGates()
    rng = rng or random.Random()
    cache = Cache()
    if gates.enabled("GenericWorkload"):
        cache.groups = PodGroups(gang=gates.enabled("GangScheduling"))
    handle = Handle(
        table=cache.table,
        listers=listers or Listers(),
        gates=gates,
        clock=clock,
        rng=rng,
        ports=ports,
        pod_lister=pod_lister,
    )
    handle.hooks = hooks or handle.hooks
    profiles = build_profiles(config, all_plugins(registry, legacy=config.legacy_plugins), handle)
    if hooks is not None:
        for profile in profiles.values():
            profile.measures = CountedMeasures(profile, hooks, clock.monotonic)
    generic_workload = gates.enabled("GenericWorkload")
    if cache.groups is not None:
        handle.pod_groups = cache.groups
    queueing = {
        name: ProfileQueueing(
            profile.pre_enqueue,
            hint_map(profile.plugins, extenders=bool(config.extenders), generic_workload=generic_workload),
        )
        for name, profile in profiles.items()
    }
    wake = asyncio.Event()
    first = next(iter(profiles.values()))
    queue = SchedulingQueue(
        clock,
        first.queue_sort[0].sort_key,
        queueing,
        lister=pod_lister,
        on_ready=wake.set,
        pod_initial_backoff=config.pod_initial_backoff_seconds,
        pod_max_backoff=config.pod_max_backoff_seconds,
        max_in_unschedulable=max_in_unschedulable,
        pop_from_backoff_q=gates.enabled("SchedulerPopFromBackoffQ"),
        generic_workload=generic_workload,
        hooks=hooks,
    )
    handle.nominator = queue.nominator
    scheduler = Scheduler(
        cache=cache,
        queue=queue,
        profiles=profiles,
        ports=ports,
        clock=clock,
        rng=rng,
        pod_lister=pod_lister,
        hooks=hooks,
        dispatcher=Dispatcher(connections),
        wake=wake,
        extenders=extenders,
        inbox=inbox,
    )
    handle.preemptor = executor = PreemptionExecutor(scheduler)
    if gates.enabled("WorkloadAwarePreemption"):
        budgets = handle.listers.pod_disruption_budgets
        scheduler.workload_preemption = WorkloadPreemption(scheduler, budgets, executor)
    handle.activate = lambda pods: queue.activate(pods)
    handle.waiting_pods = scheduler.waiting
    if cache.groups is not None:
        groups = handle.listers.pod_groups
        scheduler.group_of = lambda pod: groups.get(pod.group or "", pod.namespace)
    return scheduler
