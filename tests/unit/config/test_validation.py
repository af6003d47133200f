import pytest

from skedge.config import defaults, load
from skedge.config.fields import aggregate
from skedge.config.plugin_args import PLUGIN_ARGS, InterPodAffinityArgs
from skedge.config.types import PluginConfig
from skedge.config.validation import validate

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
REMOVED = (
    'was invalid in version "kubescheduler.config.k8s.io/v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)


def errors(body):
    config = load.decode(HEAD + body, args_types=PLUGIN_ARGS)
    return [str(error) for error in validate(config, args_types=PLUGIN_ARGS)]


def two(first="", second=""):
    return f"profiles:\n- {{schedulerName: a, {first}}}\n- {{schedulerName: b, {second}}}\n"


def args(plugin, text):
    return f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {{{text}}}}}]}}]"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", []),
        ("clientConnection: {burst: -1}", ["clientConnection.burst: Invalid value: -1: must be non-negative"]),
        (
            "leaderElection: {leaseDuration: -1s, renewDeadline: -2s, retryPeriod: -3s}",
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-3s": must be greater than zero',
            ],
        ),
        (
            "leaderElection: {leaseDuration: 5s}",
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
        ),
        (
            "leaderElection: {resourceLock: configmap}",
            ['leaderElection.resourceLock: Invalid value: "configmap": resourceLock value must be "leases"'],
        ),
        ("leaderElection: {leaderElect: false, resourceLock: configmap, leaseDuration: -1s}", []),
        ("parallelism: 0", ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
        ("percentageOfNodesToScore: 101", ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
        ("percentageOfNodesToScore: -1", ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"]),
        (
            two(second="percentageOfNodesToScore: 101"),
            ["profiles[1].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
        ),
        ("profiles: [{schedulerName: a}, {}]", ["profiles[1].schedulerName: Required value"]),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            ["profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName"],
        ),
        (
            "profiles: [{plugins: {score: {enabled: "
            "[{name: AzureDiskLimits}, {name: CinderLimits}, {name: EBSLimits}, {name: GCEPDLimits}]}}}]",
            [
                f'profiles[0].plugins.score.enabled[{i}]: Invalid value: "{name}": {REMOVED}'
                for i, name in enumerate(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))
            ],
        ),
        ("profiles: [{plugins: {multiPoint: {enabled: [{name: EBSLimits}]}}}]", []),
        (
            "profiles: [{pluginConfig: [{name: DefaultPreemption}, {name: DefaultPreemption}]}]",
            ['profiles[0].pluginConfig[1]: Duplicate value: "DefaultPreemption"'],
        ),
        (
            "profiles: [{pluginConfig: [{name: CinderLimits}]}]",
            [f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {REMOVED}'],
        ),
        (
            args("DefaultPreemption", "minCandidateNodesPercentage: 110"),
            [
                "profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 110: "
                "not in valid range [0, 100]"
            ],
        ),
        (args("NodeResourcesFit", "scoringStrategy: {type: Nonsense}"), []),
        (
            two(second="plugins: {queueSort: {enabled: [{name: CustomSort}]}}"),
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"CustomSort","Weight":0}],'
                '"Disabled":null}: must be the same for all profiles'
            ],
        ),
        (
            two(first="plugins: {queueSort: {enabled: [{name: CustomSort}]}}"),
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":null}: '
                "must be the same for all profiles"
            ],
        ),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]",
            [
                "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
            ],
        ),
        (
            two(
                *(
                    "plugins: {queueSort: {enabled: [{name: S}]}}, " f"pluginConfig: [{{name: S, args: {{a: {n}}}}}]"
                    for n in (1, 2)
                )
            ),
            [
                'profiles[1].pluginConfig.args: Invalid value: {"a":2}: queueSort must be the same for all profiles',
            ],
        ),
        (
            "podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1",
            [
                "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
                "podMaxBackoffSeconds: Invalid value: -1: "
                "must be greater than or equal to PodInitialBackoffSeconds",
            ],
        ),
        (
            "extenders: [{prioritizeVerb: p, weight: -1}, {prioritizeVerb: p}, {}]",
            [
                "extenders[0].weight: Invalid value: -1: must have a positive weight applied to it",
                "extenders[1].weight: Invalid value: 0: must have a positive weight applied to it",
            ],
        ),
        (
            "extenders: [{managedResources: [{name: example.com/foo}, {name: example.com/foo}]}]",
            [
                'extenders[0].managedResources[1].name: Invalid value: "example.com/foo": '
                "duplicate extender managed resource name"
            ],
        ),
        (
            "extenders: [{managedResources: [{name: cpu}, {name: kubernetes.io/x}, {name: requests.a.io/x}]}]",
            [
                f'extenders[0].managedResources[{i}].name: Invalid value: "{name}": '
                "is an invalid extended resource name"
                for i, name in enumerate(("cpu", "kubernetes.io/x", "requests.a.io/x"))
            ],
        ),
        (
            "extenders: [{bindVerb: a}, {bindVerb: b}]",
            [
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ],
        ),
        ("enableProfiling: false\nenableContentionProfiling: true", []),
        ("profiles: [{plugins: {score: {enabled: [{name: NoSuchPlugin, weight: -3}]}}}]", []),
    ],
)  # fmt: skip
def test_rules(body, expected):
    assert errors(body) == expected


def test_a_name_that_is_not_qualified():
    (found,) = errors("extenders: [{managedResources: [{name: 'a b'}]}]")
    assert found.startswith('extenders[0].managedResources[0].name: Invalid value: "a b": name part must consist of')


def test_order_and_rendering_of_several():
    found = errors(
        "parallelism: 0\nclientConnection: {burst: -1}\nextenders: [{prioritizeVerb: x}]\nprofiles: [{}, {}]"
    )
    assert [error.split(":")[0] for error in found] == [
        "clientConnection.burst",
        "parallelism",
        "profiles[0].schedulerName",
        "profiles[1].schedulerName",
        "profiles[1].schedulerName",
        "extenders[0].weight",
    ]
    assert aggregate(["a", "b", "a"]) == "[a, b]"
    assert aggregate(["a", "a"]) == "a"


def test_rules_that_only_a_program_can_break():
    config = defaults.default_configuration()
    config.leader_election.resource_name = config.leader_election.resource_namespace = ""
    config.leader_election.resource_lock = ""
    assert [str(error) for error in validate(config, args_types=PLUGIN_ARGS)] == [
        "leaderElection.resourceLock: Required value",
        "leaderElection.resourceNamespace: Required value",
        "leaderElection.resourceName: Required value",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ]
    config = defaults.default_configuration()
    config.profiles[0].plugin_config = [PluginConfig("DefaultPreemption", InterPodAffinityArgs())]
    (found,) = validate(config, args_types=PLUGIN_ARGS)
    assert str(found).startswith("profiles[0].pluginConfig[0].args: Invalid value: {")
    assert str(found).endswith(": has to match plugin args")
    config.profiles = []
    assert [str(error) for error in validate(config, args_types=PLUGIN_ARGS)] == ["profiles: Required value"]
