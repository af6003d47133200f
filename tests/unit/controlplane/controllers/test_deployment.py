"""Deployments against the real API server, mostly as kubectl sees them."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import DEPLOYMENT, REPLICA_SET
from unit.controlplane.controllers.support import Lab, lab, workload

DEPLOYMENTS, SETS = DEPLOYMENT.path("default"), REPLICA_SET.path("default")


async def _images(it: Lab) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in await it.pods()}


async def _sizes(it: Lab) -> dict[str, int]:
    """Sizes of replica sets by image."""
    sets = (await it.client.list(SETS))["items"]
    return {each["spec"]["template"]["spec"]["containers"][0]["image"]: each["spec"]["replicas"] for each in sets}


@pytest.mark.asyncio
async def test_kubectl_story() -> None:
    """Create, scale, new image, restart, undo, history, pause and resume, delete with everything below."""
    async with lab() as it:
        await it.kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=4")
        text = await it.kubectl("rollout", "status", "deployment/web", "--timeout=300s")
        assert 'deployment "web" successfully rolled out' in text
        assert await it.running(4, "app=web")
        await it.kubectl("scale", "deployment", "web", "--replicas=6")
        await it.until(lambda: it.running(6, "app=web"))
        await it.kubectl("set", "image", "deployment/web", "nginx=nginx:2")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "deployment/web")
        await it.until(lambda: it.running(6, "app=web"))
        assert await _images(it) == {"nginx:2"}
        assert await _sizes(it) == {"nginx:1": 0, "nginx:2": 6}
        await it.kubectl("rollout", "restart", "deployment/web")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "deployment/web")
        history = await it.kubectl("rollout", "history", "deployment/web")
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2", "3"]
        await it.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "deployment/web")
        await it.until(lambda: it.running(6, "app=web"))
        assert await _images(it) == {"nginx:1"}
        history = await it.kubectl("rollout", "history", "deployment/web")
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3", "4"]
        await it.kubectl("rollout", "pause", "deployment/web")
        await it.kubectl("set", "image", "deployment/web", "nginx=nginx:3")
        await it.let_pass(5)
        assert await _images(it) == {"nginx:1"}
        await it.kubectl("rollout", "resume", "deployment/web")
        assert "successfully rolled out" in await it.kubectl("rollout", "status", "deployment/web")
        line = (await it.kubectl("get", "deployment", "web")).splitlines()[1].split()
        assert line[:4] == ["web", "6/6", "6", "6"]
        events = await it.kubectl("get", "events", "--field-selector=reason=ScalingReplicaSet")
        assert "from 4 to 6" in events


def _limits(surge: Any, unavailable: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("strategy", "most", "least"),
    [(_limits(1, 0), 5, 4), (_limits(0, 1), 4, 3), (_limits("50%", "25%"), 6, 3), ({"type": "Recreate"}, 4, 0)],
    ids=["surge", "unavailable", "percent", "recreate"],
)
async def test_a_rollout_keeps_its_bounds(strategy: dict[str, Any], most: int, least: int) -> None:
    async with lab() as it:
        await it.client.create(DEPLOYMENTS, workload("Deployment", "web", 4, strategy=strategy))

        async def available() -> bool:
            return bool((await it.client.get(f"{DEPLOYMENTS}/web"))["status"].get("availableReplicas") == 4)

        await it.until(available)
        container = {"name": "c", "image": "nginx:2"}
        patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
        await it.client.patch(f"{DEPLOYMENTS}/web", patch)
        seen_most = seen_least = 4

        async def done() -> bool:
            nonlocal seen_most, seen_least
            pods = [pod for pod in await it.pods() if "deletionTimestamp" not in pod["metadata"]]
            ready = sum(
                any(
                    each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ())
                )
                for pod in pods
            )
            seen_most, seen_least = max(seen_most, len(pods)), min(seen_least, ready)
            images = {pod["spec"]["containers"][0]["image"] for pod in pods}
            if strategy["type"] == "Recreate":
                assert len(images) <= 1
            return images == {"nginx:2"} and ready == 4 and len(pods) == 4

        await it.until(done, step=0.1)
        assert seen_most <= most
        assert seen_least >= least


@pytest.mark.asyncio
async def test_a_rollout_that_stands_still_times_out() -> None:
    async with lab(schedule=False) as it:
        body = workload("Deployment", "web", 1, progressDeadlineSeconds=30)
        await it.client.create(DEPLOYMENTS, body)

        async def timed_out() -> bool:
            conditions = (await it.client.get(f"{DEPLOYMENTS}/web"))["status"].get("conditions", ())
            return any(each.get("reason") == "ProgressDeadlineExceeded" for each in conditions)

        await it.until(timed_out, within=60, step=1.0)


@pytest.mark.asyncio
async def test_history_is_limited() -> None:
    async with lab() as it:
        await it.client.create(DEPLOYMENTS, workload("Deployment", "web", 1, revisionHistoryLimit=1))
        for version in range(2, 5):
            await it.until(lambda: it.running(1))
            container = {"name": "c", "image": f"nginx:{version}"}
            patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
            await it.client.patch(f"{DEPLOYMENTS}/web", patch)

            async def rolled(image: str = f"nginx:{version}") -> bool:
                return await _images(it) == {image}

            await it.until(rolled)

        async def short() -> bool:
            return await _sizes(it) == {"nginx:3": 0, "nginx:4": 1}

        await it.until(short)
