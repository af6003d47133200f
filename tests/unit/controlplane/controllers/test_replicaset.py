"""Replica sets against the real API server."""

from __future__ import annotations

import pytest

from skedge.controlplane.controllers.kinds import POD, REPLICA_SET
from unit.controlplane.controllers.support import lab, workload

SETS = REPLICA_SET.path("default")


@pytest.mark.asyncio
async def test_makes_pods_scales_and_reports() -> None:
    async with lab() as it:
        await it.client.create(SETS, workload("ReplicaSet", "web", 5))
        await it.until(lambda: it.running(5, "app=web"))

        async def ready() -> bool:
            status = (await it.client.get(f"{SETS}/web"))["status"]
            return bool(status.get("availableReplicas") == 5)

        await it.until(ready)
        await it.client.patch(f"{SETS}/web", {"spec": {"replicas": 2}})
        await it.until(lambda: it.running(2, "app=web"))
        pod = (await it.pods("app=web"))[0]
        reference = pod["metadata"]["ownerReferences"][0]
        assert pod["metadata"]["generateName"] == "web-"
        assert (reference["kind"], reference["controller"], reference["blockOwnerDeletion"]) == (
            "ReplicaSet",
            True,
            True,
        )
        await it.client.delete(POD.path("default", pod["metadata"]["name"]))
        await it.until(lambda: it.running(2, "app=web"))


@pytest.mark.asyncio
async def test_adopts_and_lets_go() -> None:
    async with lab() as it:
        pod = {
            "metadata": {"name": "stray", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await it.client.create(POD.path("default"), pod)
        await it.client.create(SETS, workload("ReplicaSet", "web", 2))
        await it.until(lambda: it.running(2, "app=web"))
        stray = await it.client.get(POD.path("default", "stray"))
        assert stray["metadata"]["ownerReferences"][0]["name"] == "web"
        await it.client.patch(POD.path("default", "stray"), {"metadata": {"labels": {"app": "other"}}})
        await it.until(lambda: it.running(2, "app=web"))

        async def free() -> bool:
            return "ownerReferences" not in (await it.client.get(POD.path("default", "stray")))["metadata"]

        await it.until(free)
