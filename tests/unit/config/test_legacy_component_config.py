import pytest

from skedge import names
from skedge.config import validation
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.legacy import decode_policy
from skedge.config.legacy.apply import PolicyConfigMap, PolicyFile, use_policy
from skedge.config.legacy.component_config import VERSIONS, convert_component_config
from skedge.config.plugin_args import PLUGIN_ARGS

HEAD = f"apiVersion: {VERSIONS[0]}\nkind: KubeSchedulerConfiguration\n"


def convert(body, head=HEAD):
    return convert_component_config(head + body, args_types=PLUGIN_ARGS)


def enabled(plugins):
    return [plugin.name for plugin in plugins.enabled]


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_given(version):
    converted = convert("", f"apiVersion: {version}\nkind: KubeSchedulerConfiguration\n")
    profile = converted.config.profiles[0]
    assert profile.scheduler_name == "default-scheduler"
    assert profile.args_of("NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    assert not converted.config.enable_profiling
    assert converted.policy is None
    assert not converted.warnings


def test_fields():
    converted = convert("""schedulerName: mine
algorithmSource: {provider: ClusterAutoscalerProvider}
hardPodAffinitySymmetricWeight: 5
leaderElection: {lockObjectNamespace: ns, lockObjectName: lock, resourceLock: endpoints, leaseDuration: 20s}
clientConnection: {kubeconfig: k}
healthzBindAddress: 0.0.0.0:10251
enableProfiling: true
disablePreemption: true
percentageOfNodesToScore: 30
bindTimeoutSeconds: 9
""")
    config, profile = converted.config, converted.config.profiles[0]
    assert profile.scheduler_name == "mine"
    assert profile.args_of("NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    assert profile.args_of("InterPodAffinity").hard_pod_affinity_weight == 5
    assert profile.args_of("VolumeBinding").bind_timeout_seconds == 9
    assert names.DEFAULT_PREEMPTION not in enabled(profile.plugins.post_filter) + enabled(profile.plugins.pre_enqueue)
    election = config.leader_election
    assert (election.resource_namespace, election.resource_name, election.resource_lock) == ("ns", "lock", "leases")
    assert str(election.lease_duration) == "20s"
    assert config.client_connection.kubeconfig == "k"
    assert config.percentage_of_nodes_to_score == 30
    assert converted.warnings == [
        "healthzBindAddress has no effect: health and metrics are served on the secure port only"
    ]
    assert validation.validate(config, args_types=PLUGIN_ARGS) == []


def test_plugins_on_top_of_the_provider():
    converted = convert("""plugins:
  score: {enabled: [{name: Mine, weight: 4}], disabled: [{name: ImageLocality}]}
  postFilter: {enabled: [{name: Mine}]}
  unreserve: {enabled: [{name: Mine}]}
pluginConfig: [{name: Mine, args: {a: 1}}, {name: NodeResourcesFit, args: {ignoredResources: [a.io/b]}}]
""")
    profile = converted.config.profiles[0]
    assert "ImageLocality" not in enabled(profile.plugins.score)
    assert enabled(profile.plugins.score)[-1] == "Mine"
    assert "Mine" in enabled(profile.plugins.pre_score)
    assert "Mine" not in enabled(profile.plugins.post_filter)
    assert "Mine" in enabled(profile.plugins.reserve)
    assert profile.args_of("Mine") == {"a": 1}
    assert profile.args_of("NodeResourcesFit").ignored_resources == ["a.io/b"]
    assert profile.args_of("NodeResourcesFit").scoring_strategy.resources


@pytest.mark.parametrize(
    ("source", "policy"),
    [
        ("{file: {path: /p}}", PolicyFile("/p")),
        ("{configMap: {namespace: ns, name: m}}", PolicyConfigMap("ns", "m")),
    ],
)
def test_policy_sources(source, policy):
    converted = convert(f"algorithmSource: {{policy: {source}}}\ndisablePreemption: true\nbindTimeoutSeconds: 7")
    assert converted.policy == policy
    text = "kind: Policy\napiVersion: v1\npredicates: [{name: CheckVolumeBinding}]"
    use_policy(converted.config, decode_policy(text), args_types=PLUGIN_ARGS, gates=FeatureGates())
    profile = converted.config.profiles[0]
    assert enabled(profile.plugins.filter)[:3] == ["NodeUnschedulable", "TaintToleration", "VolumeBinding"]
    assert names.DEFAULT_PREEMPTION not in enabled(profile.plugins.post_filter)
    assert profile.args_of("VolumeBinding").bind_timeout_seconds == 7


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("algorithmSource: {}", "algorithmSource: Required value: exactly one of policy and provider must be given"),
        ("algorithmSource: {provider: a, policy: {file: {path: x}}}", "exactly one of policy and provider"),
        ("algorithmSource: {policy: {}}", "algorithmSource.policy: Required value: exactly one of file and configMap"),
        ("algorithmSource: {provider: X}", 'algorithm provider "X" is not registered'),
        (
            "algorithmSource: {policy: {file: {path: x}}}\npluginConfig: [{name: a}]",
            "cannot set a Plugin config and Policy config",
        ),
        (
            "algorithmSource: {policy: {file: {path: x}}}\nplugins: {score: {enabled: [{name: a}]}}",
            "cannot set a Plugin config and Policy config",
        ),
        ("foo: 1", 'unknown field "foo"'),
        ("schedulerName: a\nschedulerName: b", "already set in map"),
    ],
)
def test_errors(body, part):
    with pytest.raises(ConfigError) as caught:
        convert(body)
    assert part in str(caught.value)


def test_other_documents():
    with pytest.raises(ConfigError, match="expected a KubeSchedulerConfiguration of version"):
        convert("", "apiVersion: v1\nkind: Policy\n")
