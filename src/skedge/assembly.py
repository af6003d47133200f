"""Configuration + registry + ports + clock -> profiles and a scheduler. The only module that joins them.

Upstream: `pkg/scheduler/scheduler.go` (New), `pkg/scheduler/profile`, `framework/runtime` (NewFramework).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skedge import names
from skedge.config import plugin_sets
from skedge.config import types as config_types
from skedge.config.fields import ConfigError, go_quote
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.framework.handle import Handle
from skedge.plugins.registry import IN_TREE, Factory
from skedge.profiles.profile import Enabled, Profile, extends


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
    points = plugin_sets.expand(config, lambda name, point: extends(factories[name], point), factories)
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
