import pytest

from skedge import names
from skedge.config.build_checks import expand_profiles
from skedge.config.complete import complete, use_config_map
from skedge.config.defaults import default_configuration
from skedge.config.durations import Duration
from skedge.config.encode import to_yaml
from skedge.config.fields import ConfigError
from skedge.config.options import parse_options

from .points import implements

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
POLICY = '{"kind":"Policy","apiVersion":"v1","predicates":[],"priorities":[]}'


def run(*argv, **files):
    def read(path):
        if path == "locked":
            raise PermissionError(13, "Permission denied")
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[path].encode()

    return complete(parse_options(list(argv)), read)


def test_nothing_given():
    assert run().config == default_configuration()


def test_deprecated_flags_count_when_given():
    config = run(
        "--profiling=false", "--contention-profiling=false", "--kubeconfig=k", "--kube-api-qps=5",
        "--kube-api-burst=6", "--kube-api-content-type=application/json",
    ).config  # fmt: skip
    connection = config.client_connection
    assert (config.enable_profiling, config.enable_contention_profiling) == (False, False)
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("k", 5.0, 6)
    assert connection.content_type == "application/json"


def test_deprecated_flags_are_ignored_with_a_file():
    config = run("--config=c", "--profiling=false", "--kubeconfig=k", "--kube-api-qps=5", c=HEAD).config
    assert config == default_configuration()


def test_leader_election_flags_override_one_by_one():
    file = HEAD + "leaderElection: {renewDeadline: 5s, resourceName: mine}"
    election = run("--config=c", "--leader-elect-lease-duration=2h", c=file).config.leader_election
    assert election.lease_duration == Duration.of(7200)
    assert election.renew_deadline == Duration.of(5)
    assert election.resource_name == "mine"
    everything = run(
        "--leader-elect=false", "--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=2m",
        "--leader-elect-retry-period=3s", "--leader-elect-resource-lock=l", "--leader-elect-resource-name=n",
        "--leader-elect-resource-namespace=s",
    ).config.leader_election  # fmt: skip
    assert (everything.leader_elect, str(everything.lease_duration), str(everything.renew_deadline)) == (
        False,
        "1h0m0s",
        "2m0s",
    )
    assert (str(everything.retry_period), everything.resource_lock) == ("3s", "l")
    assert (everything.resource_name, everything.resource_namespace) == ("n", "s")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--leader-elect-resource-name="], "leaderElection.resourceName: Required value"),
        (["--leader-elect-resource-namespace="], "leaderElection.resourceNamespace: Required value"),
        (
            ["--leader-elect-retry-period=0", "--leader-elect-renew-deadline=20s"],
            '[leaderElection.retryPeriod: Invalid value: "0s": must be greater than zero, '
            'leaderElection.leaseDuration: Invalid value: "20s": must be greater than `RenewDeadline`]',
        ),
        (["--config=none"], "open none: no such file or directory"),
        (["--config=locked"], "open locked: permission denied"),
        (["--config=bad"], 'strict decoding error: unknown field "x"'),
        (["--config=zero"], "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        (["--policy-config-file=none"], "missing policy config file none"),
        (["--policy-config-file=locked"], "couldn't read policy config: open locked: permission denied"),
        (["--policy-config-file=bad"], None),
        (
            ["--algorithm-provider=X"],
            'couldn\'t create scheduler using provider "X": algorithm provider "X" is not registered',
        ),
    ],
)
def test_errors(argv, message):
    with pytest.raises(ConfigError) as caught:
        run(*argv, bad=HEAD + "x: 1", zero=HEAD + "parallelism: 0")
    if message is None:
        assert str(caught.value).startswith("invalid policy: ")
    else:
        assert str(caught.value) == message


def test_upstream_node_sampling():
    assert run("--upstream-node-sampling").config.percentage_of_nodes_to_score == 0
    assert run("--upstream-node-sampling", "--config=c", c=HEAD).config.percentage_of_nodes_to_score == 0
    file = HEAD + "percentageOfNodesToScore: 40"
    assert run("--upstream-node-sampling", "--config=c", c=file).config.percentage_of_nodes_to_score == 40


def test_what_is_written_reads_back():
    done = run("--leader-elect=false", "--kubeconfig=k", "--kube-api-qps=0.5")
    assert run("--config=c", c=to_yaml(done.config)).config == done.config


def filters(done):
    registry = {*names.IN_TREE_PLUGINS, *names.LEGACY_PLUGINS}
    points = expand_profiles(done.config, lambda p, at: p in names.LEGACY_PLUGINS or implements(p, at), registry)
    return [plugin.name for plugin in next(iter(points.values()))["filter"]]


BARE = ["NodeUnschedulable", "TaintToleration", "DynamicResources", "NodeDeclaredFeatures"]


def test_policy_file():
    done = run("--policy-config-file=p", "--scheduler-name=old", p=POLICY)
    assert done.config.profiles[0].scheduler_name == "old"
    assert filters(done) == BARE
    assert not done.config.legacy_plugins


def test_policy_config_map():
    done = run("--policy-configmap=m", "--policy-config-file=p", p="unread")
    assert (done.policy.namespace, done.policy.name) == ("kube-system", "m")
    with pytest.raises(ConfigError, match=r'missing policy config map value at key "policy[.]cfg"'):
        use_config_map(done, {})
    assert filters(use_config_map(done, {"policy.cfg": POLICY})) == BARE
    assert done.policy is None


def test_the_file_can_be_forced():
    done = run("--policy-configmap=m", "--policy-config-file=p", "--use-legacy-policy-config", p=POLICY)
    assert done.policy is None
    assert filters(done) == BARE


def test_provider():
    done = run("--algorithm-provider=ClusterAutoscalerProvider", "--hard-pod-affinity-symmetric-weight=7")
    profile = done.config.profiles[0]
    assert profile.args_of("NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    assert profile.args_of("InterPodAffinity").hard_pod_affinity_weight == 7
    assert done.config.legacy_plugins
    assert len(filters(done)) == 14


def test_other_old_flags():
    done = run("--lock-object-name=n", "--lock-object-namespace=s", "--failure-domains=x", "--scheduler-name=old",
               "--hard-pod-affinity-symmetric-weight=9")  # fmt: skip
    election = done.config.leader_election
    assert (election.resource_name, election.resource_namespace) == ("n", "s")
    assert done.warnings == ["--failure-domains has no effect"]
    assert done.config.profiles[0].scheduler_name == "old"
    assert done.config.profiles[0].args_of("InterPodAffinity").hard_pod_affinity_weight == 9
