"""Reported bugs about the configuration. Named after their ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bugs.placing import HOST, ZONE, app, no_flush, placed
from skedge.cli.main import main
from skedge.config import load
from skedge.config.defaults import default_configuration
from skedge.config.fields import ConfigError
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration
from skedge.simulate.cluster import Cluster
from skedge.simulate.explain import explain
from skedge.testing.builders import make_node, make_pod

KIND = "kind: KubeSchedulerConfiguration\n"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\n" + KIND


def decode(text: str) -> KubeSchedulerConfiguration:
    return load.decode(HEAD + text, args_types=PLUGIN_ARGS)


def refusal(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says of a configuration that it refuses, which it does with exit status 1."""
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    kubeconfig, path = folder / "kubeconfig", folder / "config.yaml"
    kubeconfig.write_text(json.dumps({"current-context": "c", "contexts": [context], "clusters": [cluster]}))
    path.write_text(f"{text}clientConnection: {{kubeconfig: {kubeconfig}}}\n")
    assert main(["scheduler", f"--config={path}", "--secure-port=0", f"--write-config-to={folder}/never"]) == 1
    assert not (folder / "never").exists()
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return err.replace('\\"', '"')


DEFAULTS = [plugin.name for plugin in default_configuration().profiles[0].plugins.multi_point.enabled]


@pytest.mark.parametrize("enabled", [["PodTopologySpread"], DEFAULTS], ids=["added", "all named"])
def test_b101_a_plugin_named_at_its_own_point_too_is_there_once(enabled: list[str]) -> None:
    named = ", ".join(f"{{name: {name}}}" for name in enabled)
    config = decode(f"""
profiles:
- plugins:
    multiPoint: {{enabled: [{named}]}}
    score: {{enabled: [{{name: PodTopologySpread, weight: 5}}, {{name: NodeResourcesFit, weight: 1}}]}}
""")
    cluster = Cluster(config)
    for name in ("n1", "n2"):
        cluster.add_node(make_node(name).zone(name).obj())
    cluster.add_pod(make_pod("e").label(app="x").node("n1").obj())
    pod = make_pod("p").label(app="x").spread(ZONE, {"app": "x"}, when="ScheduleAnyway")
    found = explain(cluster, pod.info(), hints=False)
    assert found.weights["PodTopologySpread"] == 5
    assert found.weights["NodeResourcesFit"] == 1
    assert {each.node for each in found.feasible} == {"n1", "n2"}
    for each in found.feasible:
        for plugin, score in each.scores.items():
            assert 0 <= score <= 100 * found.weights[plugin]
        assert each.total == sum(each.scores.values())
    assert found.best == ["n2"]
    (profile,) = cluster.profiles.values()
    for at_point in (profile.pre_filter, profile.filter, profile.pre_score, [each.plugin for each in profile.score]):
        loaded = [plugin.name for plugin in at_point]
        assert loaded.count("PodTopologySpread") == 1
        assert len(loaded) == len(set(loaded))


ARGS = "pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {{{}}}}}}}]"
RATIO = "type: RequestedToCapacityRatio"
AT = "scoringStrategy.requestedToCapacityRatio"


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (RATIO, f"{AT}: Required value: must be specified when type is RequestedToCapacityRatio"),
        (f"{RATIO}, requestedToCapacityRatio: {{}}", f"{AT}.shape: Required value: at least one point must be specif"),
        (f"{RATIO}, requestedToCapacityRatio: {{shape: []}}", f"{AT}.shape: Required value: at least one point must"),
        (
            f"{RATIO}, requestedToCapacityRatio: {{shape: [{{utilization: 0, score: 0}}, {{utilization: 50, score: 5}},"
            " {utilization: 40, score: 9}]}",
            f"{AT}.shape[2].utilization: Invalid value: 40: values must be sorted in increasing order",
        ),
        (
            f"{RATIO}, requestedToCapacityRatio: {{shape: [{{utilization: 0, score: 11}}]}}",
            f"{AT}.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        ),
    ],
    ids=["missing", "empty", "no points", "order", "score"],
)
def test_b103_a_shape_that_cannot_be_is_refused(
    strategy: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{HEAD}profiles: [{{{ARGS.format(strategy)}}}]\n"
    assert message in refusal(text, tmp_path, capsys)


THREE = """
profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 7}}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [ours]}]}]
"""


@pytest.mark.asyncio
async def test_b104_each_plugin_has_its_own_arguments() -> None:
    """Each of them shows in a decision: who fits, and what the scores are made of."""
    cluster = Cluster(decode(THREE))
    for name in ("n1", "n2"):
        cluster.add_node(make_node(name).capacity(cpu="10").label(pool="ours").obj())
    cluster.add_node(make_node("n3").label(pool="theirs").obj())
    cluster.add_pod(app("e", "a").req(cpu="4").pod_affinity(HOST, {"app": "b"}).node("n1").obj())
    found = explain(cluster, app("p", "b").req(cpu="1").info(), hints=False)
    assert [(each.node, each.plugin) for each in found.rejected] == [("n3", "NodeAffinity")]
    scores = {each.node: each.scores for each in found.feasible}
    assert {node: each["NodeResourcesFit"] for node, each in scores.items()} == {"n1": 50, "n2": 10}
    assert scores["n1"]["InterPodAffinity"] > scores["n2"]["InterPodAffinity"]
    (profile,) = decode(THREE).profiles
    assert profile.args_of("InterPodAffinity").hard_pod_affinity_weight == 7  # type: ignore[attr-defined]
    async with no_flush(config=decode(THREE)) as h:
        h.add_node(make_node("n3").label(pool="theirs"))
        assert await placed(h, make_pod("q")) == [""]
        h.add_node(make_node("n1").label(pool="ours"))
        await h.settle(2.0)
        assert h.node_of("q") == "n1"


def test_b104_arguments_for_one_plugin_twice_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 8}}\n"
    with pytest.raises(ConfigError, match="repeated config for plugin InterPodAffinity"):
        Cluster(decode(THREE + twice))
    said = refusal(HEAD + THREE + twice, tmp_path, capsys)
    assert 'profiles[0].pluginConfig[3]: Duplicate value: "InterPodAffinity"' in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\n" + KIND,
            'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" in '
            'scheme "kubescheduler.config.k8s.io/v1"',
        ),
        (HEAD + "podInitialBackof: 1\n", 'strict decoding error: unknown field "podInitialBackof"'),
        (
            HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}, {schedulerName: a}]\n",
            "profiles[2].schedulerName: Duplicate value: profiles[0].schedulerName",
        ),
    ],
    ids=["version", "field", "profiles"],
)
def test_b106_what_the_configuration_does_not_know_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refusal(text, tmp_path, capsys)
