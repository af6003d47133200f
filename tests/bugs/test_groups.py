"""Reported bugs about gangs. Named after their ids."""

from __future__ import annotations

import pytest

from bugs.placing import HOST
from skedge.testing.builders import make_node, make_pod
from unit.scheduler.groups import gang, groups, member, placed

pytestmark = pytest.mark.asyncio


async def test_b098_a_member_keeps_its_own_reason() -> None:
    async with groups() as h:
        gang(h, min_count=2)
        h.add_pod(member("a").priority(1))
        h.add_pod(member("b").pvc("missing"))
        await h.settle()
        messages = {name: (h.condition(name) or {})["message"] for name in "ab"}
        assert 'persistentvolumeclaim "missing" not found' in messages["b"]
        assert messages["a"].startswith("pod group is unschedulable")
        assert placed(h) == {}


async def test_b118_members_hold_no_room_for_ever() -> None:
    async with groups(cpu="9") as h:
        gang(h, min_count=10)
        for i in range(10):
            h.add_pod(member(f"p{i}").priority(10))
        h.add_pod(make_pod("other").req(cpu="9"))
        await h.settle(2.0)
        assert h.scheduler.cache.statistics()["assumed_pods"] == 0
        assert h.node_of("other") == "n0"
        assert not any(h.node_of(f"p{i}") for i in range(10))
        h.validate()


@pytest.mark.parametrize("seed", range(5))
async def test_b119_no_part_of_a_gang_is_bound(seed: int) -> None:
    async with groups(nodes=1, cpu="1", seed=seed) as h:
        gang(h, min_count=2)
        for name in "ab":
            h.add_pod(member(name))
            await h.settle(0.5)
        await h.settle(20.0)
        assert placed(h) == {}
        h.add_node(make_node("n1").capacity(cpu="1"))
        await h.settle(20.0)
        assert sorted(placed(h)) == ["a", "b"]
        h.validate()


@pytest.mark.parametrize("nodes", [1, 2])
async def test_b121_members_see_each_other(nodes: int) -> None:
    async with groups(nodes=nodes) as h:
        gang(h, min_count=2)
        for name in "ab":
            h.add_pod(member(name).label(app="x").pod_affinity(HOST, {"app": "x"}, anti=True))
        await h.settle()
        assert len(set(placed(h).values())) == (2 if nodes == 2 else 0)
        h.validate()
