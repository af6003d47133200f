"""Reading stages: what they match, how long they wait, and what is said about wrong ones."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
import yaml

from skedge.controlplane.controllers.objects import Node, Pod
from skedge.controlplane.nodes.stages import StageError, load_stages, parse_stages
from skedge.controlplane.nodes.templates import NODE_VALUES, POD_VALUES, NodeScene, PodScene, fill

NOW = "2026-01-01T00:00:00Z"


def pod(phase: str = "Pending", *, ready: str = "", restart: str = "Always", **meta: Any) -> Pod:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": "2025-01-01T00:00:00Z"}] if ready else []
    return msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u", **meta},
            "spec": {"nodeName": "n", "restartPolicy": restart, "containers": [{"name": "c", "image": "i:1"}]},
            "status": {"phase": phase, "conditions": conditions},
        },
        Pod,
    )


def _owner(kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": "o", "uid": "o", "controller": True}]}


RUN = {"skedge.io/run-seconds": "7"}
FAIL = {"skedge.io/exit-code": "1"}


@pytest.mark.parametrize(
    ("it", "stages"),
    [
        (pod(), ["pod-start"]),
        (pod("Running", ready="True"), []),
        (pod("Running", ready="False"), ["pod-ready-again"]),
        (pod("Running", ready="True", **_owner("Job")), ["job-pod-succeed"]),
        (pod("Running", ready="True", restart="Never", annotations=FAIL, **_owner("Job")), ["pod-fail"]),
        (pod("Running", ready="True", restart="Never", annotations=RUN), ["pod-succeed"]),
        (pod("Running", ready="True", annotations=RUN), []),
        (pod("Running", deletionTimestamp=NOW), ["pod-delete"]),
        (pod("Running", deletionTimestamp=NOW, finalizers=["f"]), ["pod-stop"]),
        (pod("Failed", deletionTimestamp=NOW, finalizers=["f"]), []),
        (pod("Succeeded"), []),
    ],
)
def test_default_stages(it: Pod, stages: list[str]) -> None:
    assert [stage.name for stage in load_stages().pods if stage.matches(it)] == stages


def stage(**spec: Any) -> dict[str, Any]:
    defaults = {"resourceRef": {"kind": "Pod"}, "next": {"delete": True}}
    return {"apiVersion": "v1", "kind": "Stage", "metadata": {"name": "s"}, "spec": {**defaults, **spec}}


def parse(document: dict[str, Any]) -> Any:
    stages = parse_stages(yaml.safe_dump(document), "file")
    return (stages.pods + stages.nodes)[0]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchAnnotations": {"tier": "slow"}}, True),
        ({"matchExpressions": [{"key": '.metadata.labels["app"]', "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": ".spec.nodeName", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": ".status.podIP", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": ".metadata.namespace", "operator": "NotIn", "values": ["default"]}]}, False),
    ],
)
def test_selectors(selector: dict[str, Any], matches: bool) -> None:
    it = pod(labels={"app": "web"}, annotations={"tier": "slow"})
    assert parse(stage(selector=selector)).matches(it) is matches


def test_delays() -> None:
    rng = random.Random(1)
    assert parse(stage(delay={"durationMilliseconds": 1500})).delay(pod(), rng) == 1.5
    spread = parse(stage(delay={"durationMilliseconds": 100, "jitterDurationMilliseconds": 200}))
    delays = [spread.delay(pod(), rng) for _ in range(50)]
    assert 0.1 <= min(delays) < max(delays) <= 0.2
    source = {"expressionFrom": '.metadata.annotations["skedge.io/run-seconds"]'}
    said = parse(stage(delay={"durationMilliseconds": 1000, "durationFrom": source}))
    assert said.delay(pod(annotations=RUN), rng) == 7.0
    assert said.delay(pod(annotations={"skedge.io/run-seconds": "soon"}), rng) == 1.0
    grace = parse(stage(delay={"durationFrom": {"expressionFrom": ".metadata.deletionGracePeriodSeconds"}}))
    assert grace.delay(pod(deletionGracePeriodSeconds=30), rng) == 30.0


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({**stage(), "kind": "Pod"}, 'stage s: kind is "Pod", expected Stage'),
        (stage(resourceRef={"kind": "Job"}), 'spec.resourceRef.kind is "Job", expected Pod or Node'),
        (stage(next={}), "spec.next: exactly one of statusTemplate and delete"),
        (stage(weight=0), "spec.weight is 0"),
        (stage(next={"statusTemplate": {"a": "${nothing}"}}), r"unknown \$\{nothing\}, known: conditions.failed"),
        (stage(selector={"matchExpressions": [{"key": ".spec.x", "operator": "Exists"}]}), r"\[0\].key is \".spec.x\""),
        (
            stage(selector={"matchExpressions": [{"key": ".metadata.name", "operator": "Like", "values": ["x"]}]}),
            r"values: In and NotIn need values",
        ),
        (
            stage(selector={"matchExpressions": [{"key": ".metadata.name", "operator": "Like"}]}),
            r"operator is \"Like\", expected In, NotIn",
        ),
        (stage(delay={"seconds": 3}), r"unknown field `seconds` - at `\$.spec.delay`"),
    ],
)
def test_wrong_stages(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(StageError, match=f"^file: .*{problem}"):
        parse(document)


def test_not_yaml() -> None:
    with pytest.raises(StageError, match=r"^file: not YAML: "):
        parse_stages("a: [", "file")


def test_pod_template() -> None:
    scene = PodScene(pod("Running", ready="True"), NOW, "172.16.0.1", "10.128.0.1")
    template = {
        "phase": "Running",
        "text": "${name} on ${nodeName}",
        "podIP": "${podIP}",
        "none": "${initContainerStatuses}",
    }
    filled = fill(template, POD_VALUES, scene)
    assert filled == {"phase": "Running", "text": "p on n", "podIP": "10.128.0.1"}
    conditions = {each["type"]: each for each in POD_VALUES["conditions.running"](scene)}
    assert conditions["Ready"]["lastTransitionTime"] == "2025-01-01T00:00:00Z"
    assert conditions["ContainersReady"]["lastTransitionTime"] == NOW
    (status,) = POD_VALUES["containerStatuses.failed"](scene)
    assert status["state"]["terminated"]["exitCode"] == 1


def test_every_placeholder_has_a_value() -> None:
    spec = {"initContainers": [{"name": "i", "restartPolicy": "Always"}]}
    it = msgspec.convert({"metadata": {"name": "p"}, "spec": spec, "status": {}}, Pod)
    for value in POD_VALUES.values():
        assert value(PodScene(it, NOW, "h", "p")) is not None
    node = msgspec.convert({"metadata": {"name": "n"}}, Node)
    for value in NODE_VALUES.values():
        assert value(NodeScene(node, NOW, "172.16.0.1", "v1")) is not None
