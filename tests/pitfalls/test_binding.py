"""Pitfalls 85 to 102: from Reserve to Bind, and what is told of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pitfalls.scripted import NO, broken, by_name, message, place, scripted, world
from skedge.framework.events import ASSIGNED_POD_DELETE, ClusterEventWithHint
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.scheduler.pod_status import status_patch
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio
WAIT = Status(Code.WAIT)


async def test_pitfall_85_unreserve_runs_for_all_last_first() -> None:
    order: list[str] = []

    def reserving(name: str, status: Status) -> Any:
        return scripted(name, reserve=status, unreserve=lambda *args: order.append(name))

    plugins = [reserving("R1", SUCCESS), reserving("R2", broken()), reserving("R3", SUCCESS)]
    async with world(*plugins, alone=["reserve"]) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert order == ["R3", "R2", "R1"]
        assert plugins[2].calls == ["unreserve"]


async def test_pitfall_86_a_rejection_ends_permit_at_once() -> None:
    async with world(scripted("A", permit=(WAIT, 10.0)), scripted("B", permit=(NO, 0.0))) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert list(h.scheduler.waiting) == []
        assert message(h) == "0/1 nodes are available: 1 no."


async def test_pitfall_87_nobody_waits_longer_than_15_minutes() -> None:
    waits: list[dict[str, float]] = []
    async with world(scripted("A", permit=(WAIT, 1200.0))) as h:
        h.scheduler.start_binding = lambda decision: waits.append(decision.waits)  # type: ignore[method-assign]
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert waits == [{"A": 900.0}]


async def test_pitfall_88_and_89_signals_to_a_waiting_pod() -> None:
    async with world(scripted("A", permit=(WAIT, 10.0)), scripted("B", permit=(WAIT, 10.0))) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        (waiting,) = h.scheduler.waiting
        waiting.allow("A")
        await h.settle()
        assert (waiting.pending_plugins, h.node_of("p")) == (["B"], "")
        waiting.allow("B")
        assert not waiting.reject("A", "too late")
        await h.settle()
        assert h.node_of("p") == "n"


async def test_pitfall_91_a_rejection_by_prebind_backs_off_like_an_error() -> None:
    async with world(scripted("S", pre_bind_preflight=(SUCCESS, False), pre_bind=_async(NO))) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["reason"] == "Unschedulable"
        record = h.scheduler.queue.find("default/p")
        assert record is not None
        assert (place(h), record.rejectors) == ("error backoff", frozenset())


async def _nothing(*args: Any) -> None:
    pass


def _async(status: Status) -> Any:
    async def call(*args: Any) -> Status:
        return status

    return call


async def test_pitfall_92_preflight_may_not_reject() -> None:
    async with world(scripted("S", pre_bind_preflight=(NO, False), pre_bind=_async(SUCCESS))) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert 'returned "Unschedulable", which is unsupported.' in message(h)


async def test_pitfall_93_nothing_to_do_before_binding_means_no_nomination() -> None:
    plugin = scripted("S", pre_bind_preflight=(SKIP, False), pre_bind=_async(SUCCESS))
    async with world(plugin) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert (h.node_of("p"), h.patches, plugin.calls) == ("n", [], ["pre_bind_preflight"])


async def test_pitfall_94_events_after_permit_are_not_replayed() -> None:
    async with Harness() as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate
        h.fail_bind = lambda pod, node: RuntimeError("no") if not h.bindings else None
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.scheduler.queue.in_flight_counts() == {"PodPopped": 0}
        h.add_node(make_node("m"))
        gate.set()
        await h.settle()
        assert place(h) == "error backoff"


async def test_pitfall_95_a_failed_binding_of_a_pod_that_is_bound_is_told_but_not_tried_again() -> None:
    async with Harness() as h:

        def fail(pod: PodInfo | PlacedPod, node: str) -> Exception:
            bound = make_pod("p").node("n")
            h.update_pod(bound)  # the watch tells so before the answer would have come
            return TimeoutError("no answer")

        h.fail_bind = fail
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert place(h) == ""
        assert h.events[-1].reason == "FailedScheduling"
        assert h.patches[-1][1]["status"]["conditions"][0]["status"] == "False"
        assert h.scheduler.cache.statistics() == {"assumed_pods": 0, "pods": 1, "nodes": 1}


async def test_pitfall_96_a_pod_made_again_meanwhile_is_left_alone() -> None:
    async with Harness() as h:

        def fail(pod: PodInfo | PlacedPod, node: str) -> Exception | None:
            if pod.uid != "uid-default-p":
                return None
            h.delete_pod("p")
            h.add_pod(make_pod("p").uid("second").gates("g"))
            return LookupError("uid does not match")

        h.fail_bind = fail
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert (h.events, h.patches) == ([], [])
        assert place(h) == "gated"
        assert list(h.scheduler.cache.pods()) == []


@pytest.mark.parametrize(("how", "where"), [(NO, "unschedulable"), (broken(), "error backoff")])
async def test_pitfall_97_a_rejected_pod_is_not_woken_by_its_own_room(how: Status, where: str) -> None:
    wanted = [ClusterEventWithHint(ASSIGNED_POD_DELETE)]
    async with world(scripted("S", permit=(WAIT, 10.0), events_to_register=lambda: wanted)) as h:
        h.patch_status = _nothing  # type: ignore[method-assign]  # or the end of p's nomination would wake it, too
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        h.add_pod(make_pod("q").req(cpu="1"))
        await h.settle()
        assert place(h, "q") == "unschedulable"
        (waiting,) = h.scheduler.waiting
        if how is NO:
            waiting.reject("S", "no")
        else:
            waiting.preempt("S", "no")
        for _ in range(3):
            await asyncio.sleep(0)
        assert place(h, "p") == where
        assert place(h, "q") != "unschedulable"


async def test_pitfall_98_nobody_binds() -> None:
    async with world(scripted("S", bind=_async(SKIP)), alone=["bind"]) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert (h.events, h.patches) == ([], [])
        assert place(h) == "error backoff"
        assert list(h.scheduler.cache.pods()) == []


async def test_pitfall_100_an_unchanged_condition_is_not_patched() -> None:
    async with world(scripted("S", filter=by_name(lambda name: 1), events_to_register=list)) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert len(h.patches) == 1
        h.scheduler.queue.activate([h.store["default/p"]])
        await h.settle()
        record = h.scheduler.queue.find("default/p")
        assert record is not None
        assert (record.attempts, len(h.patches), len(h.events)) == (2, 1, 2)


async def test_pitfall_101_a_new_message_leaves_the_transition_time() -> None:
    old = make_pod("p")
    old.json["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "a"}
    ]
    (before,) = old.info().conditions
    after = type(before)(type="PodScheduled", status="False", reason="Unschedulable", message="b")
    patch = status_patch([before], "", after, None, 0.0)
    assert patch is not None
    assert patch["status"]["conditions"] == [{"message": "b", "type": "PodScheduled"}]


async def test_pitfall_102_no_word_about_the_nomination_leaves_it() -> None:
    patch = status_patch([], "n1", None, None, 0.0)
    assert patch is None
    assert status_patch([], "n1", None, "", 0.0) == {"status": {"nominatedNodeName": None}}
