"""Nodes from a short text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skedge.controlplane.nodes.inventory import NodesError, parse_nodes


def test_numbers_and_types() -> None:
    nodes = parse_nodes("2,3xm5.4xlarge,g4dn.xlarge")
    names = [node["metadata"]["name"] for node in nodes]
    assert names == ["node-0", "node-1", "m5-4xlarge-0", "m5-4xlarge-1", "m5-4xlarge-2", "g4dn-xlarge-0"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c"] * 2
    large = nodes[2]
    assert large["status"]["capacity"]["cpu"] == "16"
    assert large["status"]["allocatable"] == large["status"]["capacity"]
    assert large["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.4xlarge"
    assert large["metadata"]["labels"]["kubernetes.io/hostname"] == "m5-4xlarge-0"
    assert nodes[-1]["status"]["capacity"]["nvidia.com/gpu"] == "1"


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_files(tmp_path: Path, suffix: str) -> None:
    manifest = {
        "kind": "Node",
        "metadata": {"labels": {"pool": "gpu", "topology.kubernetes.io/zone": "here"}},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": 8, "example.com/fpga": "2"}},
    }
    (tmp_path / f"fast.{suffix}").write_text(json.dumps(manifest))
    one, two = parse_nodes(f"2xfast.{suffix}", tmp_path)
    assert (one["metadata"]["name"], two["metadata"]["name"]) == ("fast-0", "fast-1")
    assert one["metadata"]["labels"]["topology.kubernetes.io/zone"] == "here"
    assert one["spec"]["taints"][0]["key"] == "gpu"
    assert one["status"]["capacity"] == {
        "cpu": "8",
        "memory": "256Gi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
        "example.com/fpga": "2",
    }


@pytest.mark.parametrize(
    ("text", "content", "problem"),
    [
        ("3xhuge", None, "huge is neither a number, nor a .json or .yaml file, nor a known instance type"),
        ("missing.yaml", None, "missing.yaml: no such file"),
        ("n.json", "{", "n.json: cannot be read: "),
        ("n.yaml", "kind: Pod", "expected a Node manifest"),
        ("n.yaml", "metadata: {labels: {a: 1}}", r"Expected `str`, got `int` - at `\$.metadata.labels"),
        ("99999", None, "more than 50000 nodes"),
    ],
)
def test_wrong(tmp_path: Path, text: str, content: str | None, problem: str) -> None:
    if content is not None:
        (tmp_path / text).write_text(content)
    with pytest.raises(NodesError, match=problem):
        parse_nodes(text, tmp_path)
