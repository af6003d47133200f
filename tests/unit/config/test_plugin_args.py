import pytest

from skedge import names
from skedge.config import plugin_args as pa
from skedge.config.durations import Duration
from skedge.config.gates import FeatureGates
from skedge.config.strict import decode_struct

FIELDS = [
    (pa.DefaultPreemptionArgs, {"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 100}),
    (pa.DynamicResourcesArgs, {"filter_timeout": Duration.of(10), "binding_timeout": Duration.of(600)}),
    (pa.InterPodAffinityArgs, {"hard_pod_affinity_weight": 1, "ignore_preferred_terms_of_existing_pods": False}),
    (pa.NodeAffinityArgs, {"added_affinity": None}),
    (pa.NodeResourcesBalancedAllocationArgs, {"resources": [pa.ResourceSpec("cpu", 1), pa.ResourceSpec("memory", 1)]}),
    (pa.PodTopologySpreadArgs, {"defaulting_type": "System", "default_constraints": []}),
    (pa.VolumeBindingArgs, {"bind_timeout_seconds": 600, "shape": []}),
]


@pytest.mark.parametrize(("kind", "fields"), FIELDS, ids=lambda value: getattr(value, "__name__", ""))
def test_defaults(kind, fields):
    args = kind.default()
    assert {name: getattr(args, name) for name in args.__struct_fields__} == fields
    assert args.validate("", FeatureGates()) == []


def test_defaults_of_node_resources_fit():
    strategy = pa.NodeResourcesFitArgs.default().scoring_strategy
    cpu_and_memory = [pa.ResourceSpec("cpu", 1), pa.ResourceSpec("memory", 1)]
    assert strategy == pa.ScoringStrategy("LeastAllocated", cpu_and_memory)


def test_the_table_is_complete():
    assert set(pa.PLUGIN_ARGS) <= set(names.IN_TREE_PLUGINS)
    assert all(kind.__name__ == f"{name}Args" for name, kind in pa.PLUGIN_ARGS.items())


def errors(kind, data, path="", **gates):
    known = FeatureGates(**gates)
    args = decode_struct(data, kind)
    args.set_defaults(known)
    return [str(error) for error in args.validate(path, known)]


RTCR = "RequestedToCapacityRatio"


def shape(*points):
    return [{"utilization": u, "score": s} for u, s in points]


def ratio(*points):
    return {"scoringStrategy": {"type": RTCR, "requestedToCapacityRatio": {"shape": shape(*points)}}}


def constraint(key="zone", skew=1, action="DoNotSchedule", **more):
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, **more}


@pytest.mark.parametrize(
    ("plugin", "data", "expected"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": -1}, [
            "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"]),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, [
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"]),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, [
            "minCandidateNodesPercentage: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesPercentage",
        ]),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0}, []),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, [
            "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"]),
        ("PodTopologySpread", {"defaultingType": "x"}, [
            'defaultingType: Unsupported value: "x": supported values: "System", "List"']),
        ("PodTopologySpread", {"defaultConstraints": [constraint()]}, [
            'defaultingType: Invalid value: "System": when .defaultConstraints are not empty']),
        ("PodTopologySpread", {"defaultingType": "List"}, []),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint(skew=0)]}, [
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"]),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint(key="", action="")]}, [
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"]),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint(action="Nope")]}, [
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Nope": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"']),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint(labelSelector={})]}, [
            "defaultConstraints[0].labelSelector: Forbidden: "
            "constraint must not define a selector, as they deduced for each pod"]),
        ("PodTopologySpread", {"defaultingType": "List",
                               "defaultConstraints": [constraint("node"), constraint("node", 2)]}, [
            'defaultConstraints[1]: Duplicate value: "{node, DoNotSchedule}"']),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu", "weight": 1}]}, [
            'resources[1].name: Duplicate value: "cpu"']),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]}, [
            "resources[0].weight: Invalid value: 2: must be 1"]),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, []),
        ("VolumeBinding", {"bindTimeoutSeconds": -10}, [
            "bindTimeoutSeconds: Invalid value: -10: invalid BindTimeoutSeconds, should not be a negative value"]),
        ("VolumeBinding", {"shape": shape((0, 1))}, [
            'shape: Invalid value: [{"Utilization":0,"Score":1}]: unexpected field `shape`, remove it or turn on the '
            "feature gate StorageCapacityScoring"]),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a/b"]}, [
            'ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can\'t contain \'/\'']),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "x"}}, [
            'scoringStrategy.type: Unsupported value: "x": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"']),
        ("NodeResourcesFit", {"scoringStrategy": {}}, [
            'scoringStrategy.type: Unsupported value: "": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"']),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "LeastAllocated", "resources": [
            {"name": "a", "weight": 0}, {"name": "b", "weight": 101}, {"name": "c", "weight": -1}]}}, [
            "scoringStrategy.resources[1].weight: Invalid value: 101: resource weight of b not in valid range (0, 100]",
            "scoringStrategy.resources[2].weight: Invalid value: -1: "
            "resource weight of c not in valid range (0, 100]"]),
        ("NodeResourcesFit", {"scoringStrategy": {"type": RTCR}}, [
            "scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"]),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {}}}, [
            "scoringStrategy.requestedToCapacityRatio: Forbidden: "
            "must be nil when type is not RequestedToCapacityRatio"]),
        ("NodeResourcesFit", ratio(), [
            "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"]),
        ("NodeResourcesFit", ratio((10, 3), (10, 3)), [
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 10: "
            "values must be sorted in increasing order"]),
        ("NodeResourcesFit", ratio((0, 11), (101, 0)), [
            "scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 101: "
            "not in valid range [0, 100]"]),
        ("NodeResourcesFit", ratio((0, 0), (100, 10)), []),
        ("DynamicResources", {"filterTimeout": "0s"}, []),
        ("DynamicResources", {"filterTimeout": "-1s"}, [
            'filterTimeout: Invalid value: "-1s": must be zero or positive']),
        ("DynamicResources", {"bindingTimeout": "500ms"}, [
            'bindingTimeout: Invalid value: "500ms": must be at least 1 second']),
    ],
)  # fmt: skip
def test_rules(plugin, data, expected):
    kind = pa.PLUGIN_ARGS[plugin]
    assert errors(kind, data) == expected
    assert errors(kind, data, "profiles[0].pluginConfig[2].args") == [
        f"profiles[0].pluginConfig[2].args.{error}" for error in expected
    ]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("example.com/", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("Example.com/a", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a valid label key must consist of"),
        ("a b", "name part must consist of"),
    ],
)
def test_names_of_ignored_resources(name, part):
    found = errors(pa.NodeResourcesFitArgs, {"ignoredResources": ["ok", name]})
    assert any(part in error for error in found)
    assert all(error.startswith("ignoredResources[1]: Invalid value: ") for error in found)


