"""What pods count for in quotas, which quotas are about them, and that sums follow writes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from plane import MERGE, PODS, pod, running
from skedge.controlplane.usage import counted_by, facts_of, in_scope, measured, pod_usage

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
        ("pods", "pods"),
        ("requests.nvidia.com/gpu", "pods"),
        ("limits.memory", "pods"),
        ("count/pods", "pods"),
        ("count/jobs.batch", "jobs.batch"),
        ("services", "services"),
        ("requests.storage", "persistentvolumeclaims"),
        ("requests.ephemeral-storage", "pods"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "persistentvolumeclaims"),
        ("services.nodeports", "services"),
        ("gpu.deviceclass.resource.k8s.io/devices", "resourceclaims.resource.k8s.io"),
        ("nonsense", ""),
    ],
)
def test_whom_a_name_counts(name: str, resource: str) -> None:
    assert counted_by(name) == resource


@pytest.mark.parametrize(
    ("spec", "balancers", "ports"),
    [
        ({"type": "ClusterIP", "ports": [{}, {}]}, None, None),
        ({"type": "NodePort", "ports": [{}, {}]}, None, 2),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, 1, 2),
        ({"type": "LoadBalancer", "ports": [{}], "allocateLoadBalancerNodePorts": False}, 1, None),
    ],
)
def test_what_a_service_counts_for(spec: JSON, balancers: int | None, ports: int | None) -> None:
    facts, amounts = measured("services", {"spec": spec})
    assert (facts, amounts["services"]) == (None, 1)
    assert (amounts.get("services.loadbalancers"), amounts.get("services.nodeports")) == (balancers, ports)


def test_what_claims_count_for() -> None:
    claim: JSON = {"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}
    claim["status"] = {"allocatedResources": {"storage": "2Gi"}}  # an expansion that was taken back
    assert measured("persistentvolumeclaims", claim)[1] == {
        "count/persistentvolumeclaims": 1,
        "persistentvolumeclaims": 1,
        "requests.storage": 2 << 30,
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": 1,
        "gold.storageclass.storage.k8s.io/requests.storage": 2 << 30,
    }
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {"name": "b", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {
            "name": "c",
            "firstAvailable": [{"deviceClassName": "gpu", "count": 3}, {"deviceClassName": "gpu", "count": 1}],
        },
    ]
    assert measured("resourceclaims.resource.k8s.io", {"spec": {"devices": {"requests": requests}}})[1] == {
        "count/resourceclaims.resource.k8s.io": 1,
        "gpu.deviceclass.resource.k8s.io/devices": 5,
        "nic.deviceclass.resource.k8s.io/devices": 32,
    }


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


@pytest.mark.asyncio
async def test_storage_and_ports() -> None:
    """Claims and services are charged when they come and when they grow; amounts are written as the limits are."""
    async with running() as c:
        namespace = "/api/v1/namespaces/default"
        hard = {
            "requests.storage": "10Gi",
            "persistentvolumeclaims": "3",
            "gold.storageclass.storage.k8s.io/requests.storage": "4Gi",
            "services.nodeports": "1",
        }
        await c.ok("POST", f"{namespace}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})

        def claim(name: str, storage: str, of: str) -> JSON:
            asked = {"requests": {"storage": storage}}
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": of, "resources": asked}
            return {"metadata": {"name": name}, "spec": spec}

        claims = f"{namespace}/persistentvolumeclaims"
        await c.ok("POST", claims, claim("a", "3Gi", "gold"))
        code, answer = await c.send("POST", claims, claim("b", "2Gi", "gold"))
        why = "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi, "
        why += "used: gold.storageclass.storage.k8s.io/requests.storage=3Gi, "
        why += "limited: gold.storageclass.storage.k8s.io/requests.storage=4Gi"
        assert (code, answer["message"]) == (403, f'persistentvolumeclaims "b" is forbidden: {why}')
        await c.ok("POST", claims, claim("b", "2Gi", "tin"))
        grown = {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}
        code, answer = await c.send("PATCH", f"{claims}/b", grown, MERGE)
        why = "exceeded quota: q, requested: requests.storage=7Gi, used: requests.storage=5Gi, "
        assert (code, why in answer["message"]) == (403, True), answer
        await c.ok("PATCH", f"{claims}/b", {"spec": {"resources": {"requests": {"storage": "7Gi"}}}}, MERGE)
        ports = [{"port": 80}, {"port": 81}]
        code, answer = await c.send(
            "POST", f"{namespace}/services", {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
        )
        assert (code, "requested: services.nodeports=2" in answer["message"]) == (403, True), answer
        service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports[:1]}}
        await c.ok("POST", f"{namespace}/services", service)
        assert (await c.ok("GET", f"{namespace}/resourcequotas/q"))["status"]["used"] == {
            "requests.storage": "10Gi",
            "persistentvolumeclaims": "2",
            "gold.storageclass.storage.k8s.io/requests.storage": "3Gi",
            "services.nodeports": "1",
        }


@pytest.mark.asyncio
async def test_a_scoped_quota_is_about_pods_of_its_scope_only() -> None:
    async with running() as c:
        terms = [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
        spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": terms}}
        await c.ok("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 5})
        await c.ok("POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
        await c.ok("POST", PODS, pod("low"))
        code, answer = await c.send("POST", PODS, pod("high", priorityClassName="high"))
        assert (code, answer["message"].endswith("requested: pods=1, used: pods=0, limited: pods=0")) == (403, True)
