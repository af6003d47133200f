"""Room for a whole pod group by evicting others."""

from __future__ import annotations

import pytest

from skedge.api.scheduling import PodGroup
from skedge.preemption.workloads import Unit, by_importance, units
from skedge.testing.builders import make_pod
from skedge.testing.harness import Harness
from unit.scheduler.groups import PREEMPTION, gang, group_condition, groups, member, placed

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]


def low(name: str, priority: int = 10, cpu: str = "1", node: str = "n0", group: str = "") -> dict[str, object]:
    pod = make_pod(name).req(cpu=cpu).priority(priority).node(node).label(app="low")
    if group:
        pod.json["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod.json


async def evicted(h: Harness, pods: int, *, cpu: str = "1", priority: int = 100, min_count: int = 0) -> list[str]:
    """Which pods go for a group of so many."""
    gang(h, min_count=min_count or pods, priority=priority)
    for i in range(pods):
        h.add_pod(member(f"p{i}", cpu=cpu))
    async with h:
        await h.settle()
        gone = sorted(key.split("/")[1] for key in h.deleted)
        assert h.scheduler.cache.statistics()["assumed_pods"] == 0
        h.validate()
    return gone


async def test_all_three() -> None:
    h = groups(*PREEMPTION, cpu="3")
    for i in range(3):
        h.add_pod(low(f"low{i}"))
    assert await evicted(h, 3) == ["low0", "low1", "low2"]


async def test_the_one_that_gives_enough_room() -> None:
    h = groups(*PREEMPTION, nodes=2, cpu="2")
    h.add_pod(low("low1", cpu="2"))
    h.add_pod(low("low2", node="n1"))
    assert await evicted(h, 3) == ["low1"]


async def test_a_budget_is_spared() -> None:
    h = groups(*PREEMPTION, cpu="3")
    for i in (1, 2):
        pod = low(f"low{i}")
        pod["metadata"]["labels"] = {"app": "guarded"}  # type: ignore[index]
        h.add_pod(pod)
    h.add_pod(low("low3"))
    h.put(
        "PodDisruptionBudget",
        {
            "metadata": {"namespace": "default", "name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )
    assert await evicted(h, 2, cpu="500m") == ["low3"]


async def test_on_both_nodes() -> None:
    h = groups(*PREEMPTION, nodes=2, cpu="2")
    for i in range(4):
        h.add_pod(low(f"low{i}", node=f"n{i // 2}"))
    assert await evicted(h, 4) == ["low0", "low1", "low2", "low3"]


@pytest.mark.parametrize(
    ("priorities", "pods", "gone"),
    [((500, 10, 10), 3, []), ((50, 10, 10), 2, ["low1", "low2"])],
    ids=["too important", "least important"],
)
async def test_priorities(priorities: tuple[int, ...], pods: int, gone: list[str]) -> None:
    h = groups(*PREEMPTION, cpu="3")
    for i, priority in enumerate(priorities):
        h.add_pod(low(f"low{i}", priority))
    assert await evicted(h, pods) == gone
    if not gone:
        assert group_condition(h)[1:] == ("Unschedulable", "pod group is unschedulable, pod group is unschedulable")


@pytest.mark.parametrize(
    ("victim_group", "victim_pods", "own", "gone"),
    [
        pytest.param(10, 100, 100, ["v0", "v1", "v2"], id="group priorities decide"),
        pytest.param(100, 10, 10, [], id="and nothing else"),
    ],
)
async def test_a_group_goes_as_a_whole(victim_group: int, victim_pods: int, own: int, gone: list[str]) -> None:
    h = groups(*PREEMPTION, cpu="3")
    gang(h, "victims", 3, priority=victim_group, whole=True)
    for i in range(3):
        h.add_pod(low(f"v{i}", victim_pods, group="victims"))
    assert await evicted(h, 1, priority=own) == gone


async def test_priority_of_the_group_alone_counts() -> None:
    """pitfall 129: a group without a priority preempts with 0, whatever its pods have."""
    h = groups(*PREEMPTION, cpu="1")
    gang(h, min_count=1)
    h.add_pod(low("low"))
    h.add_pod(member("p").priority(1000))
    async with h:
        await h.settle()
        assert h.deleted == []
        assert group_condition(h)[2] == (
            "pod group is unschedulable, No preemption victims found for incoming preemptor"
        )


async def test_never() -> None:
    h = groups(*PREEMPTION, cpu="1")
    gang(h, min_count=1, priority=100)
    h.add_pod(low("low"))
    pod = member("p")
    pod.json["spec"]["preemptionPolicy"] = "Never"
    h.add_pod(pod)
    async with h:
        await h.settle()
        assert h.deleted == []
        assert group_condition(h)[2].endswith("not eligible due to preemptionPolicy=Never.")


async def test_topology_constraints_rule_it_out() -> None:
    h = groups(*PREEMPTION, cpu="1")
    gang(h, min_count=1, priority=100, topology="rack")
    h.add_pod(low("low"))
    h.add_pod(member("p"))
    async with h:
        await h.settle()
        assert h.deleted == []
        assert group_condition(h)[2].endswith("not supported for pod groups with scheduling constraints")


async def test_the_group_gets_the_room_in_the_end() -> None:
    h = groups(*PREEMPTION, cpu="3")
    for i in range(3):
        h.add_pod(low(f"low{i}"))
    gang(h, priority=100)
    for i in range(3):
        h.add_pod(member(f"p{i}"))
    async with h:
        await h.settle()
        assert {event.note for event in h.events if event.reason == "Preempted"} == {
            "Preempted by podgroup uid-g on node cluster"
        }
        patched = [patch["status"]["conditions"][0] for key, patch in h.patches if "/low" in key]
        assert {each["message"] for each in patched} == {
            "default-scheduler: preempting to accommodate a higher priority podgroup"
        }
        await h.settle(advance=120)
        assert sorted(placed(h)) == ["p0", "p1", "p2"]
        h.validate()


async def test_a_single_pod_evicts_one_member_of_a_group_that_goes_as_a_whole() -> None:
    """pitfall 122: only groups look at disruptionMode."""
    h = groups(*PREEMPTION, cpu="3")
    gang(h, "victims", 3, priority=10, whole=True)
    for i in range(3):
        h.add_pod(low(f"v{i}", group="victims"))
    h.add_pod(make_pod("single").req(cpu="1").priority(100))
    async with h:
        await h.settle()
        assert len(h.deleted) == 1


# --- units ------------------------------------------------------------------------------------------------------------


async def test_order_of_units() -> None:
    def unit(name: str, priority: int, *, group: str = "", size: int = 1, start: str = "") -> Unit:
        pod = make_pod(name).node("n")
        if start:
            pod.start_time(start)
        if group:
            pod.json["spec"]["schedulingGroup"] = {"podGroupName": group}
        return Unit(priority, (pod.placed(),) * size)

    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    ordered = [
        unit("top", 9),
        unit("large", 5, group="g", size=3, start=late),
        unit("small early", 5, group="g", size=2, start=early),
        unit("small late", 5, group="g", size=2, start=late),
        unit("early", 5, start=early),
        unit("late", 5, start=late),
        unit("low", 1, group="g", size=9),
    ]
    assert by_importance(reversed(ordered)) == ordered


async def test_members_of_a_group_that_is_disrupted_one_by_one_are_units_of_their_own() -> None:
    """Also those whose group is gone."""
    pods = []
    for name in ("a", "b"):
        pod = make_pod(name).node("n").priority(3)
        pod.json["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        pods.append(pod.placed())
    found: PodGroup | None = None
    assert [unit.priority for unit in units(pods, lambda pod: found)] == [3, 3]
