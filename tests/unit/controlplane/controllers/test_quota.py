"""The status of quotas: counted at first, charged by the server, given back when pods end."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import POD, QUOTA
from unit.controlplane.controllers.support import Lab, lab, workload

PODS, QUOTAS = POD.path("default"), QUOTA.path("default")
JSON = dict[str, Any]


def pod(name: str, cpu: str) -> JSON:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


async def used(it: Lab) -> JSON:
    status: JSON = (await it.client.get(f"{QUOTAS}/q"))["status"]
    return dict(status.get("used") or {})


@pytest.mark.asyncio
async def test_used_follows_what_comes_and_goes() -> None:
    async with lab("1") as it:
        await it.client.create(PODS, pod("before", "250m"))
        await it.client.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
        hard = {"pods": "3", "requests.cpu": "1", "count/configmaps": "9", "count/deployments.apps": "1"}
        await it.client.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})

        async def is_used(pods: str, cpu: str, deployments: str = "0") -> bool:
            wanted = {"pods": pods, "requests.cpu": cpu, "count/configmaps": "1"}
            return await used(it) == wanted | {"count/deployments.apps": deployments}

        await it.until(lambda: is_used("1", "250m"))
        await it.client.create(PODS, pod("next", "500m"))
        assert await is_used("2", "750m")  # at once
        await it.client.create("/apis/apps/v1/namespaces/default/deployments", workload("Deployment", "web", 0))
        assert await is_used("2", "750m", "1")
        await it.client.delete(f"{PODS}/before")
        await it.until(lambda: is_used("1", "500m", "1"))
        await it.client.patch(f"{QUOTAS}/q", {"spec": {"hard": {"requests.cpu": None, "count/configmaps": None}}})

        async def narrower() -> bool:
            return await used(it) == {"pods": "1", "count/deployments.apps": "1"}

        await it.until(narrower)
        assert "pods: 1/3" in await it.kubectl("get", "quota")


@pytest.mark.asyncio
async def test_used_is_given_back_by_other_kinds() -> None:
    """Claims, services and secrets that go, and what is counted before the quota came."""
    async with lab("1") as it:
        namespace = "/api/v1/namespaces/default"
        asked = {"requests": {"storage": "1536Mi"}}
        claim = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": asked}}
        await it.client.create(f"{namespace}/persistentvolumeclaims", claim)
        await it.client.create(f"{namespace}/secrets", {"metadata": {"name": "s"}})
        service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        await it.client.create(f"{namespace}/services", service)
        hard = {"requests.storage": "3Gi", "secrets": "2", "services.nodeports": "5", "memory": "8Gi"}
        await it.client.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})

        async def is_used(storage: str, secrets: str, ports: str) -> bool:
            wanted = {"requests.storage": storage, "secrets": secrets, "services.nodeports": ports, "memory": "0"}
            return await used(it) == wanted

        await it.until(lambda: is_used("1536Mi", "1", "1"))
        assert "requests.storage: 1536Mi/3Gi" in await it.kubectl("get", "quota")
        await it.client.patch(f"{namespace}/services/s", {"spec": {"type": "ClusterIP"}})
        await it.client.delete(f"{namespace}/secrets/s")
        await it.until(lambda: is_used("1536Mi", "0", "0"), within=5.0)
        await it.client.delete(f"{namespace}/persistentvolumeclaims/c")
        await it.until(lambda: is_used("0", "0", "0"), within=10.0)


@pytest.mark.asyncio
async def test_a_replica_set_that_hits_its_quota_goes_on_when_there_is_room() -> None:
    async with lab("1") as it:
        await it.client.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
        await it.client.create("/apis/apps/v1/namespaces/default/replicasets", workload("ReplicaSet", "web", 4))
        await it.until(lambda: it.running(2))
        assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in await it.kubectl(
            "describe", "rs", "web"
        )
        await it.client.patch(f"{QUOTAS}/q", {"spec": {"hard": {"pods": "4"}}})
        await it.until(lambda: it.running(4))
