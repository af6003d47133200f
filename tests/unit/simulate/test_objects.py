"""Objects made into clusters."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.simulate.cluster import STORES, Cluster
from skedge.simulate.objects import ObjectError, Objects


def obj(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "apiVersion": "v1", "metadata": meta, **more}


def built(*documents: Any) -> Cluster:
    objects = Objects()
    objects.add(documents)
    return objects.cluster()


def test_lists_are_opened_and_other_kinds_passed_over() -> None:
    nested = {"kind": "List", "items": [obj("Pod", "b", "x", spec={"nodeName": "n"}), obj("ConfigMap", "c")]}
    typed = {"kind": "NodeList", "items": [{"metadata": {"name": "n"}}, {"metadata": {"name": "m"}}]}
    cluster = built(nested, typed, obj("Pod", "a"), None, obj("Widget", ""), {"kind": "PodList", "items": None})
    assert sorted(cluster.cache.table.row_of) == ["m", "n"]
    assert [pod.key for pod in cluster.cache.pods()] == ["x/b"]
    assert list(cluster.pods) == ["default/a"]


def test_the_last_of_equal_objects_counts() -> None:
    first = obj("Node", "n", status={"allocatable": {"cpu": "1"}})
    cluster = built(first, obj("Node", "n", status={"allocatable": {"cpu": "3"}}), obj("Pod", "p"), obj("Pod", "p"))
    assert cluster.cache.table.allocatable["cpu"][0] == 3000
    assert len(cluster.pods) == 1


def test_finished_pods_take_no_room() -> None:
    cluster = built(obj("Node", "n"), obj("Pod", "p", spec={"nodeName": "n"}, status={"phase": "Succeeded"}))
    assert list(cluster.cache.pods()) == []


@pytest.mark.parametrize("kind", STORES)
def test_every_store_is_filled(kind: str) -> None:
    cluster = built(obj(kind, "x"))
    assert len(getattr(cluster.listers, STORES[kind])) == 1


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        ({}, 5, None),
        ({"priority": 3}, 3, None),
        ({"priorityClassName": "high"}, 100, "Never"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, 100, "PreemptLowerPriority"),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, None),
        ({"priorityClassName": "unknown"}, None, None),
    ],
)
def test_priorities_are_filled_in(spec: dict[str, Any], priority: int | None, policy: str | None) -> None:
    objects = Objects()
    objects.add([obj("PriorityClass", "high", value=100, preemptionPolicy="Never")])
    objects.add([obj("PriorityClass", "usual", value=5, globalDefault=True), obj("Pod", "p", spec=spec)])
    pod = objects.pod("default/p")
    assert pod is not None
    assert (pod.spec.priority, pod.spec.preemption_policy) == (priority, policy)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "f: expected an object, got list"),
        ("text", "f: expected an object, got str"),
        ({"items": []}, "f: expected an object with a kind"),
        ({"kind": "List", "items": {}}, "f: List: items: expected a list"),
        ({"kind": "List", "items": [1]}, "f: List: items[0]: expected an object"),
        ({"kind": "List", "items": [{"kind": "Pod"}]}, "f: items[0]: Pod: metadata.name: expected a string"),
        ({"kind": "Node", "metadata": {"name": 3}}, "f: Node: metadata.name: expected a string"),
    ],
)
def test_what_can_not_be_read(document: Any, message: str) -> None:
    with pytest.raises(ObjectError) as raised:
        Objects().add([document], "f")
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (obj("Node", "n", status={"allocatable": {"cpu": "lots"}}), "Node n: quantities must match"),
        (obj("Node", "n", spec={"taints": "x"}), "Node n: Expected `array | null`, got `str` - at `$.spec.taints`"),
        (obj("Pod", "p", spec={"containers": 5}), "Pod default/p: Expected `array | null`, got `int`"),
        (obj("Pod", "p", spec={"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "?"}}}]}), "Pod def"),
    ],
)
def test_what_does_not_fit(document: Any, message: str) -> None:
    with pytest.raises(ObjectError) as raised:
        built(document)
    assert str(raised.value).startswith(message)


def test_a_pod_that_can_not_be_judged() -> None:
    objects = Objects()
    objects.add([obj("Pod", "p", spec={"containers": [{"resources": {"requests": {"cpu": "?"}}}]})])
    with pytest.raises(ObjectError, match=r"^Pod default/p: "):
        objects.pod("default/p")
    assert objects.pod("default/q") is None
