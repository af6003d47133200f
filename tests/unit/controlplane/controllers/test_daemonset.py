"""Daemon sets against the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import DAEMON_SET, NODE
from unit.controlplane.controllers.support import lab, workload

SETS = DAEMON_SET.path("default")


@pytest.mark.asyncio
async def test_one_pod_a_node_also_on_nodes_that_come_and_on_cordoned_ones() -> None:
    async with lab("3") as it:
        await it.kubectl("cordon", "node-2")
        await it.client.create(SETS, workload("DaemonSet", "agent"))
        await it.until(lambda: it.running(3))
        assert {pod["spec"]["nodeName"] for pod in await it.pods()} == {"node-0", "node-1", "node-2"}
        await it.client.create(NODE.path(), {"metadata": {"name": "late"}})
        await it.until(lambda: it.running(4))
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "daemonset/agent")


@pytest.mark.asyncio
async def test_selector_and_taints_say_where() -> None:
    async with lab("3") as it:
        await it.kubectl("label", "node", "node-0", "node-1", "disk=ssd")
        await it.kubectl("taint", "node", "node-1", "only=gpu:NoSchedule")
        body = workload("DaemonSet", "agent")
        body["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
        await it.client.create(SETS, body)
        await it.until(lambda: it.running(1))
        await it.kubectl("taint", "node", "node-1", "only-")
        await it.until(lambda: it.running(2))
        await it.kubectl("label", "node", "node-0", "disk-")
        await it.until(lambda: it.running(1))
        assert (await it.pods())[0]["spec"]["nodeName"] == "node-1"


@pytest.mark.asyncio
@pytest.mark.parametrize("rolling", [{"maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 0}])
async def test_rollout_and_undo(rolling: dict[str, Any]) -> None:
    async with lab("3") as it:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await it.client.create(SETS, workload("DaemonSet", "agent", updateStrategy=strategy))
        await it.until(lambda: it.running(3))
        await it.kubectl("set", "image", "daemonset/agent", "c=nginx:2")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "daemonset/agent")
        await it.until(lambda: it.running(3))
        assert {pod["spec"]["containers"][0]["image"] for pod in await it.pods()} == {"nginx:2"}
        await it.kubectl("rollout", "undo", "daemonset/agent")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "daemonset/agent")
        await it.until(lambda: it.running(3))
        assert {pod["spec"]["containers"][0]["image"] for pod in await it.pods()} == {"nginx:1"}
