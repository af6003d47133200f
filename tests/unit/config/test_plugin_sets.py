import pytest

from skedge import names
from skedge.config import defaults, load, plugin_sets
from skedge.config.build_checks import expand_profiles, merge_registries
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import Plugin, PluginConfig, Plugins, PluginSet, Profile

from .points import POINTS, implements

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
REGISTRY = {*names.IN_TREE_PLUGINS, "Foo"}


def plugin_set(enabled="", disabled=""):
    """`A B=2` → plugins with weights."""
    parts = [word.partition("=") for word in enabled.split()]
    return PluginSet([Plugin(name, int(weight or 0)) for name, _, weight in parts], list(map(Plugin, disabled.split())))


def words(plugins):
    return " ".join(f"{p.name}={p.weight}" if p.weight else p.name for p in plugins)


@pytest.mark.parametrize(
    ("enabled", "disabled", "expected"),
    [
        ("", "", "A=1 B C=3"),
        ("X", "", "A=1 B C=3 X"),
        ("A", "A", "B C=3 A"),
        ("X Y", "*", "X Y"),
        ("A=2", "", "A=2 B C=3"),
        ("A=1 A=2", "", "A=2 B C=3 A=1"),
        ("X C=7 Y B=1", "", "A=1 B=1 C=7 X Y"),
        ("", "A B C", ""),
        ("", "Unknown", "A=1 B C=3"),
        ("A=9", "* A", "A=9"),
    ],
)
def test_merge(enabled, disabled, expected):
    custom = plugin_set(enabled, disabled)
    merged = plugin_sets.merge_set(plugin_set("A=1 B C=3", "D"), custom)
    assert words(merged.enabled) == expected
    assert words(merged.disabled) == f"{disabled} D".strip()
    assert plugin_sets.merge_set(PluginSet(), custom) == custom


def test_what_is_overridden_is_logged(caplog):
    caplog.set_level("INFO", "skedge.config")
    expand("{multiPoint: {enabled: [{name: NodeName}]}, score: {enabled: [{name: ImageLocality}]}}")
    assert [(record.msg, record.values) for record in caplog.records] == [
        ("Default plugin is explicitly re-configured; overriding", {"plugin": "NodeName"}),
        ("MultiPoint plugin is explicitly re-configured; overriding", {"plugin": "ImageLocality"}),
    ]


def test_overridden_defaults_are_named():
    custom = Plugins(multi_point=plugin_set("B X", "A"))
    assert plugin_sets.overridden(Plugins(multi_point=plugin_set("A B")), custom) == ["B"]


DEFAULT_ORDER = {
    **{point: [] for point in names.EXTENSION_POINTS},
    "preEnqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
    "queueSort": ["PrioritySort"],
    "preFilter": POINTS["preFilter"].split(),
    "filter": POINTS["filter"].split(),
    "postFilter": POINTS["postFilter"].split(),
    "preScore": POINTS["preScore"].split(),
    "score": [
        "TaintToleration=3",
        "NodeAffinity=2",
        "NodeResourcesFit=1",
        "VolumeBinding=1",
        "PodTopologySpread=2",
        "InterPodAffinity=2",
        "DynamicResources=2",
        "NodeResourcesBalancedAllocation=1",
        "ImageLocality=1",
    ],
    "reserve": ["VolumeBinding", "DynamicResources"],
    "preBind": ["VolumeBinding", "DynamicResources"],
    "bind": ["DefaultBinder"],
    "placementScore": ["NodeResourcesFit=1"],
}


def test_default_profile():
    points = plugin_sets.expand(defaults.default_configuration().profiles[0], implements, REGISTRY)
    assert {point: words(plugins).split() for point, plugins in points.items()} == DEFAULT_ORDER


def test_gated_points():
    gates = FeatureGates(GenericWorkload=True, GangScheduling=True, TopologyAwareWorkloadScheduling=True)
    points = plugin_sets.expand(defaults.default_configuration(gates).profiles[0], implements, REGISTRY)
    assert words(points["permit"]) == "GangScheduling"
    assert words(points["placementGenerate"]) == "TopologyPlacementGenerator"
    assert words(points["placementScore"]) == "NodeResourcesFit=1 PodGroupPodsCount=1"


def expand(plugins):
    config = load.decode(HEAD + f"profiles: [{{plugins: {plugins}}}]", args_types=PLUGIN_ARGS)
    return expand_profiles(config, implements, REGISTRY)["default-scheduler"]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        (
            "{score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}}",
            {"score": "NodeResourcesFit=5", "filter": POINTS["filter"], "preScore": POINTS["preScore"]},
        ),
        (
            "{filter: {enabled: [{name: NodeResourcesFit}]}}",
            {"filter": "NodeResourcesFit " + POINTS["filter"].replace("NodeResourcesFit ", "")},
        ),
        ("{filter: {enabled: [{name: Foo}]}}", {"filter": POINTS["filter"] + " Foo"}),
        (
            "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}",
            {"filter": "", "score": "", "bind": "DefaultBinder", "queueSort": "PrioritySort"},
        ),
        (
            "{multiPoint: {disabled: [{name: DefaultPreemption}]}}",
            {"postFilter": "DynamicResources", "preEnqueue": "SchedulingGates DynamicResources"},
        ),
        (
            "{postFilter: {disabled: [{name: DefaultPreemption}]}}",
            {"postFilter": "DynamicResources", "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption"},
        ),
        (
            "{preFilter: {disabled: [{name: PodTopologySpread}]}}",
            {"preFilter": POINTS["preFilter"].replace("PodTopologySpread ", ""), "filter": POINTS["filter"]},
        ),
        (
            "{multiPoint: {enabled: [{name: TaintToleration}]}}",
            {"score": " ".join(DEFAULT_ORDER["score"]).replace("TaintToleration=3", "TaintToleration=1")},
        ),
        (
            "{score: {enabled: [{name: PodTopologySpread, weight: 5}, {name: NodeResourcesFit, weight: 1}]}}",
            {
                "score": "PodTopologySpread=5 NodeResourcesFit=1 TaintToleration=3 NodeAffinity=2 VolumeBinding=1 "
                "InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=1"
            },
        ),
        (
            "{queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: Foo}]}}",
            {"queueSort": "Foo"},
        ),
        (
            "{filter: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}}",
            {"filter": POINTS["filter"].replace("NodeName ", "") + " NodeName"},
        ),
    ],
)
def test_expansion(plugins, expected):
    points = expand(plugins)
    assert {point: words(points[point]) for point in expected} == expected


