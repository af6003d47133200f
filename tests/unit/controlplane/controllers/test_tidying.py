"""Garbage, namespaces, silent and vanished nodes, old events."""

from __future__ import annotations

import pytest

from skedge.client.timefmt import rfc3339
from skedge.controlplane.controllers.kinds import DEPLOYMENT, EVENT, LEASE, NAMESPACE, NODE, POD, REPLICA_SET
from unit.controlplane.controllers.support import Lab, lab, workload

DEPLOYMENTS, SETS = DEPLOYMENT.path("default"), REPLICA_SET.path("default")


async def _is_empty(it: Lab, path: str) -> bool:
    return not (await it.client.list(path))["items"]


@pytest.mark.asyncio
@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
async def test_deletion_cascades(cascade: str) -> None:
    async with lab() as it:
        await it.client.create(DEPLOYMENTS, workload("Deployment", "web", 3))
        await it.until(lambda: it.running(3))
        await it.kubectl("delete", "deployment", "web", f"--cascade={cascade}")
        assert await it.gone(f"{DEPLOYMENTS}/web")
        if cascade != "orphan":
            await it.until(lambda: _is_empty(it, POD.path("default")))
            assert await _is_empty(it, SETS)
            return
        await it.let_pass(3)
        assert await it.running(3)
        (left,) = (await it.client.list(SETS))["items"]
        assert "ownerReferences" not in left["metadata"]


@pytest.mark.asyncio
async def test_a_reference_to_nobody_is_taken_out_beside_a_living_owner() -> None:
    async with lab("0") as it:
        path = "/api/v1/namespaces/default/configmaps"
        owner = await it.client.create(path, {"metadata": {"name": "owner"}})
        refs = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "11111111-1111-1111-1111-111111111111"},
        ]
        await it.client.create(path, {"metadata": {"name": "both", "ownerReferences": refs}})
        await it.client.create(path, {"metadata": {"name": "dangling", "ownerReferences": refs[1:]}})
        await it.until(lambda: it.gone(f"{path}/dangling"))

        async def one() -> bool:
            return len((await it.client.get(f"{path}/both"))["metadata"]["ownerReferences"]) == 1

        await it.until(one)
        await it.client.delete(f"{path}/owner")
        await it.until(lambda: it.gone(f"{path}/both"))


@pytest.mark.asyncio
async def test_a_namespace_is_emptied_and_goes() -> None:
    async with lab() as it:
        await it.kubectl("create", "namespace", "shop")
        await it.kubectl("-n", "shop", "create", "deployment", "web", "--image=nginx", "--replicas=2")
        await it.kubectl("-n", "shop", "create", "configmap", "settings", "--from-literal=a=b")

        async def two() -> bool:
            pods = await it.pods(namespace="shop")
            return len(pods) == 2 and all(pod["status"]["phase"] == "Running" for pod in pods)

        await it.until(two)
        await it.kubectl("delete", "namespace", "shop", "--timeout=120s")
        assert await it.gone(NAMESPACE.path(name="shop"))
        for kind in ("pods", "configmaps", "events"):
            assert await _is_empty(it, f"/api/v1/namespaces/shop/{kind}")


@pytest.mark.asyncio
async def test_a_silent_node_loses_its_pods_and_comes_back() -> None:
    """Unknown after 50 s, taints, eviction after the five minutes that pods tolerate by default."""
    async with lab("2") as it:
        await it.client.create(DEPLOYMENTS, workload("Deployment", "web", 4))
        await it.until(lambda: it.running(4))
        await it.kubectl("annotate", "node", "node-0", "skedge.io/fake-node=stopped")
        path = NODE.path(name="node-0")

        async def unreachable() -> bool:
            node = await it.client.get(path)
            taints = {(each["key"], each["effect"]) for each in node["spec"].get("taints", ())}
            key = "node.kubernetes.io/unreachable"
            ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
            return ready["status"] == "Unknown" and taints >= {(key, "NoSchedule"), (key, "NoExecute")}

        await it.until(unreachable, within=120, step=5)
        pods = await it.pods()
        stranded = [pod for pod in pods if pod["spec"]["nodeName"] == "node-0"]
        assert len(stranded) == 2

        async def moved() -> bool:
            pods = await it.pods()
            good = [pod for pod in pods if pod["spec"].get("nodeName") == "node-1"]
            return len(good) == 4 and all("deletionTimestamp" in pod["metadata"] for pod in pods if pod not in good)

        await it.until(moved, within=400, step=5)
        left = [pod for pod in await it.pods() if pod["spec"]["nodeName"] == "node-0"]
        assert len(left) == 2
        conditions = {each["type"]: each.get("reason") for each in left[0]["status"]["conditions"]}
        assert conditions["DisruptionTarget"] == "DeletionByTaintManager"
        await it.kubectl("annotate", "node", "node-0", "skedge.io/fake-node-")
        await it.until(lambda: it.running(4), within=60)

        async def clean() -> bool:
            node = await it.client.get(path)
            return not node["spec"].get("taints")

        await it.until(clean, within=60)


@pytest.mark.asyncio
async def test_cordon_taints_and_a_deleted_node_takes_its_pods_along() -> None:
    async with lab("2") as it:
        await it.client.create(DEPLOYMENTS, workload("Deployment", "web", 4))
        await it.until(lambda: it.running(4))
        await it.kubectl("cordon", "node-0")

        async def tainted() -> bool:
            taints = (await it.client.get(NODE.path(name="node-0")))["spec"].get("taints", ())
            return any(each["key"] == "node.kubernetes.io/unschedulable" for each in taints)

        await it.until(tainted)
        await it.kubectl("delete", "node", "node-0")
        await it.until(lambda: it.gone(LEASE.path("kube-node-lease", "node-0")))

        async def moved() -> bool:
            pods = await it.pods()
            return len(pods) == 4 and all(pod["spec"].get("nodeName") == "node-1" for pod in pods)

        await it.until(moved, within=120, step=2)


@pytest.mark.asyncio
async def test_events_expire() -> None:
    async with lab("0") as it:
        path = EVENT.path("default")
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        for name, age in (("old", 3700), ("young", 100)):
            stamp = rfc3339(it.clock.now() - age)
            event = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "lastTimestamp": stamp}
            await it.client.create(path, event)
        await it.let_pass(400, step=50)
        assert not await it.gone(f"{path}/young")
        await it.let_pass(3600, step=100)
        assert await it.gone(f"{path}/old")
        assert await it.gone(f"{path}/young")
