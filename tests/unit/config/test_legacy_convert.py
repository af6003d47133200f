import pytest

from skedge import names
from skedge.config import defaults, encode, load
from skedge.config.fields import ConfigError, aggregate
from skedge.config.gates import FeatureGates
from skedge.config.legacy import PREDICATES, PRIORITIES, PROVIDERS, convert_policy, convert_provider, decode_policy
from skedge.config.legacy.apply import use_policy
from skedge.config.legacy.args import (
    LEGACY_ARGS,
    NodeLabelArgs,
    RequestedToCapacityRatioArgs,
    ServiceAffinityArgs,
)
from skedge.config.legacy.registry import legacy_names
from skedge.config.plugin_args import PLUGIN_ARGS, ResourceSpec, ShapePoint

HEAD = "kind: Policy\napiVersion: v1\n"


def convert(body, **options):
    return convert_policy(decode_policy(HEAD + body), infrastructure=False, **options)


def words(plugins):
    return " ".join(f"{p.name}={p.weight}" if p.weight else p.name for p in plugins.enabled)


def sets(converted):
    plugins = converted.profile.plugins
    return [words(one) for one in (plugins.pre_filter, plugins.filter, plugins.pre_score, plugins.score)]


def named(*names_, weight=None):
    extra = f", weight: {weight}" if weight else ""
    return "[" + ", ".join(f"{{name: {name}{extra}}}" for name in names_) + "]"


@pytest.mark.parametrize("predicate", PREDICATES)
def test_each_predicate(predicate):
    filters = words(convert(f"predicates: {named(predicate)}\npriorities: []").profile.plugins.filter).split()
    assert filters[:1] == ["NodeUnschedulable"]
    assert set(filters) == {"NodeUnschedulable", "TaintToleration", *PREDICATES[predicate].plugins}


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation=3"),
        ("EqualPriority", ""),
        ("EvenPodsSpreadPriority", "PodTopologySpread=3"),
        ("ImageLocalityPriority", "ImageLocality=3"),
        ("InterPodAffinityPriority", "InterPodAffinity=3"),
        ("LeastRequestedPriority", "NodeResourcesFit=3"),
        ("MostRequestedPriority", "NodeResourcesFit=3"),
        ("NodeAffinityPriority", "NodeAffinity=3"),
        ("NodePreferAvoidPodsPriority", "NodePreferAvoidPods=3"),
        ("RequestedToCapacityRatioPriority", "NodeResourcesFit=3"),
        ("SelectorSpreadPriority", "PodTopologySpread=3"),
        ("ServiceSpreadingPriority", "PodTopologySpread=3"),
        ("TaintTolerationPriority", "TaintToleration=3"),
    ],
)
def test_each_priority(priority, expected):
    assert priority in PRIORITIES
    assert words(convert(f"predicates: []\npriorities: {named(priority, weight=3)}").profile.plugins.score) == expected


def test_every_priority_is_tested():
    marks = test_each_priority.pytestmark[0].args[1]
    assert {row[0] for row in marks} == set(PRIORITIES)


def test_default_sets():
    pre_filter, filters, pre_score, score = sets(convert(""))
    assert filters == (
        "NodeUnschedulable NodeResourcesFit NodeName NodePorts NodeAffinity VolumeRestrictions TaintToleration "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity"
    )
    assert pre_filter == (
        "NodeResourcesFit NodePorts NodeAffinity VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread InterPodAffinity"
    )
    assert score == (
        "NodeResourcesBalancedAllocation=1 PodTopologySpread=2 ImageLocality=1 InterPodAffinity=1 NodeResourcesFit=1 "
        "NodeAffinity=1 NodePreferAvoidPods=10000 TaintToleration=1"
    )
    assert pre_score == (
        "NodeResourcesBalancedAllocation PodTopologySpread InterPodAffinity NodeResourcesFit NodeAffinity "
        "TaintToleration"
    )


def service(name, *labels):
    return f"{{name: {name}, argument: {{serviceAffinity: {{labels: [{', '.join(labels)}]}}}}}}"


def anti(name, label, weight):
    return f"{{name: {name}, weight: {weight}, argument: {{serviceAntiAffinity: {{label: {label}}}}}}}"


