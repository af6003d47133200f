"""How fast nodes may lose their pods, zone by zone."""

from __future__ import annotations

import pytest

from skedge.clock import VirtualClock
from skedge.controlplane.controllers.kinds import NODE
from skedge.controlplane.controllers.objects import Meta, Node, NodeCondition, NodeStatus
from skedge.controlplane.controllers.zones import Zones
from unit.controlplane.controllers.support import lab


def node(zone: str, ready: bool) -> Node:
    condition = NodeCondition("Ready", "True" if ready else "Unknown")
    labels = {"topology.kubernetes.io/zone": zone}
    return Node(Meta("n", labels=labels), status=NodeStatus(conditions=(condition,)))


def zone(name: str, ready: int, down: int) -> list[Node]:
    return [node(name, True)] * ready + [node(name, False)] * down


@pytest.mark.parametrize(
    ("ready", "down", "next_wait"),
    [
        (9, 1, 10.0),
        (1, 2, 10.0),  # a small zone with two nodes down is no disruption
        (2, 4, None),  # most of a small zone is down
        (20, 40, 100.0),  # most of a large one
        (0, 5, 10.0),  # all of it, while others are up
    ],
)
def test_rates(ready: int, down: int, next_wait: float | None) -> None:
    zones = Zones(VirtualClock())
    assert not zones.assess([*zone("a", ready, down), *zone("b", 3, 0)])
    assert zones.wait(node("a", False)) == (None if next_wait is None else 0.0)
    assert zones.wait(node("a", False)) == next_wait
    assert zones.wait(node("b", False)) == 0.0


def test_nobody_goes_while_everything_is_down() -> None:
    zones = Zones(VirtualClock())
    assert zones.assess([*zone("a", 0, 3), *zone("b", 0, 1)])
    assert zones.all_down
    assert zones.wait(node("a", False)) is None
    assert zones.assess([*zone("a", 0, 3), *zone("b", 1, 0)])
    assert zones.wait(node("a", False)) == 0.0


@pytest.mark.asyncio
async def test_nodes_of_a_zone_are_given_up_one_after_another_and_not_all_at_once() -> None:
    async with lab("9") as it:
        names = [f"node-{i}" for i in (0, 3, 6)]  # a whole zone
        for name in names:
            await it.client.patch(
                NODE.path(name=name), {"metadata": {"annotations": {"skedge.io/fake-node": "stopped"}}}
            )

        async def evicting() -> int:
            nodes = (await it.client.list(NODE.path()))["items"]
            return sum(any(t["effect"] == "NoExecute" for t in each["spec"].get("taints", ())) for each in nodes)

        async def some() -> bool:
            return await evicting() > 0

        await it.until(some, within=120, step=1)
        assert await evicting() == 1
        await it.let_pass(12, step=1)
        assert await evicting() == 2
        for i in range(9):
            body = {"metadata": {"annotations": {"skedge.io/fake-node": "stopped"}}}
            await it.client.patch(NODE.path(name=f"node-{i}"), body)

        async def none() -> bool:
            return await evicting() == 0

        await it.until(none, within=120, step=2)  # everything is down: it is more likely us
