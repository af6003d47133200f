"""The start-up flow of old releases, walked step by step: what its command line, registry and sources come to today.

A row a test, by the number of its step; the scheduler's command runs as a process, without an API server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from legacy_clusters import feasible, fill, policy_cluster, scores, service
from plane import running
from skedge import KUBERNETES_VERSION, names
from skedge.app.policy import use_policy
from skedge.assembly import all_plugins
from skedge.client.clientconfig import ClientConfig
from skedge.config.complete import Completed, complete
from skedge.config.defaults import default_configuration
from skedge.config.encode import to_data, to_yaml
from skedge.config.fields import ConfigError
from skedge.config.flags import SECTIONS
from skedge.config.gates import FeatureGates
from skedge.config.legacy.component_config import convert_component_config
from skedge.config.legacy.registry import PREDICATES, PRIORITIES
from skedge.config.options import parse_options
from skedge.config.options_validation import validate
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration, Plugin
from skedge.profiles.profile import Profile
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import make_node, make_pod

INFRASTRUCTURE = ["DynamicResources", "NodeDeclaredFeatures"]


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def skedge(folder: Path, *arguments: str) -> Ran:
    """Runs `skedge scheduler` with a kubeconfig of a server that is not there."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    command = [sys.executable, "-m", "skedge", "scheduler", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50, check=False)
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def completed(folder: Path, *arguments: str) -> Completed:
    return complete(parse_options(arguments), lambda path: (folder / path).read_bytes())


def profile_of(config: KubeSchedulerConfiguration) -> Profile:
    return next(iter(Cluster(config).profiles.values()))


def policy_profile(body: str) -> Profile:
    return next(iter(policy_cluster(body).profiles.values()))


def plugin_names(plugins: Any) -> list[str]:
    return [plugin.name for plugin in plugins]


# --- step 1: the registry of algorithms -------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a7_every_predicate_is_a_filter_that_runs(predicate: str) -> None:
    profile = policy_profile(f"predicates: [{{name: {predicate}}}]\npriorities: []")
    assert set(PREDICATES[predicate].plugins) <= set(plugin_names(profile.filter))


def test_a7_unknown_predicate() -> None:
    with pytest.raises(ConfigError, match='Predicate type not found for "Nonsense"'):
        policy_cluster("predicates: [{name: Nonsense}]")


def test_a8_the_mandatory_pair_is_always_there() -> None:
    profile = policy_profile("predicates: []\npriorities: []")
    assert plugin_names(profile.filter) == ["NodeUnschedulable", "TaintToleration", *INFRASTRUCTURE]
    assert plugin_names(profile.pre_filter) == INFRASTRUCTURE
    assert profile.score == ()


@pytest.mark.parametrize("priority", PRIORITIES)
def test_a9_every_priority_is_a_score_that_runs(priority: str) -> None:
    known = PRIORITIES[priority]
    weight = known.weight or 1
    profile = policy_profile(f"predicates: []\npriorities: [{{name: {priority}, weight: {weight}}}]")
    scorers = {enabled.plugin.name: enabled.weight for enabled in profile.score}
    resource = ("LeastRequestedPriority", "MostRequestedPriority", "RequestedToCapacityRatioPriority")
    plugin = names.NODE_RESOURCES_FIT if priority in resource else known.plugin
    assert scorers == ({plugin: weight} if plugin else {})


def test_a9_unknown_priority() -> None:
    with pytest.raises(ConfigError, match='Priority type not found for "Nonsense"'):
        policy_cluster("priorities: [{name: Nonsense, weight: 1}]")


@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_a10_both_providers_run(provider: str, tmp_path: Path) -> None:
    done = completed(tmp_path, f"--algorithm-provider={provider}")
    profile = profile_of(done.config)
    assert {enabled.plugin.name: enabled.weight for enabled in profile.score} == {
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
    }
    assert plugin_names(profile.post_filter) == ["DynamicResources", "DefaultPreemption"]


def test_a10_unknown_provider(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "--algorithm-provider=x", "--kubeconfig=kubeconfig")
    assert ran.status == 1
    assert r"algorithm provider \"x\" is not registered" in ran.err