def test_storage_capacity_scoring():
    points = shape((-1, 1), (10, -1), (20, 11), (101, 1))
    assert [
        error.split(":")[0] for error in errors(pa.VolumeBindingArgs, {"shape": points}, StorageCapacityScoring=True)
    ] == ["shape[0].utilization", "shape[1].score", "shape[2].score", "shape[3].utilization"]
    assert errors(pa.VolumeBindingArgs, {}, StorageCapacityScoring=True) == []


def test_dynamic_resources_without_their_gates():
    off = {"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False}
    assert errors(pa.DynamicResourcesArgs, {}, **off) == []
    assert errors(pa.DynamicResourcesArgs, {"filterTimeout": "1s", "bindingTimeout": "1s"}, **off) == [
        "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
        "bindingTimeout: Forbidden: "
        "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
    ]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key="a", operator="In", values=("b",), where="matchExpressions"):
    return {where: [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("bad", "where", "start"),
    [
        (term("a b"), "matchExpressions[0].key", 'Invalid value: "a b": name part'),
        (term(operator="Foo"), "matchExpressions[0].operator", 'Unsupported value: "Foo"'),
        (term(values=()), "matchExpressions[0].values", "Invalid value: null: for 'in', 'notin' operators"),
        (term(operator="Exists"), "matchExpressions[0].values", 'Invalid value: ["b"]: values set must be empty'),
        (term(operator="Gt", values=("1", "2")), "matchExpressions[0].values", 'Invalid value: ["1","2"]: for \'Gt\''),
        (term(operator="Lt"), "matchExpressions[0].values[0]", "Invalid value: \"b\": for 'Gt', 'Lt' operators, the"),
        (term(values=("a b",)), "matchExpressions[0].values[0]", 'Invalid value: "a b": a valid label must'),
        (
            term("metadata.name", values=("a", "b"), where="matchFields"),
            "matchFields[0].values",
            'Invalid value: ["a","b"]: must have one element',
        ),
        (term("metadata.name", "Exists", (), "matchFields"), "matchFields[0].operator", "Unsupported value"),
    ],
)
def test_added_affinity(bad, where, start):
    (found,) = errors(pa.NodeAffinityArgs, {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [term(), bad]}}})
    assert found.startswith(f"addedAffinity.{REQUIRED}.nodeSelectorTerms[1].{where}: {start}")
    preferred = [{"weight": 1, "preference": bad}, {"weight": 0, "preference": bad}]
    (found,) = errors(pa.NodeAffinityArgs, {"addedAffinity": {PREFERRED: preferred}})
    assert found.startswith(f"addedAffinity.{PREFERRED}[0].{where}: {start}")
    assert errors(pa.NodeAffinityArgs, {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [term()]}}}) == []
