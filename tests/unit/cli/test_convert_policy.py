"""`skedge convert-policy`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from skedge import names
from skedge.assembly import all_plugins
from skedge.cli.convert_policy import convert
from skedge.cli.main import main
from skedge.config.build_checks import expand_profiles
from skedge.config.encode import to_data
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration
from skedge.profiles.profile import extends

POLICY = """
kind: Policy
apiVersion: v1
predicates: [{name: PodFitsPorts}, {name: PodFitsResources}, {name: NoDiskConflict}, {name: MatchNodeSelector}]
priorities: [{name: MostRequestedPriority, weight: 2}, {name: EqualPriority, weight: 1}]
hardPodAffinitySymmetricWeight: 10
extenders: [{urlPrefix: "http://x", filterVerb: f, httpTimeout: 100000000}]
"""
ALL_DEFAULT = "kind: Policy\napiVersion: v1\n"
LABELS = """
kind: Policy
apiVersion: v1
predicates: [{name: NeedRack, argument: {labelsPresence: {labels: [rack], presence: true}}}]
priorities: [{name: ImageLocalityPriority, weight: 1}]
"""
COMPONENT = """
kind: KubeSchedulerConfiguration
apiVersion: kubescheduler.config.k8s.io/v1alpha1
schedulerName: mine
algorithmSource: {provider: ClusterAutoscalerProvider}
hardPodAffinitySymmetricWeight: 7
percentageOfNodesToScore: 30
disablePreemption: true
healthzBindAddress: 0.0.0.0:10251
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "policy.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def points(data: dict[str, Any], point: str) -> list[str]:
    return [plugin["name"] for plugin in data["profiles"][0]["plugins"].get(point, {}).get("enabled", [])]


def test_a_policy(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert-policy", write(POLICY), "--scheduler-name", "mine"]) == 0
    out = capsys.readouterr()
    data = yaml.safe_load(out.out)
    assert set(data) == {"kind", "apiVersion", "profiles", "extenders"}
    assert data["profiles"][0]["schedulerName"] == "mine"
    assert points(data, "filter")[:6] == [
        "NodeUnschedulable",
        "NodePorts",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
    ]
    assert data["profiles"][0]["plugins"]["score"]["enabled"] == [{"name": "NodeResourcesFit", "weight": 2}]
    assert [entry["name"] for entry in data["profiles"][0]["pluginConfig"]] == ["NodeResourcesFit"]
    assert data["extenders"][0]["httpTimeout"] == "100ms"
    assert out.err == ("Warning: hardPodAffinitySymmetricWeight 10 has no effect without InterPodAffinityPriority\n")


def effect(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """A configuration with what it comes to: plugins per point, arguments of those in use, legacy plugins left out."""
    known = all_plugins(legacy=True)
    expanded = expand_profiles(config, lambda name, point: extends(known[name], point), known)
    data = to_data(config)
    for profile in data["profiles"]:
        listed = expanded[profile["schedulerName"]]
        profile["plugins"] = {
            point: [(plugin.name, plugin.weight) for plugin in plugins if plugin.name not in names.LEGACY_PLUGINS]
            for point, plugins in listed.items()
        }
        used = {name for plugins in profile["plugins"].values() for name, _ in plugins}
        profile["pluginConfig"] = {e["name"]: e["args"] for e in profile["pluginConfig"] if e["name"] in used}
    return data


@pytest.mark.parametrize("text", [POLICY, LABELS, ALL_DEFAULT, COMPONENT, f"{ALL_DEFAULT}predicates: []"])
def test_what_is_printed_reads_back_as_the_same(text: str, write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(text)
    assert main(["convert-policy", path, "--drop-legacy-plugins"]) == 0
    read = decode(capsys.readouterr().out, args_types=PLUGIN_ARGS)
    meant, _ = convert(path, "default-scheduler")
    assert effect(read) == effect(meant)


def test_plugins_without_a_name_in_v1(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(LABELS)
    assert main(["convert-policy", path]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert "Warning: plugin NodeLabel has no name in a v1 configuration" in out.err
    assert out.err.endswith("Error: can't be said in v1: NodeLabel (--drop-legacy-plugins leaves them out)\n")
    assert main(["convert-policy", path, "--drop-legacy-plugins"]) == 0
    assert "NodeLabel" not in capsys.readouterr().out


def test_a_v1alpha1_configuration(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert-policy", write(COMPONENT), "--drop-legacy-plugins"]) == 0
    out = capsys.readouterr()
    data = yaml.safe_load(out.out)
    assert data["percentageOfNodesToScore"] == 30
    assert data["profiles"][0]["schedulerName"] == "mine"
    assert points(data, "postFilter") == ["DynamicResources"]
    args = {entry["name"]: entry["args"] for entry in data["profiles"][0]["pluginConfig"]}
    assert args["InterPodAffinity"]["hardPodAffinityWeight"] == 7
    assert args["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    assert "Warning: healthzBindAddress has no effect" in out.err


def test_a_configuration_that_names_a_policy(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    policy = write(POLICY)
    head = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1alpha1\n"
    text = f"{head}algorithmSource: {{policy: {{file: {{path: {policy}}}}}}}\n"
    assert main(["convert-policy", write(text, "old.yaml")]) == 0
    assert "MostAllocated" in capsys.readouterr().out
    text = f"{head}algorithmSource: {{policy: {{configMap: {{name: p}}}}}}\n"
    assert main(["convert-policy", write(text, "map.yaml")]) == 1
    expected = "Error: the Policy is in the config map kube-system/p: convert that\n"
    assert capsys.readouterr().err == expected


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(POLICY.encode())))
    assert main(["convert-policy", "-"]) == 0
    assert capsys.readouterr().out.startswith("kind: KubeSchedulerConfiguration\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "absent.yaml: No such file or directory"),
        ("kind: Policy\n", "invalid policy: Object 'apiVersion' is missing in 'kind: Policy\n'"),
        ("- 1\n", "invalid policy: Object 'Kind' is missing in"),
        ("a: [", "yaml: "),
        (
            "kind: Policy\napiVersion: v1\npredicates: [{name: Nonsense}]\n",
            'couldn\'t create scheduler from policy: Invalid configuration: Predicate type not found for "Nonsense"',
        ),
    ],
)
def test_errors(text: str | None, message: str, write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "absent.yaml") if text is None else write(text)
    assert main(["convert-policy", path]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert message in out.err
    assert out.err.startswith("Error: ")
