import contextlib
import json

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skedge.config import defaults, load
from skedge.config.args import PluginArgs
from skedge.config.durations import Duration
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.strict import Int32

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
V1 = "kubescheduler.config.k8s.io/v1"


def decode(body, **options):
    return load.decode(HEAD + body, args_types=PLUGIN_ARGS, **options)


def error(text, types=PLUGIN_ARGS):
    with pytest.raises(ConfigError) as caught:
        load.decode(text, args_types=types)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("foo: 1", 'strict decoding error: unknown field "foo"'),
        ("leaderElection: {foo: 1}", 'strict decoding error: unknown field "leaderElection.foo"'),
        ("Parallelism: 1", 'strict decoding error: unknown field "Parallelism"'),
        ("legacyPlugins: true", 'strict decoding error: unknown field "legacyPlugins"'),
        ("profiles: [{runAllFilters: true}]", 'strict decoding error: unknown field "profiles[0].runAllFilters"'),
        (
            "leaderElection:\n  leaderElect: true\n  leaderElect: false",
            'strict decoding error: yaml: unmarshal errors:\n  line 5: key "leaderElect" already set in map',
        ),
        (
            "foo: 1\nprofiles: [{plugins: {score: {enabled: [{Name: x}]}}}]",
            'strict decoding error: unknown field "foo", unknown field "profiles[0].plugins.score.enabled[0].Name"',
        ),
        (
            "parallelism: x",
            "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        (
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
            "        requestedToCapacityRatio: {shape: [{Utilization: 1}]}\n        resources: [{Name: cpu}]",
            "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: "
            "decoding args for plugin NodeResourcesFit: strict decoding error: "
            'unknown field "scoringStrategy.requestedToCapacityRatio.shape[0].Utilization", '
            'unknown field "scoringStrategy.resources[0].Name"',
        ),
        (
            "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {kind: InterPodAffinityArgs, "
            f"apiVersion: {V1}}}}}]}}]",
            "decoding .profiles[0].pluginConfig[0]: args for plugin DefaultPreemption were not of type "
            "DefaultPreemptionArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
        ),
        (
            "profiles: [{}, {pluginConfig: [{name: NodeAffinity, args: {apiVersion: foo/v1}}]}]",
            "decoding .profiles[1].pluginConfig[0]: decoding args for plugin NodeAffinity: "
            f'no kind "NodeAffinityArgs" is registered for version "foo/v1" in scheme "{V1}"',
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {required: 1}}}]}]",
            "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for "
            'plugin NodeAffinity: strict decoding error: unknown field "addedAffinity.required"',
        ),
    ],
)
def test_strictness(body, message):
    assert error(HEAD + body) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Object 'Kind' is missing in 'null'"),
        ("kind: Foo\n", "Object 'apiVersion' is missing in 'kind: Foo\n'"),
        ('{"apiVersion": "x"}', """Object 'Kind' is missing in '{"apiVersion": "x"}'"""),
        (
            f"apiVersion: {V1}\nkind: NodeAffinityArgs",
            f"couldn't decode as KubeSchedulerConfiguration, got {V1}, Kind=NodeAffinityArgs: ",
        ),
        (f"apiVersion: {V1}\nkind: Pod", f'no kind "Pod" is registered for version "{V1}" in scheme "{V1}"'),
        ("- a", "couldn't get version/kind; json parse error: the document is not an object"),
        ("kind: [x]\napiVersion: y", "couldn't get version/kind; json parse error: kind must be a string"),
        (
            f'{{"apiVersion": "{V1}", "kind": "KubeSchedulerConfiguration", "parallelism": 1, "parallelism": 2}}',
            'strict decoding error: duplicate field "parallelism"',
        ),
    ],
)  # fmt: skip
def test_documents(text, message):
    assert error(text) == message


@pytest.mark.parametrize(
    "version",
    [
        "componentconfig/v1alpha1",
        *(f"kubescheduler.config.k8s.io/{v}" for v in ("v1beta1", "v1beta2", "v1beta3", "v1alpha1", "unknown")),
    ],
)
def test_removed_versions(version):
    text = f"apiVersion: {version}\nkind: KubeSchedulerConfiguration\n"
    expected = f'no kind "KubeSchedulerConfiguration" is registered for version "{version}" in scheme "'
    assert error(text).startswith(expected)


def test_an_empty_configuration_is_the_default_one():
    assert decode("") == defaults.default_configuration()
    assert decode("profiles: []") == defaults.default_configuration()
    assert decode("profiles: [{}]") == defaults.default_configuration()
    assert load.decode(json.dumps(yaml.safe_load(HEAD)), args_types=PLUGIN_ARGS) == defaults.default_configuration()