def prefer(name, label, weight):
    return f"{{name: {name}, weight: {weight}, argument: {{labelPreference: {{label: {label}, presence: true}}}}}}"


PRESENT = "{name: TestLabelsPresence, argument: {labelsPresence: {labels: [foo], presence: true}}}"
V1_0 = ["{name: MatchNodeSelector}", "{name: PodFitsResources}", "{name: PodFitsPorts}", "{name: NoDiskConflict}",
        service("TestServiceAffinity", "region"), PRESENT]  # fmt: skip
V1_1 = [*V1_0, "{name: HostName}", "{name: PodFitsHostPorts}"]
V1_2 = [*V1_1, *(f"{{name: {n}}}" for n in ("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount",
                                             "MaxAzureDiskVolumeCount"))]  # fmt: skip
V1_3 = [*V1_2, "{name: PodToleratesNodeTaints}", "{name: MatchInterPodAffinity}"]
V1_16 = [*V1_3, "{name: CheckVolumeBinding}", "{name: MaxCSIVolumeCountPred}", "{name: MaxCinderVolumeCount}"]


def twos(*names_):
    return [f"{{name: {name}, weight: 2}}" for name in names_]


S1_2 = [*twos("EqualPriority", "NodeAffinityPriority", "ImageLocalityPriority", "LeastRequestedPriority",
              "BalancedResourceAllocation", "SelectorSpreadPriority"),
        anti("a", "zone", 3), prefer("b", "bar", 4)]  # fmt: skip
RATIO = (
    "{name: RTCR, weight: 2, argument: {requestedToCapacityRatioArguments: {"
    "shape: [{utilization: 0, score: 0}, {utilization: 50, score: 7}], "
    "resources: [{name: intel.com/foo, weight: 3}, {name: intel.com/bar, weight: 5}]}}}"
)
S1_16 = twos("EqualPriority", "ImageLocalityPriority", "LeastRequestedPriority", "BalancedResourceAllocation",
             "SelectorSpreadPriority", "NodePreferAvoidPodsPriority", "NodeAffinityPriority", "TaintTolerationPriority",
             "InterPodAffinityPriority", "MostRequestedPriority")  # fmt: skip


