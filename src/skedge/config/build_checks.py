"""What is found out when profiles are built: plugins per point for all profiles, and arguments that plugins refuse.

Upstream: `pkg/scheduler/profile/profile.go`, `framework/runtime/framework.go`.
"""

from collections.abc import Callable, Container

from skedge import names
from skedge.config.args import PluginArgs
from skedge.config.fields import ConfigError, aggregate, go_quote
from skedge.config.gates import FeatureGates
from skedge.config.plugin_sets import expand
from skedge.config.types import PLUGIN_SETS, KubeSchedulerConfiguration, Plugin, Profile

Points = dict[str, list[Plugin]]


def expand_profiles(
    config: KubeSchedulerConfiguration,
    implements: Callable[[str, str], bool],
    registry: Container[str],
    gates: FeatureGates | None = None,
) -> dict[str, Points]:
    """The plugins per extension point of every profile, by scheduler name; raises ConfigError with the whole prefix.

    Arguments are checked too, as each plugin does when it is made: their paths have no prefix here.
    """
    gates = gates or FeatureGates()
    found: dict[str, Points] = {}
    queue_sort: tuple[str, object] | None = None
    for profile in config.profiles:
        name = profile.scheduler_name
        try:
            _check_args(profile, registry, gates)
            points = expand(profile, implements, registry)
        except ConfigError as error:
            text = f"initializing profiles: creating profile for scheduler name {name}: {error}"
            raise ConfigError(text) from None
        sorter = points[names.QUEUE_SORT][0].name
        mine = sorter, profile.args_of(sorter)
        if name in found:
            raise ConfigError(f"initializing profiles: duplicate profile with scheduler name {go_quote(name)}")
        if queue_sort is not None and mine != queue_sort:
            raise ConfigError(f"initializing profiles: different queue sort plugins for profile {go_quote(name)}")
        queue_sort = mine
        found[name] = points
    if not found:
        raise ConfigError("initializing profiles: at least one profile is required")
    return found


def merge_registries(in_tree: dict[str, Callable[..., object]], more: dict[str, Callable[..., object]]) -> None:
    """Add out-of-tree plugins to a registry (name -> factory); raises ConfigError for a name that is taken."""
    for name, factory in more.items():
        if name in in_tree:
            raise ConfigError(f"a plugin named {name} already exists")
        in_tree[name] = factory


def _check_args(profile: Profile, registry: Container[str], gates: FeatureGates) -> None:
    seen: set[str] = set()
    for entry in profile.plugin_config:
        if entry.name in seen:
            raise ConfigError(f"repeated config for plugin {entry.name}")
        seen.add(entry.name)
    # A plugin that is in no set is never made, and its arguments are not looked at.
    enabled = {plugin.name for point in PLUGIN_SETS for plugin in profile.plugins.at(point).enabled}
    for entry in profile.plugin_config:
        if entry.name not in enabled or entry.name not in registry or not isinstance(entry.args, PluginArgs):
            continue
        if errors := entry.args.validate("", gates):
            raise ConfigError(f"initializing plugin {go_quote(entry.name)}: {aggregate(errors)}")