PREFIX = "initializing profiles: creating profile for scheduler name default-scheduler: "


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ("{score: {enabled: [{name: X}]}}", 'ScorePlugin "X" does not exist'),
        ("{multiPoint: {enabled: [{name: X}]}}", 'PreFilterPlugin "X" does not exist'),
        ("{score: {enabled: [{name: NodeLabel}]}}", 'ScorePlugin "NodeLabel" does not exist'),
        ("{score: {enabled: [{name: NodeName}]}}", 'plugin "NodeName" does not extend ScorePlugin plugin'),
        (
            "{preEnqueue: {enabled: [{name: PrioritySort}]}}",
            'plugin "PrioritySort" does not extend PreEnqueuePlugin plugin',
        ),
        (
            "{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            "{multiPoint: {enabled: [{name: NodeName, weight: 1}, {name: NodeName, weight: 2}]}}",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            "{queueSort: {enabled: [{name: Foo}]}}",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2',
        ),
        (
            "{queueSort: {disabled: [{name: '*'}]}}",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            "{bind: {disabled: [{name: '*'}]}}",
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            "{score: {enabled: [{name: NodeAffinity, weight: 2147483647}]}}",
            None,
        ),
    ],
)
def test_expansion_errors(plugins, message):
    if message is None:
        assert expand(plugins)
        return
    with pytest.raises(ConfigError) as caught:
        expand(plugins)
    assert str(caught.value) == PREFIX + message


def test_weights_that_overflow():
    profile = defaults.default_configuration().profiles[0]
    profile.plugins.score = PluginSet([Plugin("NodeAffinity", (1 << 63) // 100)])
    with pytest.raises(ConfigError, match=r"^score plugins: total score of Score plugins could overflow$"):
        plugin_sets.expand(profile, implements, REGISTRY)


def test_two_placement_generators():
    profile = defaults.default_configuration().profiles[0]
    profile.plugins.placement_generate = PluginSet([Plugin("A"), Plugin("B")])
    with pytest.raises(ConfigError, match="at most one placement generate plugin is allowed for profile"):
        plugin_sets.expand(
            profile, lambda plugin, point: plugin in "AB" or implements(plugin, point), REGISTRY | {"A", "B"}
        )


def test_arguments_are_refused_where_plugins_are_made():
    """NodeResourcesFit's mistakes pass validation and show here, without a prefix to the path."""
    text = HEAD + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: X}}}]}]"
    config = load.decode(text, args_types=PLUGIN_ARGS)
    with pytest.raises(ConfigError) as caught:
        expand_profiles(config, implements, REGISTRY)
    assert str(caught.value).startswith(f'{PREFIX}initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupp')
    off = "multiPoint: {disabled: [{name: NodeResourcesFit}]}"
    config = load.decode(text.replace("{pluginConfig", f"{{plugins: {{{off}}}, pluginConfig"), args_types=PLUGIN_ARGS)
    assert expand_profiles(config, implements, REGISTRY)


def test_across_profiles():
    config = defaults.default_configuration()
    config.profiles.append(config.profiles[0])
    with pytest.raises(ConfigError, match='duplicate profile with scheduler name "default-scheduler"'):
        expand_profiles(config, implements, REGISTRY)

    other = defaults.default_configuration().profiles[0]
    other.scheduler_name = "b"
    other.plugins.queue_sort = plugin_set("Foo", "PrioritySort")
    config.profiles[1] = other
    with pytest.raises(ConfigError, match='different queue sort plugins for profile "b"'):
        expand_profiles(config, implements, REGISTRY)

    other.plugin_config.append(PluginConfig("VolumeBinding"))
    with pytest.raises(ConfigError, match="name b: repeated config for plugin VolumeBinding"):
        expand_profiles(config, implements, REGISTRY)

    config.profiles = []
    with pytest.raises(ConfigError, match="at least one profile is required"):
        expand_profiles(config, implements, REGISTRY)


def test_registry_names_are_unique():
    registry = {"A": dict}
    merge_registries(registry, {"B": list})
    assert set(registry) == {"A", "B"}
    with pytest.raises(ConfigError, match=r"^a plugin named A already exists$"):
        merge_registries(registry, {"A": list})


def test_every_point_has_a_set():
    plugins = Profile().plugins
    assert all(plugins.at(point) == PluginSet() for point in (*names.EXTENSION_POINTS, names.MULTI_POINT))
