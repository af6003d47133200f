"""Disruption budgets and evictions against the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.client.errors import TooManyRequests
from skedge.controlplane.controllers.kinds import BUDGET, DEPLOYMENT, POD
from unit.controlplane.controllers.support import Lab, lab, workload

BUDGETS = BUDGET.path("default")


async def _figures(it: Lab) -> tuple[int, int, int, int]:
    status = (await it.client.get(f"{BUDGETS}/web"))["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status.get(each, 0) for each in fields)  # type: ignore[return-value]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("bound", "figures"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": "60%"}, (4, 3, 4, 1)),
        ({"maxUnavailable": 2}, (4, 2, 4, 2)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"minAvailable": 5}, (4, 5, 4, 0)),
    ],
)
async def test_figures(bound: dict[str, Any], figures: tuple[int, ...]) -> None:
    async with lab() as it:
        await it.client.create(DEPLOYMENT.path("default"), workload("Deployment", "web", 4))
        budget = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **bound}}
        await it.client.create(BUDGETS, budget)

        async def right() -> bool:
            return await _figures(it) == figures

        await it.until(right)


@pytest.mark.asyncio
async def test_evictions_are_counted_and_a_drain_keeps_the_budget() -> None:
    async with lab() as it:
        await it.client.create(DEPLOYMENT.path("default"), workload("Deployment", "web", 4))
        selector = {"matchLabels": {"app": "web"}}
        await it.client.create(
            BUDGETS, {"metadata": {"name": "web"}, "spec": {"selector": selector, "minAvailable": 2}}
        )

        async def ready() -> bool:
            return await _figures(it) == (4, 2, 4, 2)

        await it.until(ready)
        pods = [pod["metadata"]["name"] for pod in await it.pods()]

        async def evict(name: str) -> None:
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            await it.client.create(POD.path("default", name, "eviction"), body)

        await evict(pods[0])
        await evict(pods[1])
        with pytest.raises(TooManyRequests):
            await evict(pods[2])
        await it.until(ready)
        text = await it.kubectl("drain", "node-0", "--ignore-daemonsets", "--timeout=120s")
        assert "drained" in text
        assert not [pod for pod in await it.pods() if pod["spec"].get("nodeName") == "node-0"]
        await it.until(ready)