@pytest.mark.parametrize(
    ("predicates", "priorities", "expected"),
    [
        (["{name: GeneralPredicates}"], [], [
            "NodeResourcesFit NodePorts NodeAffinity",
            "NodeUnschedulable NodeResourcesFit NodeName NodePorts NodeAffinity TaintToleration", "", ""]),
        ([], [], ["", "NodeUnschedulable TaintToleration", "", ""]),
        (V1_0, [*twos("ServiceSpreadingPriority"), "{name: LeastRequestedPriority, weight: 1}", anti("a", "zone", 3),
                prefer("b", "bar", 4)], [
            "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity",
            "NodeUnschedulable NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration NodeLabel "
            "ServiceAffinity", "NodeResourcesFit PodTopologySpread",
            "NodeResourcesFit=1 NodeLabel=4 PodTopologySpread=2 ServiceAffinity=3"]),
        (V1_1, [*twos("EqualPriority", "LeastRequestedPriority", "BalancedResourceAllocation",
                      "SelectorSpreadPriority"),
                anti("a", "zone", 3), anti("a2", "row", 3), prefer("b", "bar", 4), prefer("b2", "baz", 4)], [
            "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity",
            "NodeUnschedulable NodeName NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration "
            "NodeLabel ServiceAffinity", "NodeResourcesBalancedAllocation NodeResourcesFit PodTopologySpread",
            "NodeResourcesBalancedAllocation=2 NodeResourcesFit=2 NodeLabel=8 PodTopologySpread=2 ServiceAffinity=6"]),
        (V1_2, S1_2, [
            "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity NodeVolumeLimits VolumeZone",
            "NodeUnschedulable NodeName NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration "
            "NodeLabel ServiceAffinity NodeVolumeLimits VolumeZone",
            "NodeResourcesBalancedAllocation NodeResourcesFit NodeAffinity PodTopologySpread",
            "NodeResourcesBalancedAllocation=2 ImageLocality=2 NodeResourcesFit=2 NodeAffinity=2 NodeLabel=4 "
            "PodTopologySpread=2 ServiceAffinity=3"]),
        (V1_3, [*S1_2, *twos("TaintTolerationPriority", "InterPodAffinityPriority")], [
            "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity NodeVolumeLimits VolumeZone "
            "InterPodAffinity",
            "NodeUnschedulable NodeName NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration "
            "NodeLabel ServiceAffinity NodeVolumeLimits VolumeZone InterPodAffinity",
            "NodeResourcesBalancedAllocation InterPodAffinity NodeResourcesFit NodeAffinity PodTopologySpread "
            "TaintToleration",
            "NodeResourcesBalancedAllocation=2 ImageLocality=2 InterPodAffinity=2 NodeResourcesFit=2 NodeAffinity=2 "
            "NodeLabel=4 PodTopologySpread=2 ServiceAffinity=3 TaintToleration=2"]),
        (V1_16, [*S1_16, RATIO], [
            "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity NodeVolumeLimits VolumeBinding "
            "VolumeZone InterPodAffinity",
            "NodeUnschedulable NodeName NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration "
            "NodeLabel ServiceAffinity NodeVolumeLimits VolumeBinding VolumeZone InterPodAffinity",
            "NodeResourcesBalancedAllocation InterPodAffinity NodeAffinity PodTopologySpread TaintToleration",
            "NodeResourcesBalancedAllocation=2 ImageLocality=2 InterPodAffinity=2 NodeResourcesLeastAllocated=2 "
            "NodeResourcesMostAllocated=2 NodeAffinity=2 NodePreferAvoidPods=2 RequestedToCapacityRatio=2 "
            "PodTopologySpread=2 TaintToleration=2"]),
    ],
    ids=["general", "empty", "1.0", "1.1", "1.2", "1.3", "1.16"],
)  # fmt: skip
def test_fixtures_of_old_releases(predicates, priorities, expected):
    converted = convert(f"predicates: [{', '.join(predicates)}]\npriorities: [{', '.join(priorities)}]")
    assert sets(converted) == expected
    plugins = converted.profile.plugins
    assert words(plugins.multi_point) == "SchedulingGates PrioritySort DefaultBinder"
    assert plugins.multi_point.disables("*")
    assert words(plugins.post_filter) == words(plugins.pre_enqueue) == "DefaultPreemption"
    volumes = "VolumeBinding" if "CheckVolumeBinding" in str(predicates) else ""
    assert words(plugins.reserve) == words(plugins.pre_bind) == volumes


def test_arguments_of_the_last_fixture():
    converted = convert(f"predicates: [{', '.join(V1_16)}]\npriorities: [{RATIO}, {twos('MostRequestedPriority')[0]}]")
    profile = converted.profile
    assert profile.args_of("NodeLabel") == NodeLabelArgs(present_labels=["foo"])
    assert profile.args_of("ServiceAffinity") == ServiceAffinityArgs(affinity_labels=["region"])
    assert profile.args_of("RequestedToCapacityRatio") == RequestedToCapacityRatioArgs(
        [ShapePoint(0, 0), ShapePoint(50, 7)], [ResourceSpec("intel.com/foo", 3), ResourceSpec("intel.com/bar", 5)]
    )
    assert converted.legacy_plugins == [
        "NodeLabel", "ServiceAffinity", "NodeResourcesMostAllocated", "RequestedToCapacityRatio",
    ]  # fmt: skip