def test_a11_the_providers_differ_in_the_resource_strategy_only(tmp_path: Path) -> None:
    least, most = (
        to_data(completed(tmp_path, f"--algorithm-provider={name}").config)
        for name in ("DefaultProvider", "ClusterAutoscalerProvider")
    )
    assert least != most
    text = json.dumps(most)
    assert json.loads(text.replace('"MostAllocated"', '"LeastAllocated"')) == least


def test_a12_plugins_of_the_caller_are_registered_unless_the_name_is_taken() -> None:
    def factory(args: Any, handle: Any) -> Any:
        return object()

    assert all_plugins({"Mine": factory})["Mine"] is factory
    for name, legacy in (("NodeName", False), ("NodeLabel", True)):
        with pytest.raises(ConfigError, match=f"^a plugin named {name} already exists$"):
            all_plugins({name: factory}, legacy=legacy)
    assert all_plugins({"NodeLabel": factory})["NodeLabel"] is factory


def test_a12_legacy_plugins_have_no_name_in_a_v1_file() -> None:
    config = default_configuration()
    config.profiles[0].plugins.score.enabled.append(Plugin(names.NODE_LABEL, 1))
    with pytest.raises(ConfigError, match='ScorePlugin "NodeLabel" does not exist'):
        Cluster(config)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("predicates: [{name: a b}]", r"Predicate type not found for \"a b\""),
        ("predicates: [{name: x, argument: {}}]", "Exactly 1 predicate argument is required, numArgs: 0, Predicate: x"),
    ],
)
def test_a13_a_bad_custom_entry_ends_the_start(body: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"kind: Policy\napiVersion: v1\n{body}\n")
    ran = skedge(tmp_path, "--policy-config-file=policy.yaml", "--kubeconfig=kubeconfig")
    assert ran.status == 1
    assert message in ran.err.replace('\\\\"', '\\"')


# --- step 2: the command line -----------------------------------------------------------------------------------------


def test_a14_defaults_can_be_dumped(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "--kubeconfig=kubeconfig", "--write-config-to=out.yaml")
    assert ran.status == 0, ran.err
    found = yaml.safe_load((tmp_path / "out.yaml").read_text())
    wanted = default_configuration()
    wanted.client_connection.kubeconfig = "kubeconfig"
    assert found == yaml.safe_load(to_yaml(wanted))


def test_a15_all_problems_are_told_at_once(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "--kubeconfig=kubeconfig", "--secure-port=70000", "--use-legacy-policy-config")
    assert ran.status == 1
    assert "--secure-port 70000 must be between 0 and 65535" in ran.err
    assert "policyConfigFile: Required value: required when --use-legacy-policy-config is true" in ran.err


def test_a16_a_minimal_file_is_filled_up(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: kubeconfig}\n"
    )
    done = completed(tmp_path, "--config=c.yaml")
    wanted = default_configuration()
    wanted.client_connection.kubeconfig = "kubeconfig"
    assert to_data(done.config) == to_data(wanted)


def test_a17_arguments_are_refused(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "foo")
    assert ran.status == 1
    assert ran.err.endswith('Error: "kube-scheduler" does not take any arguments, got ["foo"]\n')


def test_a18_version_and_flags(tmp_path: Path) -> None:
    assert KUBERNETES_VERSION in skedge(tmp_path, "--version").out
    ran = skedge(tmp_path, "-v=1", "--kubeconfig=absent")
    assert ran.status == 1
    assert '] FLAG: --secure-port="10259"\n' in ran.err


def test_a19_help_has_named_sections(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "--help")
    headers = [line.removesuffix(" flags:") for line in ran.out.splitlines() if line.endswith(" flags:")]
    assert (ran.status, headers) == (0, list(SECTIONS))
    assert len(headers) == 10


def test_a20_yaml_and_json_are_read_alike(tmp_path: Path) -> None:
    data = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podMaxBackoffSeconds": 20,
    }
    (tmp_path / "c.json").write_text(json.dumps(data))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(data))
    of_json, of_yaml = (completed(tmp_path, f"--config=c.{suffix}").config for suffix in ("json", "yaml"))
    assert to_data(of_json) == to_data(of_yaml)
    assert of_json.pod_max_backoff_seconds == 20


# --- step 3: the scheduler object -------------------------------------------------------------------------------------

POLICY = """
kind: Policy
apiVersion: v1
predicates:
- {name: PodFitsResources}
- {name: ZoneTogether, argument: {serviceAffinity: {labels: [zone]}}}
priorities:
- {name: LeastRequestedPriority, weight: 1}
- {name: LikeSSD, weight: 2, argument: {labelPreference: {label: ssd, presence: true}}}
"""


