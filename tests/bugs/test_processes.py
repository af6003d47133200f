"""Reported bugs of whole processes: leases, bindings and events. Named after their ids."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bugs.placing import HOST, app
from bugs.processes import PODS, World, play
from skedge.app import clients
from skedge.app.process import SchedulerProcess
from skedge.client.errors import ConnectionRefused
from skedge.client.events import EventBroadcaster
from skedge.controlplane.errors import ApiError
from skedge.framework.status import SUCCESS, Status
from skedge.serving.health import leader_election_check
from skedge.telemetry.exposition import render_text
from skedge.testing.builders import make_node, make_pod

ALONE = "leaderElection: {leaderElect: false}\n"
UNLIMITED = ALONE + "clientConnection: {qps: -1}\n"


def leads(process: SchedulerProcess) -> bool:
    return process.election is not None and process.election.leading


class Hold:
    """A PreBind plugin that keeps pods for longer than any lease lasts."""

    name = "Hold"

    def __init__(self, args: Any, handle: Any) -> None:
        self.holding: list[str] = []

    def pre_bind_preflight(self, state: Any, pod: Any, node_name: str) -> tuple[Status, bool]:
        return SUCCESS, False

    async def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status:
        self.holding.append(pod.name)
        await asyncio.sleep(60.0)
        return SUCCESS


def test_b053_a_former_leader_does_not_bind() -> None:
    made: list[Hold] = []

    def hold(args: Any, handle: Any) -> Hold:
        made.append(Hold(args, handle))
        return made[-1]

    async def story(world: World) -> None:
        world.add_node(make_node("n1"))
        holds = "profiles: [{plugins: {preBind: {enabled: [{name: Hold}]}}}]\n"
        async with world.scheduler(holds, out_of_tree={"Hold": hold}) as (one, wire_one):
            await asyncio.sleep(5.0)
            assert leads(one)
            async with world.scheduler() as (two, wire_two):
                world.add_pod(app("pa", "x").pod_affinity(HOST, {"app": "x"}, anti=True))
                await asyncio.sleep(1.0)
                assert made[0].holding == ["pa"]
                wire_one.refusal = lambda method, path: ConnectionRefused("cut off") if "/leases" in path else None
                await asyncio.sleep(5.0)
                important = app("pb", "x").pod_affinity(HOST, {"app": "x"}, anti=True)
                important.json["spec"]["priorityClassName"] = "system-cluster-critical"
                world.add_pod(important)
                await asyncio.sleep(90.0)
                assert leads(two)
                assert one.election is not None
                assert not one.election.may_write()
                assert wire_one.sent("POST", "/binding") == []
                assert len(wire_two.sent("POST", "/binding")) == 1
                assert (world.node_of("pa"), world.node_of("pb")) == ("", "n1")

    play(story)


def test_b107_a_scheduler_with_the_lease_of_another_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "skedge")

    def acquiring() -> list[str]:
        told = [record for record in caplog.records if record.getMessage() == "Attempting to acquire leader lease..."]
        return [record.values["lock"] for record in told]  # type: ignore[attr-defined]

    def status(process: SchedulerProcess, lease: str) -> str:
        text = render_text(process.metrics.registry.sample())
        line = next(each for each in text.splitlines() if each.startswith("leader_election_master_status{"))
        assert f'name="{lease}"' in line
        return line.rpartition(" ")[2]

    async def story(world: World) -> None:
        world.add_node(make_node("n1"))
        for name in ("default-scheduler", "ours"):
            pod = make_pod(f"of-{name}")
            pod.json["spec"]["schedulerName"] = name
            world.add_pod(pod)
        async with world.scheduler() as (default, _):
            await asyncio.sleep(5.0)
            async with world.scheduler("profiles: [{schedulerName: ours}]\n") as (ours, wire):
                await asyncio.sleep(60.0)
                assert (leads(default), leads(ours)) == (True, False)
                assert acquiring() == ["kube-system/kube-scheduler"] * 2
                assert (status(default, "kube-scheduler"), status(ours, "kube-scheduler")) == ("1", "0")
                assert ours.election is not None
                check = leader_election_check(ours.clock, ours.election.lease, 15.0, ours.election.renewed)
                assert check.reason() == "", "who waits is well"
                assert {method for method, _ in wire.requests} == {"GET"}
                assert (world.node_of("of-default-scheduler"), world.node_of("of-ours")) == ("n1", "")
            named = "leaderElection: {resourceName: ours}\nprofiles: [{schedulerName: ours}]\n"
            async with world.scheduler(named) as (ours, wire):
                await asyncio.sleep(5.0)
                assert (leads(default), leads(ours)) == (True, True)
                assert status(ours, "ours") == "1"
                assert world.node_of("of-ours") == "n1"
                world.add_pod(make_pod("another"))
                await asyncio.sleep(2.0)
                assert world.node_of("another") == "n1"
                assert [path.split("/")[-2] for path in wire.sent("POST", "/binding")] == ["of-ours"]

    play(story)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
@pytest.mark.parametrize("whose", ["standby", "leader"])
def test_b109_a_clock_that_jumps_takes_no_lease(whose: str, jump: float) -> None:
    async def story(world: World) -> None:
        world.add_node(make_node("n1"))
        async with world.scheduler() as (one, leaders):
            await asyncio.sleep(5.0)
            async with world.scheduler() as (two, wire):
                await asyncio.sleep(5.0)
                holder, before = world.holder(), len(wire.requests)
                slow = True  # so that the record is the same before and after the jump
                leaders.refusal = lambda method, path: ConnectionRefused("no") if slow and "/leases" in path else None
                clock: Any = {"standby": two, "leader": one}[whose].clock
                clock.jump(jump)
                for i in range(60):
                    slow = i < 6
                    await asyncio.sleep(1.0)
                    assert (leads(one), leads(two)) == (True, False), i
                assert world.holder() == holder
                assert {method for method, _ in wire.requests[before:]} == {"GET"}
                world.add_pod(make_pod("p"))
                await asyncio.sleep(2.0)
                assert world.node_of("p") == "n1"
                assert one.election is not None
                assert one.election.may_write()

    play(story)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (None, ""),
        (ApiError(409, "Conflict", "pod p is already assigned"), "pod p is already assigned"),
        (ApiError(404, "NotFound", 'pods "p" not found'), 'pods "p" not found'),
        (ApiError(500, "InternalError", "etcd is full"), "etcd is full"),
    ],
    ids=["Status", "409", "404", "500"],
)
def test_b128_an_answer_of_kind_status_is_a_binding(refusal: ApiError | None, said: str) -> None:
    async def story(world: World) -> None:
        world.add_node(make_node("n1"))
        async with world.scheduler(ALONE) as (process, wire):
            await asyncio.sleep(1.0)
            refuses = True
            wire.answer = lambda method, path: refusal if refuses and path.endswith("/binding") else None
            world.add_pod(make_pod("p"))
            await asyncio.sleep(0.5)
            assert len(wire.sent("POST", "/binding")) == 1
            answer = wire.answers["POST", f"{PODS}/p/binding"]
            assert (answer.status, json.loads(answer.body)["kind"]) == (refusal.code if refusal else 201, "Status")
            assert process.scheduler is not None
            assert (world.node_of("p") == "n1") is (refusal is None)
            if refusal is not None:
                assert said in world.message("p")
                assert process.scheduler.queue.find("default/p") is not None
                refuses = False
                await asyncio.sleep(10.0)
                assert len(wire.sent("POST", "/binding")) == 2
            assert world.node_of("p") == "n1"
            assert process.scheduler.queue.find("default/p") is None
            assert process.scheduler.cache.statistics()["assumed_pods"] == 0

    play(story)


@pytest.mark.parametrize(
    ("pods", "connections"),
    [(300, 4), pytest.param(3000, 48, marks=pytest.mark.slow)],
)
def test_b113_events_that_are_slow_to_send_hold_nothing_up(
    pods: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeats are counted instead of sent one by one, so that what waits is bounded; pods go on being placed."""
    made: list[EventBroadcaster] = []

    def broadcaster(*args: Any, **options: Any) -> EventBroadcaster:
        made.append(EventBroadcaster(*args, **options))
        return made[-1]

    monkeypatch.setattr(clients, "EventBroadcaster", broadcaster)

    async def story(world: World) -> None:
        world.add_node(make_node("n1").capacity(cpu="4"))
        async with world.scheduler(UNLIMITED, connections=connections) as (process, wire):
            wire.delay = lambda method, path: 5.0 if "/events" in path else 0.0
            await asyncio.sleep(10.0)
            for i in range(pods):
                world.add_pod(make_pod(f"big-{i}").req(cpu="8"))
            await asyncio.sleep(10.0)
            (events,) = made
            assert len(events._outbox) > min(pods, 1000) // 2, "the server is slow"
            for i in range(60):
                world.add_pod(make_pod(f"small-{i}").req(cpu="10m"))
                await asyncio.sleep(1.0)
                assert world.node_of(f"small-{i}") == "n1"
                await asyncio.sleep(59.0)
                assert len(events._intake) + len(events._outbox) <= 2 * pods
            assert process.scheduler is not None
            record = process.scheduler.queue.find("default/big-0")
            assert record is not None
            assert record.attempts >= 10
            sent = [path for method, path in wire.requests if method != "GET" and "/events" in path]
            assert len(sent) <= 4 * pods, "an event, its series, and the series as it is half an hour later"
            created = len(wire.sent("POST", "/events"))
            assert created + events.dropped + len(events._outbox) >= pods + 60, "what is lost is counted"

    play(story)