def test_worked_conversion():
    converted = convert(
        "predicates: [{name: PodFitsPorts}, {name: PodFitsResources}, {name: NoDiskConflict}, "
        "{name: MatchNodeSelector}, "
        f"{service('ZoneTogether', 'zone')}]\n"
        "priorities: [{name: MostRequestedPriority, weight: 2}, {name: EqualPriority, weight: 1}, "
        f"{anti('SpreadRack', 'rack', 3)}, {anti('SpreadRow', 'row', 3)}]\n"
        "hardPodAffinitySymmetricWeight: 10"
    )
    assert sets(converted) == [
        "NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions ServiceAffinity",
        "NodeUnschedulable NodePorts NodeAffinity NodeResourcesFit VolumeRestrictions TaintToleration ServiceAffinity",
        "NodeResourcesFit",
        "NodeResourcesFit=2 ServiceAffinity=6",
    ]
    assert converted.profile.args_of("NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    assert converted.profile.args_of("ServiceAffinity") == ServiceAffinityArgs(["zone"], ["rack", "row"])
    assert converted.profile.args_of("InterPodAffinity") is None
    assert converted.warnings == ["hardPodAffinitySymmetricWeight 10 has no effect without InterPodAffinityPriority"]


@pytest.mark.parametrize(
    ("body", "plugin", "field", "value"),
    [
        ("priorities: [{name: SelectorSpreadPriority, weight: 1}]", "PodTopologySpread", "defaulting_type", "System"),
        ("priorities: [{name: EvenPodsSpreadPriority, weight: 1}]", "PodTopologySpread", "defaulting_type", "List"),
        ("", "PodTopologySpread", "defaulting_type", "System"),
        ("hardPodAffinitySymmetricWeight: 7", "InterPodAffinity", "hard_pod_affinity_weight", 7),
        (
            "priorities: []\n"
            "extenders: [{managedResources: [{name: a.io/b, ignoredByScheduler: true}, {name: a.io/c}]}]",
            "NodeResourcesFit",
            "ignored_resources",
            ["a.io/b"],
        ),
    ],
)
def test_arguments(body, plugin, field, value):
    assert getattr(convert(body).profile.args_of(plugin), field) == value


def test_no_arguments_where_none_are_needed():
    converted = convert("predicates: [{name: EvenPodsSpread}]\npriorities: []")
    assert converted.profile.plugin_config == []


def test_capacity_ratio_becomes_a_strategy():
    fixed = convert("priorities: [{name: RequestedToCapacityRatioPriority, weight: 3}]").profile.args_of(
        "NodeResourcesFit"
    )
    assert fixed.scoring_strategy.requested_to_capacity_ratio.shape == [ShapePoint(0, 10), ShapePoint(100, 0)]
    assert fixed.scoring_strategy.resources == [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]
    given = convert(f"priorities: [{RATIO}]").profile.args_of("NodeResourcesFit").scoring_strategy
    assert given.type == "RequestedToCapacityRatio"
    assert [resource.name for resource in given.resources] == ["intel.com/foo", "intel.com/bar"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("predicates: [{name: Foo}]", 'Invalid configuration: Predicate type not found for "Foo"'),
        (
            "predicates: [{name: PodToleratesNodeNoExecuteTaints}]",
            'Invalid configuration: Predicate type not found for "PodToleratesNodeNoExecuteTaints"',
        ),
        ("priorities: [{name: Foo, weight: 1}]", 'Invalid configuration: Priority type not found for "Foo"'),
        (
            "priorities: [{name: NodeLabel, weight: 1}]",
            'Invalid configuration: Priority type not found for "NodeLabel"',
        ),
    ],
)
def test_unknown_names(body, message):
    with pytest.raises(ConfigError) as caught:
        convert(body)
    assert str(caught.value) == message
    config = defaults.default_configuration()
    with pytest.raises(ConfigError, match=r"^couldn't create scheduler from policy: Invalid configuration: "):
        use_policy(config, decode_policy(HEAD + body), args_types=PLUGIN_ARGS, gates=FeatureGates())


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("[]", "shape: Required value: at least one point must be specified"),
        (
            "[{utilization: 10, score: 0}, {utilization: 5, score: 1}]",
            "shape[1].utilization: Invalid value: 5: "
            "utilization values must be sorted. Utilization[0]==10 >= Utilization[1]==5",
        ),
    ],
)
def test_the_shape_of_a_capacity_ratio_is_checked_in_the_words_of_its_time(shape, message):
    argument = f"{{requestedToCapacityRatioArguments: {{shape: {shape}}}}}"
    with pytest.raises(ConfigError) as caught:
        convert(f"priorities: [{{name: a, weight: 1, argument: {argument}}}]")
    assert str(caught.value) == message


def test_retired_names_are_read():
    converted = convert(
        "predicates: [{name: CheckNodeCondition}]\npriorities: [{name: ResourceLimitsPriority, weight: 1}]"
    )
    assert sets(converted) == ["", "NodeUnschedulable TaintToleration", "", ""]
    assert len(converted.warnings) == 2


