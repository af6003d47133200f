"""What pods count for in quotas, which quotas are about them, and that sums follow writes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from plane import PODS, pod, running
from skedge.controlplane.usage import counted_by, facts_of, in_scope, pod_usage

JSON = dict[str, Any]


def asks(name: str = "c", **requests: str) -> JSON:
    return {"name": name, "image": "i", "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "phase", "cpu"),
    [
        ({"containers": [asks(cpu="1"), asks(cpu="500m")]}, "", "1.5"),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3")]}, "", "3"),
        ({"containers": [asks(cpu="1")], "initContainers": [{**asks(cpu="2"), "restartPolicy": "Always"}]}, "", "3"),
        (
            {
                "containers": [asks(cpu="1")],
                "initContainers": [{**asks(cpu="2"), "restartPolicy": "Always"}, asks(cpu="4")],
            },
            "",
            "6",
        ),
        ({"containers": [asks(cpu="1")], "resources": {"requests": {"cpu": "5"}}}, "", "5"),
        ({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, "", "1.25"),
        ({"containers": [asks(cpu="1")]}, "Succeeded", "0"),
    ],
)
def test_what_a_pod_counts_for(spec: JSON, phase: str, cpu: str) -> None:
    usage = pod_usage(spec, phase)
    assert usage.get("cpu", Fraction(0)) == usage.get("requests.cpu", Fraction(0)) == Fraction(cpu)
    assert usage["count/pods"] == 1
    assert ("pods" in usage) == (phase == "")


def test_names_of_extended_resources_and_limits() -> None:
    resources = {
        "requests": {"nvidia.com/gpu": "2", "memory": "1Gi"},
        "limits": {"memory": "2Gi", "nvidia.com/gpu": "2"},
    }
    usage = pod_usage({"containers": [{"name": "c", "resources": resources}]})
    assert set(usage) == {
        "pods",
        "count/pods",
        "memory",
        "requests.memory",
        "limits.memory",
        "requests.nvidia.com/gpu",
    }


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("pods", None),
        ("requests.nvidia.com/gpu", None),
        ("limits.memory", None),
        ("count/pods", None),
        ("count/jobs.batch", "jobs.batch"),
        ("services", "services"),
        ("requests.storage", ""),
        ("gold.storageclass.storage.k8s.io/requests.storage", ""),
        ("services.nodeports", ""),
    ],
)
def test_whom_a_name_counts(name: str, resource: str | None) -> None:
    assert counted_by(name) == resource


@pytest.mark.parametrize(
    ("spec", "scope", "operator", "values", "found"),
    [
        ({"activeDeadlineSeconds": 5}, "Terminating", "Exists", [], True),
        ({}, "NotTerminating", "Exists", [], True),
        ({"containers": [asks(cpu="1")]}, "BestEffort", "Exists", [], False),
        ({"containers": [asks(cpu="1")]}, "NotBestEffort", "Exists", [], True),
        ({"priorityClassName": "high"}, "PriorityClass", "In", ["high", "top"], True),
        ({"priorityClassName": "low"}, "PriorityClass", "NotIn", ["low"], False),
        ({}, "PriorityClass", "Exists", [], False),
        ({}, "PriorityClass", "DoesNotExist", [], True),
        (
            {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {"namespaces": ["x"]}}]
                    }
                }
            },
            "CrossNamespacePodAffinity",
            "Exists",
            [],
            True,
        ),
    ],
)
def test_scopes(spec: JSON, scope: str, operator: str, values: list[str], found: bool) -> None:
    term = {"scopeName": scope, "operator": operator, "values": values}
    quota = {"spec": {"scopeSelector": {"matchExpressions": [term]}}}
    assert in_scope(quota, facts_of(spec)) == found
    if operator == "Exists":
        assert in_scope({"spec": {"scopes": [scope]}}, facts_of(spec)) == found


@pytest.mark.asyncio
async def test_sums_follow_writes() -> None:
    """Creations, ends, deletions and a history too short to follow."""
    async with running(history=5) as c:
        quotas = "/api/v1/namespaces/default/resourcequotas"
        await c.ok("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3", "cpu": "2"}}})
        for i in range(2):
            await c.ok("POST", PODS, pod(f"p{i}", containers=[asks(cpu="500m")]))
        code, answer = await c.send("POST", PODS, pod("big", containers=[asks(cpu="1500m")]))
        assert code == 403
        assert answer["message"].endswith("exceeded quota: q, requested: cpu=1500m, used: cpu=1, limited: cpu=2")
        patch = "application/merge-patch+json"
        await c.ok("PATCH", f"{PODS}/p0/status", {"status": {"phase": "Succeeded"}}, patch)
        await c.ok("POST", f"{PODS}?dryRun=All", pod("big", containers=[asks(cpu="1500m")]))
        assert (await c.ok("GET", f"{quotas}/q"))["status"]["used"] == {"pods": "2", "cpu": "1"}
        await c.ok("DELETE", f"{PODS}/p1")
        for i in range(20):
            await c.ok("PATCH", f"{PODS}/p0", {"metadata": {"labels": {"n": str(i)}}}, patch)
        await c.ok("POST", PODS, pod("big", containers=[asks(cpu="2")]))
        assert (await c.ok("GET", f"{quotas}/q"))["status"]["used"] == {"pods": "1", "cpu": "2"}


@pytest.mark.asyncio
async def test_each_container_must_ask_for_what_is_limited() -> None:
    async with running() as c:
        hard = {"cpu": "2", "limits.memory": "1Gi"}
        body = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        await c.ok("POST", "/api/v1/namespaces/default/resourcequotas", body)
        two = [asks("a", cpu="1"), {"name": "b", "image": "i"}]
        code, answer = await c.send("POST", PODS, pod("p", containers=two))
        assert code == 403
        assert answer["message"].endswith("failed quota: q: must specify cpu for: b; limits.memory for: a,b")
