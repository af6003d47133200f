"""Fake nodes against the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import LEASE, NODE, POD
from skedge.controlplane.nodes.images import full_name
from skedge.controlplane.nodes.stages import parse_stages
from unit.controlplane.controllers.support import Lab, lab

PODS = POD.path("default")


def pod(name: str, image: str = "nginx", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


async def _lease(it: Lab, name: str) -> str:
    found = await it.client.get(LEASE.path("kube-node-lease", name))
    return str(found["spec"]["renewTime"])


@pytest.mark.asyncio
async def test_a_pod_runs_and_its_node_has_the_image() -> None:
    async with lab("2") as it:
        await it.client.create(PODS, pod("web"))
        await it.until(lambda: it.running(1))
        found = await it.client.get(f"{PODS}/web")
        status = found["status"]
        assert status["podIP"] == status["podIPs"][0]["ip"]
        assert status["hostIP"].startswith("172.")
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "PodScheduled": "True",
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
        }
        assert status["containerStatuses"][0]["ready"] is True
        assert (await it.kubectl("get", "pod", "web")).splitlines()[1].split()[:4] == ["web", "1/1", "Running", "0"]

        async def images() -> bool:
            node = await it.client.get(NODE.path(name=found["spec"]["nodeName"]))
            names = [name for each in node["status"].get("images") or () for name in each["names"]]
            return names == ["docker.io/library/nginx:latest", "nginx:latest"]

        await it.until(images)


@pytest.mark.asyncio
async def test_an_adopted_node_becomes_ready_and_beats() -> None:
    async with lab("0") as it:
        await it.client.create(NODE.path(), {"metadata": {"name": "mine"}, "status": {"capacity": {"cpu": "3"}}})

        async def ready() -> bool:
            node = await it.client.get(NODE.path(name="mine"))
            conditions = {each["type"]: each["status"] for each in node["status"].get("conditions") or ()}
            return conditions.get("Ready") == "True" and not node["spec"].get("taints")

        await it.until(ready)
        node = await it.client.get(NODE.path(name="mine"))
        assert node["status"]["allocatable"] == {"cpu": "3"}
        await it.let_pass(1)
        first = await _lease(it, "mine")
        await it.let_pass(25, step=1)
        second = await _lease(it, "mine")
        assert second > first
        await it.client.patch(NODE.path(name="mine"), {"metadata": {"annotations": {"skedge.io/fake-node": "stopped"}}})
        await it.let_pass(2)
        last = await _lease(it, "mine")
        await it.let_pass(30, step=1)
        assert await _lease(it, "mine") == last


@pytest.mark.asyncio
async def test_conditions_are_confirmed_every_five_minutes() -> None:
    async with lab("1") as it:

        async def conditions() -> dict[str, tuple[str, str]]:
            node = await it.client.get(NODE.path(name="node-0"))
            found = node["status"]["conditions"]
            return {each["type"]: (each["lastHeartbeatTime"], each["lastTransitionTime"]) for each in found}

        before = await conditions()
        await it.let_pass(320, step=5)
        after = await conditions()
        assert len(after) == 4
        for type, (heartbeat, transition) in after.items():
            assert heartbeat > before[type][0]
            assert transition == before[type][1]


@pytest.mark.asyncio
async def test_how_pods_end() -> None:
    async with lab("1") as it:
        ends = {
            "good": {"skedge.io/run-seconds": "3"},
            "bad": {"skedge.io/run-seconds": "3", "skedge.io/exit-code": "1"},
        }
        for name, annotations in ends.items():
            body = pod(name, restartPolicy="Never")
            body["metadata"]["annotations"] = annotations
            await it.client.create(PODS, body)
        await it.until(lambda: it.running(2))

        async def phases() -> dict[str, str]:
            return {each["metadata"]["name"]: each["status"]["phase"] for each in await it.pods()}

        async def ended() -> bool:
            return await phases() == {"good": "Succeeded", "bad": "Failed"}

        await it.until(ended)
        await it.client.create(PODS, pod("stays"))
        await it.until(lambda: _is(it, "stays", "Running"))
        await it.kubectl("delete", "pod", "stays")
        assert await it.gone(f"{PODS}/stays")


async def _is(it: Lab, name: str, phase: str) -> bool:
    return bool((await it.client.get(f"{PODS}/{name}"))["status"]["phase"] == phase)


STAGES = """
kind: Stage
apiVersion: skedge.io/v1
metadata: {name: start}
spec:
  resourceRef: {kind: Pod}
  selector: {matchExpressions: [{key: .status.phase, operator: In, values: [Pending]}]}
  weight: 3
  next: {statusTemplate: {phase: Running, conditions: "${conditions.running}"}}
---
kind: Stage
apiVersion: skedge.io/v1
metadata: {name: break}
spec:
  resourceRef: {kind: Pod}
  selector: {matchExpressions: [{key: .status.phase, operator: In, values: [Pending]}]}
  weight: 1
  next: {statusTemplate: {phase: Failed, reason: BadLuck, message: "${name} broke"}}
---
kind: Stage
apiVersion: skedge.io/v1
metadata: {name: leave-slowly}
spec:
  resourceRef: {kind: Pod}
  selector: {matchExpressions: [{key: .metadata.deletionTimestamp, operator: Exists}]}
  delay: {durationFrom: {expressionFrom: .metadata.deletionGracePeriodSeconds}}
  next: {delete: true}
"""


@pytest.mark.asyncio
async def test_failure_rates_and_grace_periods() -> None:
    async with lab("1", stages=parse_stages(STAGES)) as it:
        for number in range(40):
            await it.client.create(PODS, pod(f"p{number}"))

        async def started() -> bool:
            return all(each["status"]["phase"] != "Pending" for each in await it.pods())

        await it.until(started)
        failed = [each for each in await it.pods() if each["status"]["phase"] == "Failed"]
        assert 4 <= len(failed) <= 18
        assert failed[0]["status"]["message"] == f"{failed[0]['metadata']['name']} broke"
        name = next(each["metadata"]["name"] for each in await it.pods() if each["status"]["phase"] == "Running")
        await it.client.delete(f"{PODS}/{name}")
        await it.let_pass(25, step=1)
        assert not await it.gone(f"{PODS}/{name}")
        await it.until(lambda: it.gone(f"{PODS}/{name}"))


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("team/app:2", "docker.io/team/app:2"),
        ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("x@sha256:00", "docker.io/library/x@sha256:00"),
    ],
)
def test_full_names_of_images(image: str, name: str) -> None:
    assert full_name(image) == name
