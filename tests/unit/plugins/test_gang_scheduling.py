"""GangScheduling, TopologyPlacementGenerator, PodGroupPodsCount, and how NodeResourcesFit scores placements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from skedge.api.scheduling import PodGroup
from skedge.cache.cache import Cache
from skedge.cache.pod_groups import PodGroups
from skedge.config.plugin_args import NodeResourcesFitArgs
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.framework.workloads import Placement
from skedge.plugins.gang_scheduling import NOT_APPEARED, NOT_SCHEDULED, GangScheduling
from skedge.plugins.noderesources.fit import NodeResourcesFit
from skedge.plugins.pod_group_pods_count import NO_PODS, PodGroupPodsCount
from skedge.plugins.topology_placement import UNDETERMINED, TopologyPlacementGenerator
from skedge.snapshot.pods import PodInfo
from skedge.stores.store import Store
from skedge.testing.builders import PodBuilder, make_node, make_pod


def member(name: str, group: str | None = "g", namespace: str = "default") -> PodBuilder:
    pod = make_pod(name, namespace).uid(f"uid-{name}")
    if group is not None:
        pod.json["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def pod_group(name: str = "g", min_count: int | None = 3, topology: str | None = None) -> PodGroup:
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy}
    if topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return msgspec.convert({"metadata": {"namespace": "default", "name": name}, "spec": spec}, PodGroup)


class World:
    """A handle with a cache behind it; `allowed` and `activated` are what the plugin asked for."""

    def __init__(self, *groups: PodGroup) -> None:
        self.cache = Cache()
        self.groups = self.cache.groups = PodGroups(gang=True)
        self.allowed: list[str] = []
        self.activated: list[str] = []
        store: Store[Any] = Store()
        for group in groups:
            store.set(group)
        self.handle = SimpleNamespace(
            listers=SimpleNamespace(pod_groups=store),
            pod_groups=self.groups,
            table=self.cache.table,
            waiting_pods=self,
            activate=lambda pods: self.activated.extend(pod.name for pod in pods),
        )

    def allow(self, uid: str, plugin: str) -> None:
        assert plugin == "GangScheduling"
        self.allowed.append(uid)

    def assume(self, name: str, node: str = "n") -> PodInfo:
        info = member(name).info()
        self.groups.put(info)
        self.cache.assume_pod(info, node)
        return info

    def assign(self, name: str, node: str = "n") -> None:
        self.cache.add_pod(member(name).node(node).placed())


# --- GangScheduling ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "known", "pod", "code", "reason"),
    [
        ([pod_group()], ["a", "b"], member("a"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NOT_APPEARED),
        ([pod_group()], ["a", "b", "c"], member("a"), Code.SUCCESS, ""),
        ([pod_group(min_count=None)], ["a"], member("a"), Code.SUCCESS, ""),
        ([], [], member("a", None), Code.SUCCESS, ""),
        (
            [],
            ["a"],
            member("a"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
        ),
        (
            [pod_group()],
            ["a"],
            member("a", namespace="elsewhere"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
        ),
        ([pod_group()], [], member("a"), Code.ERROR, "pod group state not found for pod group default/g"),
    ],
)
def test_pre_enqueue(groups: list[PodGroup], known: list[str], pod: PodBuilder, code: Code, reason: str) -> None:
    world = World(*groups)
    for name in known:
        world.groups.put(member(name).info())
    status = GangScheduling(None, world.handle).pre_enqueue(pod.info())
    assert (status.code, status.message) == (code, reason)


def test_every_known_pod_counts() -> None:
    world = World(pod_group())
    world.groups.put(member("a").info())
    world.assume("b")
    world.assign("c")
    assert GangScheduling(None, world.handle).pre_enqueue(member("a").info()).ok


def test_permit_holds_back_until_enough_have_a_node() -> None:
    world = World(pod_group())
    plugin = GangScheduling(None, world.handle)
    world.groups.put(member("c").info())
    world.assume("a")
    second = world.assume("b")
    status, seconds = plugin.permit(CycleState(), second, "n")
    assert (status.code, status.message, seconds) == (Code.WAIT, NOT_SCHEDULED, 300.0)
    assert (world.activated, world.allowed) == (["c"], [])
    third = world.assume("c")
    assert plugin.permit(CycleState(), third, "n")[0].ok
    assert sorted(world.allowed) == ["uid-a", "uid-b", "uid-c"]


@pytest.mark.parametrize(
    ("groups", "pod", "code", "message"),
    [
        ([], member("a", None), Code.SUCCESS, ""),
        ([pod_group(min_count=None)], member("a"), Code.SUCCESS, ""),
        (
            [],
            member("a"),
            Code.ERROR,
            'failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found',
        ),
    ],
)
def test_permit_of_others(groups: list[PodGroup], pod: PodBuilder, code: Code, message: str) -> None:
    status, _ = GangScheduling(None, World(*groups).handle).permit(CycleState(), pod.info(), "n")
    assert (status.code, status.message) == (code, message)


@pytest.mark.parametrize(
    ("new", "hint"),
    [
        (member("b"), QueueingHint.QUEUE),
        (member("b", "other"), QueueingHint.QUEUE_SKIP),
        (member("b", None), QueueingHint.QUEUE_SKIP),
        (member("b", namespace="elsewhere"), QueueingHint.QUEUE_SKIP),
    ],
)
def test_hint_for_pods(new: PodBuilder, hint: QueueingHint) -> None:
    plugin = GangScheduling(None, World().handle)
    assert plugin.after_pod_add(member("a").info(), None, new.info()) is hint


def test_hint_for_groups() -> None:
    plugin = GangScheduling(None, World().handle)
    assert plugin.after_group_add(member("a").info(), None, pod_group()) is QueueingHint.QUEUE
    assert plugin.after_group_add(member("a").info(), None, pod_group("other")) is QueueingHint.QUEUE_SKIP


# --- placements -------------------------------------------------------------------------------------------------------

DOMAINS = {"n1": None, "n2": "d1", "n3": "d2", "n4": "d1", "n5": "d3"}


def with_domains(*scheduled: tuple[str, str]) -> World:
    world = World()
    for name, domain in DOMAINS.items():
        node = make_node(name)
        world.cache.add_node((node if domain is None else node.label(rack=domain)).obj())
    for name, node_name in scheduled:
        if name.startswith("assumed"):
            world.assume(name, node_name)
        else:
            world.assign(name, node_name)
    return world


def placements(world: World, *, topology: str | None = "rack", nodes: str = "n1 n2 n3 n4 n5") -> dict[str, list[str]]:
    table = world.cache.table
    parent = Placement("all", np.array([table.row_of[name] for name in nodes.split()]))
    found = TopologyPlacementGenerator(None, world.handle).placement_generate(pod_group(topology=topology), parent)
    return {each.name: [table.names[row] for row in each.rows] for each in found}


@pytest.mark.parametrize(
    ("scheduled", "options", "expected"),
    [
        ([], {}, {"d1": ["n2", "n4"], "d2": ["n3"], "d3": ["n5"]}),
        ([], {"topology": "other"}, {}),
        ([], {"topology": None}, {"all": ["n1", "n2", "n3", "n4", "n5"]}),
        ([("a", "n2")], {}, {"d1": ["n2", "n4"]}),
        ([("a", "n2"), ("assumed", "n4")], {}, {"d1": ["n2", "n4"]}),
        ([("a", "n2")], {"nodes": "n3 n5"}, {}),
    ],
)
def test_placements(scheduled: list[tuple[str, str]], options: dict[str, Any], expected: dict[str, list[str]]) -> None:
    assert placements(with_domains(*scheduled), **options) == expected


@pytest.mark.parametrize(
    ("scheduled", "error"),
    [
        ([("a", "n2"), ("b", "n3")], "more than 1 domain found for pod group: d1, d2"),
        ([("a", "n1")], "no topology domain found for pod default/a"),
        ([("a", "n9")], 'getting node for pod default/a: nodeinfo not found for node name "n9"'),
    ],
)
def test_scheduled_pods_without_one_domain(scheduled: list[tuple[str, str]], error: str) -> None:
    with pytest.raises(PluginError) as raised:
        placements(with_domains(*scheduled))
    assert str(raised.value) == UNDETERMINED + error


def test_count_of_pods() -> None:
    world = with_domains(("a", "n2"), ("b", "n2"), ("assumed", "n2"))
    plugin = PodGroupPodsCount(None, world.handle)
    proposed = [member("x").info(), member("y").info()]
    assert plugin.placement_score(pod_group(), Placement("", np.array([0])), proposed) == 5


@pytest.mark.parametrize(
    ("raw", "scaled"),
    [
        ([10, 50, 110], [9, 45, 100]),
        ([50, 50], [100, 100]),
        ([7], [100]),
        ([11, 100, 101, 102], [10, 98, 99, 100]),
    ],
)
def test_count_of_pods_scaled(raw: list[int], scaled: list[int]) -> None:
    assert PodGroupPodsCount(None, World().handle).placement_normalize(raw) == scaled


def test_no_pods_at_all() -> None:
    with pytest.raises(PluginError, match=NO_PODS):
        PodGroupPodsCount(None, World().handle).placement_normalize([0, 0])


@pytest.mark.parametrize(
    ("weights", "existing", "nodes", "score"),
    [
        ((1, 1), "0", ["n1", "n2"], 25),
        ((4, 1), "0", ["n1", "n2"], 28),
        ((1, 1), "1", ["n1", "n2"], 30),
        ((1, 1), "1", ["n1"], 50),
    ],
)
def test_fit_of_a_placement(weights: tuple[int, int], existing: str, nodes: list[str], score: int) -> None:
    world = World()
    for name in ("n1", "n2", "outside"):
        world.cache.add_node(make_node(name).capacity(cpu="5", memory="5000").obj())
    world.cache.add_pod(make_pod("old").req(cpu=existing, memory="0").node("n2").placed())
    world.cache.add_pod(make_pod("elsewhere").req(cpu="5", memory="0").node("outside").placed())
    args = NodeResourcesFitArgs.default()
    assert args.scoring_strategy.resources is not None
    for resource, weight in zip(args.scoring_strategy.resources, weights, strict=True):
        resource.weight = weight
    plugin = NodeResourcesFit(args, world.handle)
    proposed = [make_pod("x").req(cpu="1", memory="0").info(), make_pod("y").req(cpu="2", memory="2000").info()]
    rows = np.array([world.cache.table.row_of[name] for name in nodes])
    assert plugin.placement_score(pod_group(), Placement("", rows), proposed) == score
