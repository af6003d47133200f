"""Pitfalls 41 to 62: events of objects, and the cache."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from pitfalls.scripted import by_name, place, scripted, world
from skedge.app.watches import PODS
from skedge.cache.cache import Cache, CacheError
from skedge.client.informer import InformerFactory
from skedge.client.rest import RestClient
from skedge.framework.events import NODE_DELETE, ClusterEventWithHint, QueueingHint
from skedge.framework.status import SUCCESS, Code, Status
from skedge.queue.object_events import node_update_events, pod_update_events
from skedge.snapshot.affinity_terms import pod_terms
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness
from skedge.testing.memory_server import MemoryServer
from skedge.testing.virtual_loop import LoopClock, VirtualLoop, run

WAIT = (Status(Code.WAIT), 100.0)


def labels(events: Any) -> list[str]:
    return [event.label for event in events]


def test_pitfall_41_a_heartbeat_is_no_event() -> None:
    beat = make_node("n").image("img:1", 5)
    beat.json["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    assert node_update_events(make_node("n").obj(), beat.obj()) == []


def test_pitfall_42_only_the_end_of_a_cordon_is_an_event() -> None:
    open_, cordoned = make_node("n").obj(), make_node("n").unschedulable().obj()
    assert node_update_events(open_, cordoned) == []
    assert labels(node_update_events(cordoned, open_)) == ["NodeUpdateNodeTaint"]


@pytest.mark.asyncio
async def test_pitfall_43_a_removed_taint_wakes_pods_that_other_plugins_rejected() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="1").taint("t"))
        h.add_pod(make_pod("p").req(cpu="2").toleration("t", operator="Exists"))
        await h.settle()
        record = h.scheduler.queue.find("default/p")
        assert record is not None
        assert record.attempts == 1
        h.update_node(make_node("n").capacity(cpu="4"))
        await h.settle(2.0)
        assert h.node_of("p") == "n"


def test_pitfall_44_an_annotation_is_the_generic_update() -> None:
    new = make_pod("p")
    new.json["metadata"]["annotations"] = {"a": "b"}
    assert labels(pod_update_events(make_pod("p").info(), new.info())) == ["UnschedulablePodUpdate"]


@pytest.mark.asyncio
async def test_pitfall_45_the_queue_hears_of_a_deleted_node_before_the_cache_forgets_it() -> None:
    seen: list[bool] = []

    def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
        seen.append(h.scheduler.cache.table.node("n") is not None)
        return QueueingHint.QUEUE_SKIP

    events = [ClusterEventWithHint(NODE_DELETE, hint)]
    plugin = scripted("S", filter=by_name(lambda name: 1), events_to_register=lambda: events)
    async with world(plugin) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        h.delete_node("n")
        assert seen == [True]
        assert h.scheduler.cache.table.node("n") is None


def test_pitfall_46_a_pod_that_ends_is_told_as_deleted() -> None:
    loop = VirtualLoop()
    clock = LoopClock(loop)
    server = MemoryServer(clock, random.Random(1))
    told: list[str] = []

    async def main() -> None:
        async with InformerFactory(RestClient(server.transport(), clock=clock)) as factory:
            factory.informer(PODS).add_handler(
                on_add=lambda pod, initial: told.append("add"), on_delete=lambda pod: told.append("delete")
            )
            factory.start()
            await factory.wait_for_sync()
            pod = make_pod("p").json
            for key in ("uid", "resourceVersion", "generation"):
                del pod["metadata"][key]
            server.do("POST", "/api/v1/namespaces/default/pods", pod)
            await asyncio.sleep(1.0)
            ended = {"status": {"phase": "Succeeded"}}
            server.do("PATCH", "/api/v1/namespaces/default/pods/p/status", ended, "application/merge-patch+json")
            await asyncio.sleep(1.0)

    _, left = run(loop, main())
    assert (told, left) == (["add", "delete"], [])


@pytest.mark.asyncio
async def test_pitfall_47_another_schedulers_pod_counts_once_it_has_a_node() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        theirs = make_pod("theirs").scheduler("other").req(cpu="2")
        h.add_pod(theirs)
        assert (place(h, "theirs"), list(h.scheduler.cache.pods())) == ("", [])
        h.add_pod(theirs.node("n"))
        assert [pod.name for pod in h.scheduler.cache.pods()] == ["theirs"]


async def bound_slowly(h: Harness) -> asyncio.Event:
    """A pod p on its way to n, the binding held back."""
    gate = asyncio.Event()
    h.bind_delay = lambda pod: gate
    h.add_node(make_node("n").capacity(cpu="1"))
    h.add_pod(make_pod("p").req(cpu="1"))
    await h.settle()
    assert h.scheduler.cache.is_assumed(h.store["default/p"].uid)
    return gate


@pytest.mark.asyncio
async def test_pitfall_48_an_update_while_binding_waits_for_the_confirmation() -> None:
    async with Harness() as h:
        gate = await bound_slowly(h)
        h.update_pod(make_pod("p").req(cpu="1").label(a="b"))
        assert place(h) == ""
        (cached,) = h.scheduler.cache.pods()
        assert cached.labels == {}
        gate.set()
        await h.settle()
        (cached,) = h.scheduler.cache.pods()
        assert (cached.labels, h.bindings) == ({"a": "b"}, [("default/p", "n")])


@pytest.mark.asyncio
async def test_pitfall_49_and_51_a_pod_deleted_while_binding_gives_its_room_back_at_once() -> None:
    for how in ("mark", "vanish"):
        async with Harness() as h:
            gate = await bound_slowly(h)
            h.add_pod(make_pod("q").req(cpu="1"))
            await h.settle()
            if how == "mark":
                h.update_pod(make_pod("p").req(cpu="1").terminating())
            else:
                h.delete_pod("p")
            assert list(h.scheduler.cache.pods()) == []
            assert place(h, "p") == ""
            assert place(h, "q") in ("backoff", "active")
            h.fail_bind = lambda pod, node: LookupError("gone") if pod.name == "p" else None
            gate.set()
            await h.settle(2.0)
            assert h.node_of("q") == "n"
            assert all(pod.name == "q" for pod in h.scheduler.cache.pods())


@pytest.mark.asyncio
async def test_pitfall_50_a_pod_marked_for_deletion_at_permit_is_rejected() -> None:
    plugin = scripted("S", permit=lambda state, pod, node: WAIT if pod.name == "p" else (SUCCESS, 0.0))
    async with world(plugin) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        (waiting,) = h.scheduler.waiting
        h.update_pod(make_pod("p").terminating())
        status = await waiting.wait_for_signal()
        assert (status.code, status.message) == (Code.UNSCHEDULABLE, "removed")
        await h.settle()
        assert list(h.scheduler.cache.pods()) == []


# --- cache ------------------------------------------------------------------------------------------------------------


def cache_with(*nodes: str) -> Cache:
    cache = Cache()
    for name in nodes:
        cache.add_node(make_node(name).obj())
    return cache


def test_pitfall_53_forgetting_an_unknown_pod_is_no_error() -> None:
    cache_with("n").forget_pod(make_pod("p").info(), "n")


def test_pitfall_54_an_assumed_pod_may_be_confirmed_on_another_node() -> None:
    cache = cache_with("n", "m")
    cache.assume_pod(make_pod("p").req(cpu="1").info(), "n")
    cache.add_pod(make_pod("p").req(cpu="1").node("m").placed())
    (pod,) = cache.pods()
    assert (pod.node_name, cache.is_assumed(pod.uid)) == ("m", False)
    cache.validate()


def test_pitfall_55_a_pod_added_twice_is_an_error() -> None:
    cache = cache_with("n")
    cache.add_pod(make_pod("p").node("n").placed())
    with pytest.raises(CacheError, match="was already in added state"):
        cache.add_pod(make_pod("p").node("n").placed())


@pytest.mark.asyncio
async def test_pitfall_56_and_57_pods_without_their_node_make_a_ghost() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("early").req(cpu="3").node("ghost"))
        h.add_pod(make_pod("p").req(cpu="2"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        h.add_node(make_node("ghost").capacity(cpu="4"))
        h.delete_node("ghost")
        h.add_node(make_node("ghost").capacity(cpu="4"))
        await h.settle(2.0)
        assert h.node_of("p") == ""  # the pod that came early counts
        h.delete_pod("early")
        await h.settle(20.0)
        assert h.node_of("p") == "ghost"
        h.validate()


@pytest.mark.asyncio
async def test_pitfall_58_an_assumption_does_not_expire() -> None:
    async with Harness() as h:
        await bound_slowly(h)
        await h.settle(100_000.0)
        assert h.scheduler.cache.statistics()["assumed_pods"] == 1


def test_pitfall_59_removing_a_pod_in_the_middle() -> None:
    cache = cache_with("n")
    for name in "abc":
        cache.add_pod(make_pod(name).req(cpu="1").node("n").placed())
    cache.remove_pod(make_pod("b").info())
    assert {pod.name for pod in cache.table.pods[0].values()} == {"a", "c"}
    assert cache.table.requested["cpu"][0] == 2000
    cache.validate()


def test_pitfall_60_an_image_has_the_size_that_was_told_first() -> None:
    cache = Cache()
    cache.add_node(make_node("a").image("img:1", 100).obj())
    cache.add_node(make_node("b").image("img:1", 200).obj())
    state = cache.table.images.get("img:1")
    assert state is not None
    assert (state.size, state.rows) == (100, {0, 1})


def test_pitfall_62_preferred_terms_are_not_required_ones() -> None:
    preferring = pod_terms(make_pod("p").prefer_pods(1, "zone", {"a": "b"}, anti=True).obj().spec.affinity, "default")
    requiring = pod_terms(make_pod("p").pod_affinity("zone", {"a": "b"}, anti=True).obj().spec.affinity, "default")
    assert (len(preferring.preferred), preferring.anti) == (1, ())
    assert (requiring.preferred, len(requiring.anti)) == ((), 1)
