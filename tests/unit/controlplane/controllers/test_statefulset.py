"""Stateful sets against the real API server."""

from __future__ import annotations

import pytest

from skedge.controlplane.controllers.kinds import CLAIM, POD, STATEFUL_SET
from unit.controlplane.controllers.support import Lab, lab, workload

SETS = STATEFUL_SET.path("default")


async def _names(it: Lab) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await it.pods())


@pytest.mark.asyncio
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_order_of_creation(policy: str) -> None:
    async with lab() as it:
        await it.client.create(SETS, workload("StatefulSet", "db", 3, serviceName="db", podManagementPolicy=policy))
        seen_unready = 0

        async def done() -> bool:
            nonlocal seen_unready
            pods = await it.pods()
            seen_unready = max(seen_unready, sum(pod["status"]["phase"] == "Pending" for pod in pods))
            return await it.running(3)

        await it.until(done, step=0.1)
        assert await _names(it) == ["db-0", "db-1", "db-2"]
        assert (seen_unready > 1) is (policy == "Parallel")
        pod = await it.client.get(POD.path("default", "db-1"))
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        await it.kubectl("scale", "statefulset", "db", "--replicas=1")
        await it.until(lambda: it.running(1))
        assert await _names(it) == ["db-0"]


@pytest.mark.asyncio
async def test_rollout_partition_and_undo() -> None:
    async with lab() as it:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await it.client.create(SETS, workload("StatefulSet", "db", 3, serviceName="db", updateStrategy=strategy))
        await it.until(lambda: it.running(3))
        await it.kubectl("set", "image", "statefulset/db", "c=nginx:2")

        async def images() -> list[str]:
            pods = sorted(await it.pods(), key=lambda pod: str(pod["metadata"]["name"]))
            return [pod["spec"]["containers"][0]["image"].removeprefix("nginx:") for pod in pods]

        async def partial() -> bool:
            return await it.running(3) and await images() == ["1", "1", "2"]

        await it.until(partial)
        await it.let_pass(3)
        assert await partial()
        await it.client.patch(f"{SETS}/db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        assert "roll out complete" in await it.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
        assert await images() == ["2", "2", "2"]
        await it.kubectl("rollout", "undo", "statefulset/db")
        assert "roll out complete" in await it.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
        assert await images() == ["1", "1", "1"]


@pytest.mark.asyncio
@pytest.mark.parametrize(("policy", "left"), [("Retain", 3), ("Delete", 1)])
async def test_claims_stay_or_go_with_their_pods(policy: str, left: int) -> None:
    async with lab() as it:
        request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data"}, "spec": request}
        retention = {"whenScaled": policy, "whenDeleted": "Retain"}
        body = workload(
            "StatefulSet",
            "db",
            3,
            serviceName="db",
            volumeClaimTemplates=[claim],
            persistentVolumeClaimRetentionPolicy=retention,
        )
        body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        await it.client.create(SETS, body)
        await it.until(lambda: it.running(3))
        pod = await it.client.get(POD.path("default", "db-2"))
        assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-db-2"
        await it.kubectl("scale", "statefulset", "db", "--replicas=1")
        await it.until(lambda: it.running(1))

        async def claims() -> bool:
            return len((await it.client.list(CLAIM.path("default")))["items"]) == left

        await it.until(claims)
        await it.let_pass(2)
        assert await claims()