@pytest.mark.parametrize(
    ("body", "path", "value"),
    [
        ("parallelism: 0", "parallelism", 0),
        ("parallelism: null", "parallelism", 16),
        ("podInitialBackoffSeconds: 0", "pod_initial_backoff_seconds", 0),
        ("percentageOfNodesToScore: 0", "percentage_of_nodes_to_score", 0),
        ("", "percentage_of_nodes_to_score", 100),
        ("enableProfiling: false", "enable_contention_profiling", False),
        ("enableProfiling: false\nenableContentionProfiling: true", "enable_contention_profiling", True),
        ("leaderElection: {leaseDuration: 0s}", "leader_election.lease_duration", Duration.of(15)),
        ("leaderElection: {leaseDuration: -1s}", "leader_election.lease_duration", Duration.of(-1)),
        ("leaderElection: {renewDeadline: 0s}", "leader_election.renew_deadline", Duration.of(10)),
        ("leaderElection: {retryPeriod: 0s}", "leader_election.retry_period", Duration.of(2)),
        ("leaderElection: {resourceLock: ''}", "leader_election.resource_lock", "leases"),
        ("leaderElection: {resourceName: ''}", "leader_election.resource_name", "kube-scheduler"),
        ("leaderElection: {leaderElect: false}", "leader_election.leader_elect", False),
        ("clientConnection: {qps: 0, burst: 0}", "client_connection.qps", 50.0),
        ("clientConnection: {qps: -1}", "client_connection.qps", -1.0),
        ("clientConnection: {burst: 0}", "client_connection.burst", 100),
        (
            "clientConnection: {contentType: ''}",
            "client_connection.content_type",
            "application/vnd.kubernetes.protobuf",
        ),
        ("delayCacheUntilActive: true", "delay_cache_until_active", True),
    ],
)
def test_fields_and_their_defaults(body, path, value):
    found = decode(body)
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


def test_upstream_node_sampling():
    assert decode("", upstream_node_sampling=True).percentage_of_nodes_to_score == 0
    assert decode("percentageOfNodesToScore: 30", upstream_node_sampling=True).percentage_of_nodes_to_score == 30


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ("[{}]", ["default-scheduler"]),
        ("[{schedulerName: x}]", ["x"]),
        ("[{schedulerName: ''}]", [""]),
        ("[{schedulerName: x}, {}]", ["x", ""]),
        ("[null]", ["default-scheduler"]),
    ],
)
def test_scheduler_names(profiles, expected):
    assert [profile.scheduler_name for profile in decode(f"profiles: {profiles}").profiles] == expected


class FooArgs(PluginArgs):
    size: Int32 = 1
    doubled: Int32 = 0

    def set_defaults(self, gates):
        self.doubled = self.doubled or self.size * 2


def test_plugin_config_keeps_its_order_and_gets_what_is_missing():
    body = """profiles:
- plugins: {multiPoint: {disabled: [{name: VolumeBinding}], enabled: [{name: Foo}, {name: Bar}]}}
  pluginConfig:
  - name: PodTopologySpread
    args: {}
  - name: Bar
    args: {whatever: 1}
  - name: InterPodAffinity
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 3}
"""
    profile = load.decode(HEAD + body, args_types={**PLUGIN_ARGS, "Foo": FooArgs}).profiles[0]
    assert [entry.name for entry in profile.plugin_config] == [
        "PodTopologySpread", "Bar", "InterPodAffinity", "VolumeBinding", "DefaultPreemption", "DynamicResources",
        "Foo", "NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit",
    ]  # fmt: skip
    assert profile.args_of("Foo") == FooArgs(1, 2)
    assert profile.args_of("Bar") == {"whatever": 1}
    assert profile.args_of("InterPodAffinity").hard_pod_affinity_weight == 1
    assert profile.args_of("VolumeBinding").bind_timeout_seconds == 3


def test_each_plugin_gets_its_own_arguments():
    body = """profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResources: [a.io/b]}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 7}}
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
"""
    profile = decode(body).profiles[0]
    assert profile.args_of("NodeResourcesFit").ignored_resources == ["a.io/b"]
    assert profile.args_of("InterPodAffinity").hard_pod_affinity_weight == 7
    assert list(profile.args_of("NodeAffinity").added_affinity) == ["requiredDuringSchedulingIgnoredDuringExecution"]


def test_gates_decide_defaults():
    gates = FeatureGates(
        StorageCapacityScoring=True, DRASchedulerFilterTimeout=False, GenericWorkload=True, GangScheduling=True,
        TopologyAwareWorkloadScheduling=True, NodeDeclaredFeatures=False,
    )  # fmt: skip
    profile = load.decode(HEAD, args_types=PLUGIN_ARGS, gates=gates).profiles[0]
    assert [(p.utilization, p.score) for p in profile.args_of("VolumeBinding").shape] == [(0, 10), (100, 0)]
    assert profile.args_of("DynamicResources").filter_timeout is None
    assert [plugin.name for plugin in profile.plugins.multi_point.enabled[-4:]] == [
        "DefaultBinder", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "profiles",
        "plugins",
        "pluginConfig",
        "leaderElection",
        "extenders",
        "name",
        "args",
        "multiPoint",
        "enabled",
        "clientConnection",
        "leaseDuration",
        "parallelism",
        "schedulerName",
        "managedResources",
        "addedAffinity",
    ]
)
SHAPED = st.recursive(
    JSON | st.sampled_from([*PLUGIN_ARGS, "15s", V1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(FIELDS, SHAPED, max_size=4))
def test_any_configuration_is_decoded_or_refused(fields):
    data = {"apiVersion": V1, "kind": "KubeSchedulerConfiguration", **fields}
    with contextlib.suppress(ConfigError):
        load.decode(msgspec.json.encode(data), args_types=PLUGIN_ARGS)
