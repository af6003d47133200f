"""Configuration + registry + ports + clock -> profiles and a scheduler. The only module that joins them.

Upstream: `pkg/scheduler/scheduler.go` (New), `pkg/scheduler/profile`, `framework/runtime` (NewFramework).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from skedge import names
from skedge.cache.cache import Cache
from skedge.clock import Clock
from skedge.config import plugin_sets
from skedge.config import types as config_types
from skedge.config.fields import ConfigError, go_quote
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.framework.handle import Handle, Listers
from skedge.framework.ports import Ports
from skedge.plugins.registry import IN_TREE, Factory
from skedge.profiles.profile import Enabled, Profile, extends
from skedge.queue.hints import ProfileQueueing, hint_map
from skedge.queue.scheduling_queue import SchedulingQueue
from skedge.scheduler.dispatcher import Dispatcher
from skedge.scheduler.scheduler import Scheduler
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks


class Absent:
    """An in-tree plugin that this build lacks takes part in nothing."""

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass


def registry(out_of_tree: Mapping[str, Factory] | None = None) -> dict[str, Factory]:
    """In-tree plugins and those of the caller, by name. Raises ConfigError for a name both have."""
    merged: dict[str, Factory] = {name: IN_TREE.get(name, Absent) for name in names.IN_TREE_PLUGINS}
    for name, factory in (out_of_tree or {}).items():
        if name in merged:
            raise ConfigError(f"a plugin named {name} already exists")
        merged[name] = factory
    return merged


def build_profile(
    config: config_types.Profile, factories: Mapping[str, Factory], handle: Handle, *, percentage: int | None = None
) -> Profile:
    """The profile of one scheduler name, its plugins made. Raises ConfigError."""
    made: dict[str, Any] = {}
    seen: set[str] = set()
    for entry in config.plugin_config:
        if entry.name in seen:
            raise ConfigError(f"repeated config for plugin {entry.name}")
        seen.add(entry.name)

    def plugin(name: str) -> Any:
        if name not in made:
            args = config.args_of(name)
            if args is None and name in PLUGIN_ARGS:
                args = PLUGIN_ARGS[name].default(handle.gates)
            try:
                made[name] = factories[name](args, handle)
            except Exception as error:
                raise ConfigError(f"initializing plugin {go_quote(name)}: {error}") from error
        return made[name]

    points = plugin_sets.expand(config, lambda name, point: extends(plugin(name), point), factories)
    enabled = {
        point: [Enabled(plugin(entry.name), max(entry.weight, 1)) for entry in entries]
        for point, entries in points.items()
    }
    return Profile(config.scheduler_name, enabled, handle.table, percentage_of_nodes_to_score=percentage)


def build_profiles(
    config: config_types.KubeSchedulerConfiguration, factories: Mapping[str, Factory], handle: Handle
) -> dict[str, Profile]:
    """All profiles of a configuration, by scheduler name. Raises ConfigError."""
    profiles: dict[str, Profile] = {}
    for entry in config.profiles:
        percentage = entry.percentage_of_nodes_to_score
        if percentage is None:
            percentage = config.percentage_of_nodes_to_score
        try:
            profiles[entry.scheduler_name] = build_profile(entry, factories, handle, percentage=percentage)
        except ConfigError as error:
            raise ConfigError(f"creating profile for scheduler name {entry.scheduler_name}: {error}") from error
    return profiles


def build(
    config: config_types.KubeSchedulerConfiguration,
    *,
    ports: Ports,
    clock: Clock,
    pod_lister: Callable[[str], PodInfo | PlacedPod | None],
    gates: FeatureGates | None = None,
    out_of_tree: Mapping[str, Factory] | None = None,
    listers: Listers | None = None,
    rng: random.Random | None = None,
    hooks: SchedulerHooks | None = None,
    connections: int = 48,
    max_in_unschedulable: float = 300.0,
) -> Scheduler:
    """A scheduler, ready to be fed by its `handlers` and run. Raises ConfigError.

    `connections`: bindings under way at a time; `max_in_unschedulable`: seconds before a rejected pod is tried without
    an event.
    """
    gates = gates or FeatureGates()
    rng = rng or random.Random()
    cache = Cache()
    handle = Handle(table=cache.table, listers=listers or Listers(), gates=gates, clock=clock, rng=rng, ports=ports)
    try:
        profiles = build_profiles(config, registry(out_of_tree), handle)
    except ConfigError as error:
        raise ConfigError(f"initializing profiles: {error}") from error
    generic_workload = gates.enabled("GenericWorkload")
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
    )
    handle.nominator = queue.nominator
    return Scheduler(
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
    )
