"""What flags make of the metrics, and what is read of a scheduler."""

from __future__ import annotations

import json

import pytest

from skedge.api.decode import decoder
from skedge.app.metrics import allowed_labels, build_metrics, pod_usage
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.options import parse_options
from skedge.snapshot.pods import PlacedPod, PodInfo

FILES = {
    "good.yaml": b"scheduler_x_total,result: a,b\n",
    "list.yaml": b"- a\n",
    "broken.yaml": b"{",
    "key.yaml": b"no-comma: a\n",
}


def read(path: str) -> bytes:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def test_labels_of_the_command_line_and_of_a_manifest() -> None:
    expected = {("scheduler_x_total", "result"): frozenset({"a", "b"})}
    given = parse_options(["--allow-metric-labels=scheduler_x_total,result=a,b"])
    assert allowed_labels(given, read) == expected
    assert allowed_labels(parse_options(["--allow-metric-labels-manifest=good.yaml"]), read) == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.yaml", "failed to read allow list manifest: open none.yaml: no such file"),
        ("broken.yaml", "failed to parse allow list manifest"),
        ("list.yaml", "expected a mapping of texts"),
        ("key.yaml", "no-comma"),
    ],
)
def test_manifests_that_cannot_be_used(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        allowed_labels(parse_options([f"--allow-metric-labels-manifest={path}"]), read)
    assert str(caught.value).startswith("metrics.allowListMappingManifest: Invalid value: ")


def shown(*flags: str, **gates: bool) -> set[str]:
    metrics = build_metrics(parse_options(list(flags)), FeatureGates(**gates), read)
    metrics.counter("scheduler_async_api_call_execution_total").labels("status_patch", "success").inc()
    return {family.spec.name for family in metrics.registry.sample()}


def test_gates_and_disabled_metrics() -> None:
    name = "scheduler_async_api_call_execution_total"
    assert name not in shown()
    assert name in shown(SchedulerAsyncAPICalls=True)
    assert name not in shown(f"--disabled-metrics={name}", SchedulerAsyncAPICalls=True)
    assert {"kubernetes_build_info", "version_info", "kubernetes_feature_enabled"} <= shown()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), ("1.36", "1.35")),
        (("--emulated-version=1.35",), ("1.35", "1.34")),
        (("--emulated-version=kube=1.35", "--min-compatibility-version=kube=1.33"), ("1.35", "1.33")),
    ],
)
def test_versions(flags: tuple[str, ...], expected: tuple[str, str]) -> None:
    (sample,) = build_metrics(parse_options(flags), FeatureGates(), read).gauge("version_info").sample().samples
    labels = dict(sample.labels)
    assert (labels["emulation"], labels["min_compat"]) == expected


POD = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {
        "priority": 7,
        "schedulerName": "mine",
        "overhead": {"cpu": "10m", "memory": "1Mi"},
        "initContainers": [
            {"name": "i", "resources": {"limits": {"cpu": "3"}}},
            {
                "name": "s",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}},
            },
        ],
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1"}}},
            {"name": "b", "resources": {"limits": {"cpu": "1", "example.com/gpu": "2"}}},
        ],
    },
}


def test_usage_of_pods() -> None:
    """Limits: the larger of all containers together and the largest init container; overhead where there is a limit."""
    pod = PodInfo(decoder("Pod").decode(json.dumps(POD)))
    for each in (pod, PlacedPod(pod, "node-1")):
        (usage,) = pod_usage([each])
        assert (usage.namespace, usage.name, usage.scheduler, usage.priority) == ("n", "p", "mine", 7)
        assert usage.node == each.node_name
        assert usage.requests == {"cpu": 310, "memory": (1 << 30) + (1 << 20)}
        assert usage.limits == {"cpu": 3010, "example.com/gpu": 2}
