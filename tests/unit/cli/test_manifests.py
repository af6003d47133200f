"""Manifests that can not be used: one line that names file or object, and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from skedge.cli.demo import run
from skedge.cli.manifests import ManifestError, default_manifests, read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "m.yaml: line 2: "),
        ("- 1", "m.yaml: expected an object, got list"),
        ("kind: Foo\napiVersion: v1\n", "m.yaml: no way to create apiVersion 'v1', kind 'Foo'"),
        (POD + "---\nkind: Pod\napiVersion: v1\n", "m.yaml: document 2: metadata.name: expected a string"),
    ],
)
def test_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(ManifestError) as error:
        read_manifests([tmp_path / "m.yaml"])
    assert str(error.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"/absent.yaml: No such file or directory$"):
        read_manifests([tmp_path / "absent.yaml"])


def test_the_examples_are_what_the_demo_promises() -> None:
    objects = {obj["metadata"]["name"]: obj for obj in default_manifests()}
    assert objects["web"]["spec"]["replicas"] == 50
    assert objects["spread"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert objects["gated"]["spec"]["schedulingGates"]
    assert "too-big" in objects


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{containers: [{name: c, image: i}], nodeSelektor: {a: b}}", 'unknown field "spec.nodeSelektor"'),
        ("{containers: []}", "spec.containers: Required value"),
    ],
)
def test_what_the_server_refuses(tmp_path: Path, spec: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.yaml").write_text(f"{POD}spec: {spec}\n")
    assert run(["--nodes", "1", str(tmp_path / "m.yaml")]) == 1
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith("Error: Pod default/x: ")
    assert message in line
