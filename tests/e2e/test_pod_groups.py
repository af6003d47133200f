"""The process with the gates of pod groups on: a gang waits for its group and for its members, and is bound whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from e2e import servers
from e2e.test_process import NODE, PODS, bound, configuration, pod
from skedge.app.process import SchedulerProcess
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


async def condition(operator: servers.Operator, status: str) -> dict[str, Any]:
    """Waits until the group's condition has this status."""
    async with asyncio.timeout(10):
        while True:
            group = await operator.send("GET", f"{GROUPS}/g")
            for each in group.get("status", {}).get("conditions", []):
                if (each["type"], each["status"]) == ("PodGroupScheduled", status):
                    return dict(each)
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_gang() -> None:
    gates = FeatureGates(GenericWorkload=True, GangScheduling=True)
    config = default_configuration(gates)
    config.leader_election = configuration().leader_election
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        await operator.send("POST", "/api/v1/nodes", NODE)
        process = SchedulerProcess(config, servers.as_user(url, servers.SCHEDULER), gates=gates)
        task = asyncio.create_task(process.run())
        try:
            for i in range(5):
                await operator.send("POST", PODS, pod(f"p{i}", schedulingGroup={"podGroupName": "g"}))
            spec = {"schedulingPolicy": {"gang": {"minCount": 5}}}
            group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
            await operator.send("POST", GROUPS, {**group, "spec": spec})
            failed = await condition(operator, "False")
            assert (failed["reason"], failed["message"]) == ("Unschedulable", "pod group is unschedulable")
            more = {**NODE, "metadata": {"name": "more", "labels": {"kubernetes.io/hostname": "more"}}}
            await operator.send("POST", "/api/v1/nodes", more)
            for i in range(5):
                await bound(operator, f"p{i}")
            assert (await condition(operator, "True"))["reason"] == "Scheduled"
        finally:
            process.stop()
            await task
