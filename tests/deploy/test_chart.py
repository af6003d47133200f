"""The chart renders to the tested manifests, and values do what they say."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from deploy.chart import Chart
from deploy.support import DEPLOY, SETS, documents, manifest

FOLDER = DEPLOY / "helm" / "skedge"
CHART = Chart(FOLDER)


def rendered(*files: str, **values: Any) -> dict[tuple[str, str], Any]:
    return documents(CHART.render(CHART.values(*files, **values)))


@pytest.mark.parametrize(
    ("files", "values", "names"),
    [
        ((), {}, ["second-scheduler"]),
        (("values-cluster.yaml",), {}, ["cluster-scheduler"]),
        ((), {"serviceMonitor": True}, ["second-scheduler", "servicemonitor"]),
    ],
)
def test_renders_to_the_manifests(files: tuple[str, ...], values: dict[str, Any], names: list[str]) -> None:
    wanted: dict[tuple[str, str], Any] = {}
    for name in names:
        wanted |= manifest(name)
    assert rendered(*files, **values) == wanted


def differences(one: Any, other: Any, path: str = "") -> dict[str, Any]:
    """Path -> new value of what is not the same."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {k: v for key in one for k, v in differences(one[key], other[key], f"{path}.{key}").items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return {k: v for i, (a, b) in pairs for k, v in differences(a, b, f"{path}[{i}]").items()}
    return {} if one == other else {path: other}


CONTAINER = ".spec.template.spec.containers[0]"


@pytest.mark.parametrize(
    ("value", "given", "kind", "changed"),
    [
        ("profile", "binpack", "Deployment", {f"{CONTAINER}.env[0].value": "binpack"}),
        ("image", "mirror/skedge:1", "Deployment", {f"{CONTAINER}.image": "mirror/skedge:1"}),
        ("replicas", 3, "Deployment", {".spec.replicas": 3}),
        ("verbosity", 4, "Deployment", {f"{CONTAINER}.args[1]": "--v=4"}),
        ("cpu", "2", "Deployment", {f"{CONTAINER}.resources.requests.cpu": 2}),
        ("memory", "1Gi", "Deployment", {f"{CONTAINER}.resources.requests.memory": "1Gi"}),
    ],
)
def test_one_value_changes_one_thing(value: str, given: Any, kind: str, changed: dict[str, Any]) -> None:
    base, other = rendered(), rendered(**{value: given})
    found = {key: differences(base[key], other[key]) for key in base}
    assert {key: each for key, each in found.items() if each} == {(kind, "skedge"): changed}


@pytest.mark.parametrize(("value", "line"), [("qps", "qps: 200"), ("burst", "burst: 200")])
def test_rates_are_those_of_every_profile(value: str, line: str) -> None:
    config = rendered(**{value: 200})["ConfigMap", "skedge"]["data"]
    assert all(text.count(line) == 1 for text in config.values())


def test_two_releases_share_nothing() -> None:
    one, other = rendered(), rendered(name="b", lease="b", schedulerName="b")
    assert not set(one) & set(other)
    assert "skedge" not in re.sub(
        r"app.kubernetes.io/name: skedge|image: skedge", "", yaml.safe_dump_all([*other.values()])
    )


def test_every_value_is_used() -> None:
    templates = "".join(path.read_text() for path in (FOLDER / "templates").iterdir())
    assert set(re.findall(r"\.Values\.(\w+)", templates)) == set(CHART.values())


def test_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
    assert f"skedge:{chart['appVersion']}" == CHART.values()["image"]
    assert set(SETS) == {"second-scheduler", "cluster-scheduler"}
