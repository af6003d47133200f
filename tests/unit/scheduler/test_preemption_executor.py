"""Victims are made to go: requests, events, gating of the preemptor, and every way it may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.types import Plugin
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio

RUNNING = "waiting for the preemption for this pod to be finished"


class Counting(SchedulerHooks):
    def __init__(self) -> None:
        self.attempts = 0
        self.victims: list[int] = []
        self.results: list[str] = []
        self.under_way = {"DefaultPreemption": 0}

    def preemption_attempt(self) -> None:
        self.attempts += 1

    def preemption_victims(self, victims: int) -> None:
        self.victims.append(victims)

    def preemption_goroutine(self, result: str, seconds: float) -> None:
        self.results.append(result)

    def goroutines(self, operation: str, change: int) -> None:
        self.under_way[operation] += change


class Cluster(Harness):
    """Requests about victims may be held up (`hold`) or refused once (`refuse_...`: pod's name -> what is raised)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.hooks = Counting()
        super().__init__(*args, hooks=self.hooks, **more)
        self.hold: asyncio.Event | None = None
        self.refuse_patch: dict[str, Exception] = {}
        self.refuse_delete: dict[str, Exception] = {}
        self.gone_early: set[str] = set()
        self.takes_its_time: set[str] = set()

    async def patch_status(self, pod: Any, patch: Mapping[str, Any]) -> None:
        if pod.name in self.refuse_patch:
            raise self.refuse_patch.pop(pod.name)
        await super().patch_status(pod, patch)

    async def delete(self, pod: PlacedPod) -> bool:
        if self.hold is not None:
            await self.hold.wait()
        if pod.name in self.refuse_delete:
            raise self.refuse_delete.pop(pod.name)
        if pod.name in self.gone_early:
            self.delete_pod(pod.name, pod.namespace)
            return False
        if pod.name in self.takes_its_time:
            self.deleted.append(pod.key)
            return True
        return await super().delete(pod)

    def preempted(self) -> list[tuple[str, str]]:
        return [(event.pod, event.note) for event in self.events if event.reason == "Preempted"]

    def gate_of(self, name: str) -> str:
        plugins = self.scheduler.profiles["default-scheduler"].pre_enqueue
        pod = self.store[f"default/{name}"]
        assert isinstance(pod, PodInfo)
        return next((s.message for plugin in plugins if not (s := plugin.pre_enqueue(pod)).ok), "")


def low(name: str, cpu: str = "1", node: str = "n1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu).priority(0).node(node).start_time("2026-01-01T00:00:00Z")


def full(cluster: Cluster, *pods: PodBuilder) -> None:
    cluster.add_node(make_node("n1").capacity(cpu="2"))
    for pod in pods or (low("a"), low("b")):
        cluster.add_pod(pod)


async def test_victims_go_and_the_preemptor_gets_their_room() -> None:
    async with Cluster() as h:
        full(h)
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        await h.settle(20.0)
        assert sorted(h.deleted) == ["default/a", "default/b"]
        uid = h.store["default/p"].uid
        note = f"Preempted by pod {uid} on node n1"
        assert sorted(h.preempted()) == [("default/a", note), ("default/b", note)]
        assert h.node_of("p") == "n1"
        condition = next(patch for key, patch in h.patches if key == "default/a")["status"]["conditions"][0]
        assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
        assert condition["reason"] == "PreemptionByScheduler"
        assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        nominations = [patch["status"].get("nominatedNodeName") for key, patch in h.patches if key == "default/p"]
        assert nominations == ["n1"]
        assert (h.hooks.attempts, h.hooks.victims, h.hooks.results) == (1, [2], ["success"])
        h.validate()


async def test_the_preemptor_is_gated_until_the_last_victim_is_seen_to_go() -> None:
    async with Cluster() as h:
        full(h)
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.gate_of("p") == RUNNING
        assert h.hooks.under_way == {"DefaultPreemption": 1}
        h.add_node(make_node("n2").capacity(cpu="2"))  # wakes it, but it is gated
        await h.settle(20.0)
        assert h.node_of("p") == ""
        h.hold.set()
        await h.settle()
        assert h.hooks.under_way == {"DefaultPreemption": 0}
        await h.settle(20.0)
        assert h.node_of("p") == "n1"


async def test_pitfall_121_a_deletion_mark_on_the_last_victim_ends_the_gating() -> None:
    async with Cluster() as h:
        full(h, low("a", cpu="2"))
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.gate_of("p") == RUNNING
        h.update_pod(low("a", cpu="2").terminating())
        assert h.gate_of("p") == ""
        h.hold.set()
        await h.settle()


async def test_a_preemptor_whose_victims_all_went_by_themselves_is_woken_when_the_preemption_ends() -> None:
    async with Cluster(max_in_unschedulable=float("inf")) as h:
        full(h)
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        h.delete_pod("a")
        h.delete_pod("b")
        await h.settle(20.0)
        assert h.gate_of("p") == RUNNING
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        assert h.node_of("p") == "n1"


async def test_pitfall_118_victims_that_are_going_already_are_left_alone() -> None:
    async with Cluster() as h:
        full(h, low("a").terminating(), low("b").terminating())
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.deleted == []
        assert [key for key, _ in h.patches] == ["default/p"]
        assert h.json["default/p"]["status"]["nominatedNodeName"] == "n1"
        assert h.gate_of("p") == ""
        assert h.hooks.victims == []


async def test_pitfall_123_the_number_of_victims_counts_those_that_are_going() -> None:
    async with Cluster() as h:
        full(h, low("a").terminating(), low("b"))
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.deleted == ["default/b"]
        assert h.hooks.victims == [2]


async def test_pitfall_119_a_victim_that_is_gone_already_makes_no_event() -> None:
    async with Cluster() as h:
        full(h)
        h.gone_early = {"a"}
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        await h.settle(20.0)
        assert [pod for pod, _ in h.preempted()] == ["default/b"]
        assert h.hooks.results == ["success"]
        assert h.node_of("p") == "n1"


async def test_pitfall_124_a_victim_whose_patch_fails_is_not_deleted_and_the_preemptor_tries_again() -> None:
    async with Cluster() as h:
        full(h, low("a", cpu="2"))
        h.refuse_patch = {"a": OSError("refused")}
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.hooks.results == ["error"]
        assert h.hooks.attempts == 2  # activated at once
        assert h.deleted == []
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        assert h.deleted == ["default/a"]
        assert h.node_of("p") == "n1"
        h.validate()


async def test_a_failure_spares_the_last_victim() -> None:
    async with Cluster() as h:
        full(h)
        h.refuse_delete = {"a": OSError("no"), "b": OSError("no")}
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert len([key for key, _ in h.patches if key != "default/p"]) == 1
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        await h.settle(20.0)
        assert h.hooks.results[0] == "error"
        assert h.hooks.results[-1] == "success"
        assert h.node_of("p") == "n1"


async def test_lower_nominations_on_the_node_are_cleared() -> None:
    async with Cluster() as h:
        full(h, low("a", cpu="2"))
        h.hold = asyncio.Event()
        h.add_pod(make_pod("mid").req(cpu="2").priority(5))
        await h.settle()
        assert h.json["default/mid"]["status"]["nominatedNodeName"] == "n1"
        h.add_pod(make_pod("high").req(cpu="2").priority(10))
        await h.settle()
        assert h.json["default/high"]["status"]["nominatedNodeName"] == "n1"
        assert h.json["default/mid"]["status"]["nominatedNodeName"] == ""
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        assert h.node_of("high") == "n1"
        assert h.node_of("mid") == ""


class Holding:
    """Holds pods of priority 0 back: on Permit, or in PreBind."""

    name = "Holding"

    def __init__(self, point: str) -> None:
        self.point = point

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if self.point == "permit" and pod.priority == 0:
            return Status(Code.WAIT), 600.0
        return SUCCESS, 0.0

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        return SUCCESS, False

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if self.point == "pre_bind" and pod.priority == 0:
            await asyncio.Event().wait()
        return SUCCESS


@pytest.mark.parametrize("point", ["permit", "pre_bind"])
async def test_pitfall_120_a_victim_that_is_not_bound_yet_gives_up_in_memory(point: str) -> None:
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Holding", 1))
    async with Cluster(config, out_of_tree={"Holding": lambda args, handle: Holding(point)}) as h:
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(make_pod("victim").req(cpu="2").priority(0))
        await h.settle()
        assert h.scheduler.cache.is_assumed(h.store["default/victim"].uid)
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        uid = h.store["default/p"].uid
        assert h.deleted == []
        assert h.preempted() == [("default/victim", f"Preempted by pod {uid} on node n1 (in kube-scheduler memory).")]
        condition = h.condition("victim")
        assert condition is not None
        assert condition["reason"] == "SchedulerError"
        assert "preempted" in condition["message"]
        await h.settle(20.0)
        assert h.node_of("p") == "n1"
        assert h.node_of("victim") == ""
        h.validate()


@pytest.mark.parametrize("point", ["permit", "pre_bind"])
async def test_the_preemptor_is_woken_when_the_last_victim_gave_up_in_memory(point: str) -> None:
    """The others' deletions find the preemption under way, and the last victim is never deleted: no event is left."""
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Holding", 1))
    async with Cluster(config, out_of_tree={"Holding": lambda args, handle: Holding(point)}) as h:
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(low("other").priority(5))
        h.add_pod(make_pod("victim").req(cpu="1").priority(0))
        await h.settle()
        assert h.scheduler.cache.is_assumed(h.store["default/victim"].uid)
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.gate_of("p") == RUNNING
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        assert h.deleted == ["default/other"]
        assert h.node_of("p") == "n1"
        h.validate()


async def test_the_preemptor_is_woken_when_the_last_victim_was_not_bound_after_all() -> None:
    """Its room is free as soon as its binding fails; when it is deleted it has no node, so that this is no event."""
    async with Cluster(max_in_unschedulable=float("inf")) as h:
        binding = asyncio.Event()
        h.bind_delay = lambda pod: binding if pod.name == "victim" else None
        h.fail_bind = lambda pod, node: RuntimeError("no") if pod.name == "victim" else None
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(make_pod("victim").req(cpu="2").priority(0))
        await h.settle()
        assert h.scheduler.cache.is_assumed(h.store["default/victim"].uid)
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        binding.set()
        await h.settle()
        assert h.gate_of("p") == RUNNING
        h.takes_its_time.add("victim")
        h.hold.set()
        await h.settle()
        assert h.deleted == ["default/victim"]
        h.delete_pod("victim")
        await h.settle(20.0)
        assert h.node_of("p") == "n1"
        h.validate()


async def test_the_last_victim_wakes_the_preemptor_whoever_turned_it_down() -> None:
    """Only NodePorts did, as it comes first; to it the deletion of the victim that holds the room says nothing."""
    async with Cluster(max_in_unschedulable=float("inf")) as h:
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(low("holds-port", cpu="0").host_port(80).priority(1))
        h.add_pod(low("holds-cpu", cpu="2"))
        h.takes_its_time.add("holds-cpu")
        h.add_pod(make_pod("p").req(cpu="2").host_port(80).priority(10))
        await h.settle()
        assert h.deleted == ["default/holds-port", "default/holds-cpu"]
        record = h.scheduler.queue.find("default/p")
        assert record is not None
        assert record.gated
        h.delete_pod("holds-cpu")
        await h.settle(20.0)
        assert h.node_of("p") == "n1"
        h.validate()


async def test_without_the_async_gate_nothing_is_gated() -> None:
    async with Cluster(gates=FeatureGates(SchedulerAsyncPreemption=False)) as h:
        full(h)
        h.hold = asyncio.Event()
        h.add_pod(make_pod("p").req(cpu="2").priority(10))
        await h.settle()
        assert h.gate_of("p") == ""
        h.hold.set()
        await h.settle()
        await h.settle(20.0)
        assert h.node_of("p") == "n1"
