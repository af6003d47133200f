"""Pod groups that stay within one topology domain."""

from __future__ import annotations

import pytest

from skedge.testing.builders import make_pod
from skedge.testing.harness import Harness
from unit.scheduler.groups import TOPOLOGY, gang, group_condition, groups, member, placed

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]


def racks(*sizes: int, seed: int = 0) -> Harness:
    """Racks r0, r1, ... with nodes of 2 CPU."""
    nodes = {f"r{i}n{j}": f"r{i}" for i, size in enumerate(sizes) for j in range(size)}
    return groups(*TOPOLOGY, nodes=nodes, cpu="2", seed=seed)


def fill(h: Harness, node: str, cpu: int) -> None:
    h.add_pod(make_pod(f"on-{node}-{cpu}").req(cpu=str(cpu)).node(node))


async def chosen(h: Harness, pods: int = 3, min_count: int | None = 3) -> set[str]:
    """The racks that a group's pods end up on."""
    gang(h, min_count=min_count, topology="rack")
    for i in range(pods):
        h.add_pod(member(f"p{i}"))
    async with h:
        await h.settle()
        h.validate()
        return {node[:2] for name, node in placed(h).items() if name.startswith("p")}


async def test_the_rack_that_holds_the_gang() -> None:
    h = racks(3, 2)
    fill(h, "r1n0", 2)
    assert await chosen(h) == {"r0"}


async def test_no_rack_holds_the_gang_until_room_is_made() -> None:
    h = racks(1, 1)
    fill(h, "r0n0", 1)
    gang(h, min_count=2, topology="rack")
    h.add_pod(make_pod("blocker").req(cpu="1").node("r1n0"))
    h.add_pod(member("p0").priority(2))
    h.add_pod(member("p1").priority(1))
    async with h:
        await h.settle()
        assert group_condition(h) == (
            "False",
            "Unschedulable",
            "0/2 placements are available, first placement status: pod group is unschedulable",
        )
        message = (h.condition("p1") or {})["message"]
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        h.delete_pod("blocker")
        await h.settle(advance=60)
        assert {placed(h)[name] for name in ("p0", "p1")} == {"r1n0"}


async def test_the_fuller_rack_wins() -> None:
    """3 of 4 is more than 3 of 6; 5 of 6 more than 4 of 6 and than a rack with nothing on it."""
    assert await chosen(racks(2, 3)) == {"r0"}
    h = racks(2, 3, 3)
    fill(h, "r1n0", 2)
    fill(h, "r2n0", 1)
    assert await chosen(h) == {"r1"}


async def test_a_basic_group_is_tied_to_its_first_domain() -> None:
    h = racks(1, 1)
    gang(h, min_count=None, topology="rack")
    async with h:
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        await h.settle(advance=60)
        assert len({node[:2] for node in placed(h).values()}) == 1
        assert len(placed(h)) == 2


async def test_nodes_without_the_key_are_out() -> None:
    h = groups(*TOPOLOGY, nodes={"n0": "", "n1": ""}, cpu="2")
    assert await chosen(h, 1, 1) == set()
    assert group_condition(h)[2] == "no feasible placements found"


async def test_equal_racks_are_equally_likely() -> None:
    assert {next(iter(await chosen(racks(2, 2, seed=seed)))) for seed in range(10)} == {"r0", "r1"}


async def test_without_constraints_the_whole_cluster_is_one_placement() -> None:
    h = racks(1, 1)
    gang(h, min_count=4)
    for i in range(4):
        h.add_pod(member(f"p{i}"))
    async with h:
        await h.settle()
        assert len(set(placed(h).values())) == 2


async def test_scheduled_pods_in_two_domains() -> None:
    h = racks(2, 2)
    gang(h, min_count=1, topology="rack")
    for i, node in enumerate(("r0n0", "r1n0")):
        pod = member(f"old{i}").node(node)
        h.add_pod(pod)
    h.add_pod(member("p"))
    async with h:
        await h.settle()
        assert group_condition(h) == (
            "False",
            "SchedulerError",
            "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: r0, r1",
        )


async def test_single_pods_of_a_constrained_group_do_not_preempt() -> None:
    h = racks(1)
    h.add_pod(make_pod("low").req(cpu="2").node("r0n0"))
    gang(h, min_count=1, topology="rack")
    h.add_pod(member("p").priority(100))
    async with h:
        await h.settle()
        assert h.deleted == []
        assert (
            "not eligible due to placement-based pod group scheduling limitation"
            in ((h.condition("p") or {})["message"])
        )
