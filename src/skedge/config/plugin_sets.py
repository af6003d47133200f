"""From the plugin sets a user wrote to the plugins that run at each point.

Merging lays a user's sets over the defaults (upstream `apis/config/v1/default_plugins.go`); expansion spreads
`multiPoint` over the extension points (upstream `framework/runtime/framework.go`).
"""

import logging
from collections.abc import Callable, Container

from skedge import names
from skedge.config.fields import ConfigError, go_quote
from skedge.config.types import PLUGIN_SETS, Plugin, Plugins, PluginSet, Profile

# The keys and values of a line travel as `values`; the formatters of `telemetry` write them.
_log = logging.getLogger(__name__)

MAX_NODE_SCORE = 100
_MAX_INT64 = (1 << 63) - 1

# The reference looks at the points in this order, which decides which of several errors is reported.
_POINT_ORDER = (
    names.PRE_FILTER,
    names.FILTER,
    names.POST_FILTER,
    names.RESERVE,
    names.PRE_SCORE,
    names.SCORE,
    names.PRE_BIND,
    names.BIND,
    names.POST_BIND,
    names.PERMIT,
    names.PRE_ENQUEUE,
    names.QUEUE_SORT,
    names.PLACEMENT_GENERATE,
    names.PLACEMENT_SCORE,
)


def merge(default: Plugins, custom: Plugins) -> Plugins:
    """Lay a user's sets over the default ones, set by set; the arguments are left as they are."""
    result = Plugins()
    for name in PLUGIN_SETS:
        result.put(name, merge_set(default.at(name), custom.at(name)))
    return result


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One set: a default plugin that is enabled again keeps its place with the new weight, new ones are appended."""
    replacements = {plugin.name: index for index, plugin in enumerate(custom.enabled)}  # the last one counts
    used: set[int] = set()
    enabled: list[Plugin] = []
    if not custom.disables("*"):
        for plugin in default.enabled:
            if custom.disables(plugin.name):
                continue
            index = replacements.get(plugin.name)
            if index is not None:
                used.add(index)
                plugin = custom.enabled[index]
            enabled.append(plugin)
    enabled += [plugin for index, plugin in enumerate(custom.enabled) if index not in used]
    return PluginSet(enabled=enabled, disabled=[*custom.disabled, *default.disabled])


def overridden(default: Plugins, custom: Plugins) -> list[str]:
    """The default plugins that a user's sets configure anew, for the log."""
    found: list[str] = []
    for name in PLUGIN_SETS:
        wanted, given = default.at(name), custom.at(name)
        enabled = {plugin.name for plugin in given.enabled}
        if not given.disables("*"):
            found += [p.name for p in wanted.enabled if p.name in enabled and not given.disables(p.name)]
    return found


def expand(
    profile: Profile, implements: Callable[[str, str], bool], registry: Container[str]
) -> dict[str, list[Plugin]]:
    """The plugins of each extension point in running order, with weights where a point scores (elsewhere 0).

    `implements(plugin, point)` is asked only about plugins in `registry`. Raises ConfigError with the reference's text,
    without the prefix that names the profile.
    """
    plugins = profile.plugins
    points = {point: _expand_point(point, plugins, implements, registry) for point in _POINT_ORDER}
    of_profile = f"for profile with scheduler name {go_quote(profile.scheduler_name)}"
    if (count := len(points[names.QUEUE_SORT])) != 1:
        raise ConfigError(f"only one queue sort plugin required {of_profile}, but got {count}")
    if not points[names.BIND]:
        raise ConfigError(f"at least one bind plugin is needed {of_profile}")
    if len(points[names.PLACEMENT_GENERATE]) > 1:
        raise ConfigError(f"at most one placement generate plugin is allowed {of_profile}")
    for point, prefix in ((names.SCORE, "score plugins: "), (names.PLACEMENT_SCORE, "placement score plugins: ")):
        weights = _weights(plugins.at(point), plugins.multi_point, prefix)
        points[point] = [Plugin(plugin.name, weights[plugin.name]) for plugin in points[point]]
    return {point: points[point] for point in names.EXTENSION_POINTS}


def type_name(point: str) -> str:
    """The reference's name of the plugin type of a point: `preFilter` → `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _expand_point(
    point: str, plugins: Plugins, implements: Callable[[str, str], bool], registry: Container[str]
) -> list[Plugin]:
    kind = type_name(point)
    specific = plugins.at(point)
    own: set[str] = set()
    for plugin in specific.enabled:
        if plugin.name not in registry:
            raise ConfigError(f'{kind} "{plugin.name}" does not exist')
        if not implements(plugin.name, point):
            raise ConfigError(f'plugin "{plugin.name}" does not extend {kind} plugin')
        _add(own, plugin.name, kind)

    overrides: set[str] = set()
    from_multi_point: set[str] = set()
    if not specific.disables("*"):
        for plugin in plugins.multi_point.enabled:
            if plugin.name not in registry:
                raise ConfigError(f'{kind} "{plugin.name}" does not exist')
            if not implements(plugin.name, point) or specific.disables(plugin.name):
                continue
            if plugin.name in own:
                overrides.add(plugin.name)
                text = "MultiPoint plugin is explicitly re-configured; overriding"
                _log.info(text, extra={"values": {"plugin": plugin.name}, "v": 0})
            else:
                _add(from_multi_point, plugin.name, kind)

    order = [plugin.name for plugin in specific.enabled if plugin.name in overrides]
    order += [plugin.name for plugin in plugins.multi_point.enabled if plugin.name in from_multi_point]
    order += [plugin.name for plugin in specific.enabled if plugin.name not in overrides]
    return [Plugin(name) for name in order]


def _add(seen: set[str], name: str, kind: str) -> None:
    if name in seen:
        raise ConfigError(f'plugin "{name}" already registered as "{kind}"')
    seen.add(name)


def _weights(specific: PluginSet, multi_point: PluginSet, prefix: str) -> dict[str, int]:
    """Weight by plugin: the point's own entry before that of multiPoint, 0 standing for 1."""
    weights: dict[str, int] = {}
    for plugin in (*specific.enabled, *multi_point.enabled):
        if plugin.name not in weights:
            weights[plugin.name] = plugin.weight or 1
    if sum(weights.values()) * MAX_NODE_SCORE > _MAX_INT64:
        raise ConfigError(f"{prefix}total score of Score plugins could overflow")
    return weights
