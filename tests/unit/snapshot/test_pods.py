"""Pods with a node are small: what is equal is shared, what nobody reads is left out, the collector sees one object."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import msgspec

from skedge.api.core import Pod
from skedge.snapshot.pods import PlacedPod, PodInfo, Shared

KINDS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
decoder = msgspec.json.Decoder(Pod)


def body(i: int, **labels: str) -> dict[str, Any]:
    uid = f"0b5c0000-0000-4000-8000-{i:012d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{i % 60:02}Z"} for kind in KINDS
    ]
    return {
        "metadata": {
            "name": f"web-{i}",
            "namespace": "prod",
            "uid": uid,
            "resourceVersion": f"{i + 1000}",
            "labels": {"app": "web", **labels},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": f"node-{i % 20}",
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": conditions},
    }


def placed(obj: dict[str, Any]) -> PlacedPod:
    pod = decoder.decode(msgspec.json.encode(obj))
    return PlacedPod(PodInfo(pod), pod.spec.node_name)


def test_equal_parts_are_shared() -> None:
    one, other = placed(body(1)), placed(body(21))
    for part in (
        "labels",
        "node_requests",
        "limits",
        "nonzero",
        "owner",
        "tolerations",
        "conditions",
        "claim_statuses",
        "namespace",
        "node_name",
        "scheduler_name",
        "affinity_terms",
    ):
        assert getattr(one, part) is getattr(other, part), part
    assert (one.name, one.key, other.name) == ("web-1", "prod/web-1", "web-21")


def test_of_conditions_types_and_the_disruption_are_kept() -> None:
    obj = body(1)
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}
    obj["status"]["conditions"].insert(1, why)
    conditions = placed(obj).conditions
    assert [c.type for c in conditions] == [KINDS[0], "DisruptionTarget", *KINDS[1:]]
    assert (conditions[1].status, conditions[1].reason, conditions[1].message) == ("True", "PreemptionByScheduler", "m")


def test_a_pod_is_one_object_of_a_few_hundred_bytes() -> None:
    pods = [placed(body(i)) for i in range(100)]  # what all share is there
    encoded = [msgspec.json.encode(body(i)) for i in range(2_000)]
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for each in encoded:
            pod = decoder.decode(each)
            pods.append(PlacedPod(PodInfo(pod), pod.spec.node_name))
        del pod
        gc.collect()
        bytes_each = (tracemalloc.get_traced_memory()[0] - before) / len(encoded)
    finally:
        tracemalloc.stop()
    assert bytes_each < 700
    assert len(gc.get_objects()) - objects < len(encoded) * 1.05


def test_what_comes_and_goes_is_forgotten() -> None:
    shared = Shared(10)
    shared.put("steady", "s")
    for i in range(1_000):
        shared.put(i, i)
        assert shared.get("steady") == "s"
    assert len(shared) <= 20
    assert shared.get(5) is None