def test_an_argument_on_a_built_in_name_is_ignored():
    body = f"predicates: [{service('HostName', 'x')}, {{name: CheckNodeLabelPresence}}]\npriorities: []"
    converted = convert(body)
    assert words(converted.profile.plugins.filter) == "NodeUnschedulable NodeName TaintToleration NodeLabel"
    assert converted.profile.args_of("NodeLabel") == NodeLabelArgs()


def test_always_check_all_predicates():
    converted = convert("alwaysCheckAllPredicates: true")
    assert converted.profile.run_all_filters
    assert len(converted.warnings) == 1


def test_infrastructure():
    plugins = convert_policy(decode_policy(HEAD + "predicates: []\npriorities: []")).profile.plugins
    assert words(plugins.filter) == "NodeUnschedulable TaintToleration DynamicResources NodeDeclaredFeatures"
    assert words(plugins.pre_filter) == "DynamicResources NodeDeclaredFeatures"
    assert words(plugins.post_filter) == words(plugins.pre_enqueue) == "DynamicResources DefaultPreemption"
    assert words(plugins.reserve) == words(plugins.pre_bind) == "DynamicResources"
    assert words(plugins.score) == ""


def test_default_provider():
    assert PROVIDERS == ("ClusterAutoscalerProvider", "DefaultProvider")
    converted = convert_provider("DefaultProvider", infrastructure=False)
    pre_filter, filters, pre_score, score = sets(converted)
    assert pre_filter == (
        "NodeResourcesFit NodePorts PodTopologySpread InterPodAffinity VolumeBinding NodeAffinity VolumeRestrictions "
        "NodeVolumeLimits VolumeZone"
    )
    assert filters == (
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity"
    )
    assert pre_score.split()[:3] == ["InterPodAffinity", "PodTopologySpread", "TaintToleration"]
    assert set(pre_score.split()[3:]) == {"NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    assert score == (
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 NodeResourcesFit=1 NodeAffinity=1 "
        "NodePreferAvoidPods=10000 PodTopologySpread=2 TaintToleration=1"
    )
    assert words(converted.profile.plugins.reserve) == words(converted.profile.plugins.pre_bind) == "VolumeBinding"


def test_the_autoscaler_provider_differs_in_the_strategy_only():
    default, autoscaler = (convert_provider(name).profile for name in ("DefaultProvider", "ClusterAutoscalerProvider"))
    assert default.args_of("NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    autoscaler.args_of("NodeResourcesFit").scoring_strategy.type = "LeastAllocated"
    assert default == autoscaler


def test_a_converted_policy_is_a_v1_configuration():
    config = defaults.default_configuration()
    policy = decode_policy(
        HEAD + "predicates: [{name: GeneralPredicates}]\npriorities: [{name: LeastRequestedPriority, weight: 5}]"
    )
    assert use_policy(config, policy, args_types=PLUGIN_ARGS, gates=FeatureGates()) == []
    again = load.decode(encode.to_yaml(config), args_types=PLUGIN_ARGS)
    assert again == config
    assert not config.legacy_plugins


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (RequestedToCapacityRatioArgs(), "shape: Required value: at least one point must be specified"),
        (
            RequestedToCapacityRatioArgs([ShapePoint(5, 1), ShapePoint(5, 2)]),
            "shape[1].utilization: Invalid value: 5: "
            "utilization values must be sorted. Utilization[0]==5 >= Utilization[1]==5",
        ),
        (
            RequestedToCapacityRatioArgs([ShapePoint(-1, 11)]),
            "[shape[0].utilization: Invalid value: -1: not in valid range [0, 100], "
            "shape[0].score: Invalid value: 11: not in valid range [0, 10]]",
        ),
        (ServiceAffinityArgs(), None),
    ],
)
def test_rules_of_legacy_arguments(args, message):
    errors = args.validate("", FeatureGates())
    assert (aggregate(errors) if errors else None) == message


def test_legacy_names():
    assert set(LEGACY_ARGS) <= set(names.LEGACY_PLUGINS)
    assert legacy_names("NodePorts") == ["GeneralPredicates", "PodFitsHostPorts", "PodFitsPorts"]
    assert "LeastRequestedPriority" in legacy_names("NodeResourcesFit")
