"""Reported bugs about preemption and the cache. Named after their ids."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bugs.placing import HOST, app, message, no_flush, placed
from pitfalls.scripted import place, scripted, world
from skedge.cache.cache import Cache
from skedge.framework.status import SUCCESS, Code, Status
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio
LATER = 30.0


def low(name: str, priority: int = 0, cpu: str = "1", node: str = "n1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu).priority(priority).node(node).start_time("2026-01-01T00:00:00Z")


def budget(name: str, label: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": label}}
    meta = {"name": name, "namespace": "default"}
    return {"metadata": meta, "spec": {"selector": selector}, "status": {"disruptionsAllowed": 0}}


async def test_b020_the_lowest_of_the_highest_victims() -> None:
    async with no_flush() as h:
        for name in ("node1", "node2"):
            h.add_node(make_node(name).capacity(cpu="2"))
        for name in ("b", "c"):
            h.put("PodDisruptionBudget", budget(name, name))
        h.add_pod(low("pod1", 500, node="node1"))
        h.add_pod(low("pod2", 10, node="node1").label(app="b"))
        h.add_pod(low("pod3", 100, "2", "node2").label(app="c"))
        await placed(h, make_pod("p").req(cpu="2").priority(1000))
        assert h.deleted == ["default/pod3"]


async def test_b022_a_victim_of_another_class_is_patched_as_itself() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(pods="1"))
        h.add_pod(make_pod("v").node("n1"))  # BestEffort
        pod = make_pod("p").req(cpu="1", memory="1Gi").priority(10)
        pod.json["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", "memory": "1Gi"}
        await placed(h, pod)
        patch = next(patch for key, patch in h.patches if key == "default/v")
        assert set(patch["status"]) <= {"conditions", "$setElementOrder/conditions"}
        assert patch["status"]["conditions"][0]["reason"] == "PreemptionByScheduler"
        await h.settle(LATER)
        assert (h.deleted, h.node_of("p")) == (["default/v"], "n1")


async def test_b023_no_preemption_where_prefilter_is_final() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(low("v"))
        await placed(h, make_pod("p").req(cpu="1").priority(10).pvc("nowhere"))
        assert h.deleted == []
        assert 'persistentvolumeclaim "nowhere" not found' in message(h)


async def test_b025_low_pods_do_not_slip_into_nominated_room() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(low("v").terminating())
        h.add_pod(make_pod("h").req(cpu="1").priority(10).nominated("n1"))
        await h.settle()
        for i in range(20):
            h.add_pod(make_pod(f"l{i}").req(cpu="1"))
        await h.settle(LATER)
        assert all(h.node_of(f"l{i}") == "" for i in range(20))
        h.delete_pod("v")
        await h.settle(LATER)
        assert h.node_of("h") == "n1"


async def test_b028_a_pod_that_users_delete_does_not_hold_preemption_up() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(low("t").terminating())
        h.add_pod(low("l"))
        await placed(h, make_pod("h").req(cpu="1").priority(10).nominated("n1"))
        assert h.deleted == ["default/l"]


async def test_b029_a_pod_that_was_bound_meanwhile_gets_no_nomination() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_node(make_node("n2").capacity(cpu="1").taint("t"))
        h.add_pod(low("v"))
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        record = h.scheduler.queue.pop()
        assert record is not None
        h.update_pod(make_pod("p").req(cpu="1").priority(10).node("n2"))
        h.scheduler.queue.nominator.add(record.pod, "n1")
        assert len(h.scheduler.queue.nominator) == 0


async def test_b032_a_victim_at_permit_gives_way_in_memory() -> None:
    wait = (Status(Code.WAIT), 100.0)
    plugin = scripted("S", permit=lambda state, pod, node: wait if pod.name == "w" else (SUCCESS, 0.0))
    async with world(plugin, post_filter=True, max_in_unschedulable=float("inf")) as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(make_pod("w").req(cpu="1"))
        await h.settle()
        h.add_pod(make_pod("h").req(cpu="1").priority(10))
        await h.settle()
        await h.settle(LATER)
        assert (h.deleted, h.node_of("h")) == ([], "n1")
        assert place(h, "w") != ""
        h.validate()


async def test_b034_no_preemption_where_affinity_needs_a_lower_pod() -> None:
    """The documented rule, as the reference decides: with all lower pods away affinity fails, so the node is none."""
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="2"))
        h.add_pod(low("l1").label(app="cache"))
        h.add_pod(low("l2").label(app="web"))
        await placed(h, make_pod("h").req(cpu="1").priority(10).pod_affinity(HOST, {"app": "cache"}))
        assert h.deleted == []
        assert "preemption: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules." in message(h, "h")


async def test_b035_and_b085_a_nominated_pod_that_is_gone_leaves_nothing() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(low("v").terminating())
        h.add_pod(make_pod("x").req(cpu="1").priority(10).nominated("n1"))
        await h.settle()
        h.delete_pod("x")
        h.delete_pod("v")
        h.delete_node("n1")
        h.add_node(make_node("n1").capacity(cpu="1"))
        assert await placed(h, make_pod("y").req(cpu="1")) == ["n1"]
        assert len(h.scheduler.queue.nominator) == 0


# --- cache ------------------------------------------------------------------------------------------------------------


async def test_b073_a_pod_deleted_while_binding_gives_its_room_back() -> None:
    async with no_flush() as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate if pod.name == "p" else None
        h.add_node(make_node("n1").capacity(cpu="1"))
        await placed(h, make_pod("p").req(cpu="1"))
        h.add_pod(make_pod("q").req(cpu="1"))
        await h.settle()
        h.delete_pod("p")
        await h.settle(2.0)
        assert h.node_of("q") == "n1"
        gate.set()
        await h.settle()
        h.validate()


async def test_b077_absence_in_a_list_frees_the_room() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        await placed(h, make_pod("a").req(cpu="1"))
        h.scheduler.handlers.pod_deleted(h.store.pop("default/a"))  # what a tombstone holds
        del h.json["default/a"]
        assert await placed(h, make_pod("b").req(cpu="1")) == ["n1"]


async def test_b083_a_node_made_again_has_its_new_size() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        await placed(h, make_pod("a").req(cpu="500m"))
        h.delete_node("n1")
        h.add_node(make_node("n1").capacity(cpu="8"))
        assert await placed(h, make_pod("b").req(cpu="4")) == ["n1"]


async def test_b086_a_node_that_goes_before_its_pods() -> None:
    async with no_flush() as h:
        for name in ("n1", "n2"):
            h.add_node(make_node(name))
        for i in range(4):
            h.add_pod(app(f"e{i}", "x").node("n1"))
        h.add_pod(app("e4", "x").pod_affinity(HOST, {"app": "y"}, anti=True).node("n1"))
        h.delete_node("n1")
        assert await placed(h, app("p", "y"), make_pod("q")) == ["n2", "n2"]
        assert await placed(h, make_pod("r").pod_affinity(HOST, {"app": "x"})) == [""]
        for i in range(5):
            h.delete_pod(f"e{i}")
        h.validate()


async def test_b088_the_same_name_with_another_uid() -> None:
    async with no_flush() as h:
        for name in ("n1", "n2"):
            h.add_node(make_node(name).capacity(cpu="1"))
        h.add_pod(make_pod("web-0").uid("1").req(cpu="1").node("n1"))
        h.update_pod(make_pod("web-0").uid("2").req(cpu="1").node("n2"))
        assert [(pod.uid, pod.node_name) for pod in h.scheduler.cache.pods()] == [("2", "n2")]
        assert await placed(h, make_pod("p").req(cpu="1")) == ["n1"]
        h.validate()


async def test_b089_an_update_of_an_assumed_pod_does_not_schedule_it_again() -> None:
    async with no_flush() as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate
        h.add_node(make_node("n1"))
        await placed(h, make_pod("p"))
        noted = make_pod("p")
        noted.json["metadata"]["annotations"] = {"a": "b"}
        h.update_pod(noted)
        gate.set()
        await h.settle(2.0)
        assert h.bindings == [("default/p", "n1")]
        h.validate()


async def test_the_cache_is_empty_at_first() -> None:
    assert list(Cache().pods()) == []
    assert isinstance(no_flush(), Harness)