def test_a22_one_source(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    problems = validate(parse_options(["--policy-config-file=policy.yaml", "--config=c.yaml"]))
    assert list(problems) == ["--policy-config-file and --config are mutually exclusive"]
    both = completed(tmp_path, "--policy-config-file=policy.yaml", "--algorithm-provider=DefaultProvider")
    assert plugin_names(profile_of(both.config).filter)[:3] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "TaintToleration",
    ]
    assert to_data(completed(tmp_path).config) == to_data(default_configuration())


def test_a22_a_source_of_both_kinds_or_none_is_refused() -> None:
    for source in ("{}", "{provider: DefaultProvider, policy: {file: {path: x}}}"):
        text = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1alpha1\n"
        with pytest.raises(ConfigError, match="exactly one of policy and provider must be given"):
            convert_component_config(f"{text}algorithmSource: {source}\n", args_types=PLUGIN_ARGS)


def test_a23_a_policy_file_decides_what_runs(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    _places_by_policy(completed(tmp_path, "--policy-config-file=policy.yaml").config)


@pytest.mark.asyncio
async def test_a24_a_policy_of_a_config_map_decides_what_runs(tmp_path: Path) -> None:
    done = completed(tmp_path, "--policy-configmap=scheduler-policy", "--policy-configmap-namespace=default")
    async with running() as client:
        body = {"metadata": {"name": "scheduler-policy"}, "data": {"policy.cfg": POLICY}}
        await client.ok("POST", "/api/v1/namespaces/default/configmaps", body)
        await use_policy(done, ClientConfig(client.plane.url), FeatureGates(), user_agent="test")
    assert done.policy is None
    _places_by_policy(done.config)


def _places_by_policy(config: KubeSchedulerConfiguration) -> None:
    cluster = Cluster(config)
    fill(cluster, [make_node("a").label(zone="z"), make_node("b").label(zone="z", ssd="x"), make_node("c")])
    pod = make_pod("p").label(app="x").req(cpu="1")
    fill(cluster, [], [make_pod("o").label(app="x").node("a")], Service=[service("s", app="x")])
    assert feasible(cluster, pod) == ["a", "b"]
    assert scores(cluster, pod, names.NODE_LABEL) == {"a": 0, "b": 200}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, 'couldn\'t get policy config map default/p: configmaps "p" not found'),
        ({}, 'missing policy config map value at key "policy.cfg"'),
        ({"policy.cfg": "kind: Policy"}, "invalid policy: Object 'apiVersion' is missing"),
    ],
)
async def test_a24_config_maps_that_can_not_be_used(data: Any, message: str, tmp_path: Path) -> None:
    done = completed(tmp_path, "--policy-configmap=p", "--policy-configmap-namespace=default")
    async with running() as client:
        if data is not None:
            await client.ok("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "p"}, "data": data})
        with pytest.raises(ConfigError) as raised:
            await use_policy(done, ClientConfig(client.plane.url), FeatureGates(), user_agent="test")
    assert str(raised.value).startswith(message)


def test_a24_nobody_to_ask(tmp_path: Path) -> None:
    ran = skedge(tmp_path, "--policy-configmap=p", "--kubeconfig=kubeconfig")
    assert ran.status == 1
    assert "couldn't get policy config map kube-system/p: " in ran.err


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("schedulerName: mine", lambda config, profile: profile.name == "mine"),
        (
            "hardPodAffinitySymmetricWeight: 9",
            lambda config, profile: config.profiles[0].args_of("InterPodAffinity").hard_pod_affinity_weight == 9,
        ),
        (
            "disablePreemption: true",
            lambda config, profile: plugin_names(profile.post_filter) == ["DynamicResources"],
        ),
        ("percentageOfNodesToScore: 40", lambda config, profile: profile.percentage_of_nodes_to_score == 40),
        (
            "bindTimeoutSeconds: 30",
            lambda config, profile: config.profiles[0].args_of("VolumeBinding").bind_timeout_seconds == 30,
        ),
    ],
)
def test_a27_options_of_old_releases(line: str, check: Any) -> None:
    text = f"kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1alpha1\n{line}\n"
    config = convert_component_config(text, args_types=PLUGIN_ARGS).config
    assert check(config, profile_of(config))
