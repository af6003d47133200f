"""What is said about one pod arrives in the order in which it was said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from skedge.api.core import PodCondition
from skedge.framework.ports import PodGone
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Slow(Harness):
    """The first patch takes until it is let go, and may fail then."""

    def __init__(self) -> None:
        super().__init__()
        self.first = asyncio.Event()
        self.error: Exception | None = None
        self.begun = 0

    async def patch_status(self, pod: Any, patch: Mapping[str, Any]) -> None:
        self.begun += 1
        if self.begun == 1:
            await self.first.wait()
            if self.error is not None:
                raise self.error
        await super().patch_status(pod, patch)

    def pod(self, name: str = "p") -> PodInfo:
        pod = self.store[f"default/{name}"]
        assert isinstance(pod, PodInfo)
        return pod


def said(harness: Harness, name: str = "p") -> str:
    conditions = harness.json[f"default/{name}"]["status"].get("conditions", [])
    return next((str(each["message"]) for each in conditions if each["type"] == "PodScheduled"), "")


async def unschedulable() -> Slow:
    """A world in which the first patch of `p` (no nodes) is under way."""
    h = await Slow().__aenter__()
    h.add_pod(make_pod("p").req(cpu="4"))
    await h.settle()
    assert h.begun == 1
    return h


async def test_a_later_patch_does_not_overtake_an_earlier_one() -> None:
    h = await unschedulable()
    h.add_node(make_node("n1").capacity(cpu="2"))
    await h.settle(20.0)
    assert h.begun == 1, "the second has to wait for the first"
    h.first.set()
    await h.settle()
    assert h.begun == 2
    assert "Insufficient cpu" in said(h)
    assert not h.scheduler.patches
    await h.__aexit__()


async def test_what_is_said_meanwhile_becomes_one_patch_of_what_the_pod_says_by_then() -> None:
    h = await unschedulable()
    none, p = "no nodes available to schedule pods", h.pod()
    h.add_node(make_node("n1").capacity(cpu="2"))
    await h.settle(20.0)
    h.add_node(make_node("n2").capacity(cpu="2"))
    await h.settle(40.0)
    h.delete_node("n1")
    h.delete_node("n2")
    h.scheduler.queue.activate([p])
    await h.settle(60.0)
    h.first.set()
    await h.settle()
    assert h.begun == 1, "what is there already is not sent again"
    assert said(h) == none
    await h.__aexit__()


async def test_after_an_earlier_patch_back_to_what_the_informer_still_says() -> None:
    """The difference is made to what was sent, not to what was seen of it so far."""
    async with Slow() as h:
        h.add_pod(make_pod("p").gates("g"))
        await h.settle()
        h.scheduler.patches.tell(h.pod(), None, "n1")
        await h.settle()
        h.scheduler.patches.tell(h.pod(), None, "")
        h.first.set()
        await h.settle()
        assert [patch["status"]["nominatedNodeName"] for _, patch in h.patches] == ["n1", None]


async def test_what_was_sent_counts_though_the_informer_has_not_seen_it_yet() -> None:
    async with Slow() as h:
        h.first.set()
        h.add_pod(make_pod("p").gates("g"))
        await h.settle()
        pod = h.pod()
        for node in ("n1", "", "n2", "n2"):
            h.scheduler.patches.tell(pod, None, node)
            await h.settle()
        assert [patch["status"]["nominatedNodeName"] for _, patch in h.patches] == ["n1", None, "n2"]


async def test_a_promise_taken_back_meanwhile_leaves_the_condition_as_it_was_seen() -> None:
    async with Slow() as h:
        condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="first")
        h.first.set()
        h.add_pod(make_pod("p").gates("g").nominated("n1"))
        await h.settle()
        h.scheduler.patches.tell(h.pod(), condition, None)
        await h.settle()
        h.scheduler.patches.tell(h.pod(), msgspec.structs.replace(condition, message="second"), None)
        await h.scheduler.patches.nominate(PlacedPod(h.pod(), "n1"), "")
        _, patch = h.patches[-1]
        assert patch["status"]["nominatedNodeName"] is None
        assert patch["status"]["conditions"] == [{"type": "PodScheduled", "message": "second"}]


async def test_one_that_is_waited_for_takes_its_turn_too() -> None:
    h = await unschedulable()
    waited = asyncio.ensure_future(h.scheduler.patches.nominate(h.pod(), "n1"))
    await h.settle()
    assert not waited.done()
    h.first.set()
    await waited
    assert h.patches[-1][1]["status"].get("nominatedNodeName") == "n1"
    await h.__aexit__()


async def test_patches_of_other_pods_do_not_wait() -> None:
    h = await unschedulable()
    h.add_pod(make_pod("q").req(cpu="4"))
    await h.settle()
    assert said(h, "q")
    assert not said(h)
    h.first.set()
    await h.settle()
    assert said(h)
    await h.__aexit__()


async def test_a_binding_waits_for_the_patch_under_way_and_drops_the_next() -> None:
    h = await unschedulable()
    h.add_node(make_node("n1").capacity(cpu="2"))
    await h.settle(20.0)
    h.add_node(make_node("n2").capacity(cpu="8"))
    await h.settle(40.0)
    assert not h.bindings
    assert h.begun == 1
    h.first.set()
    await h.settle()
    assert h.bindings == [("default/p", "n2")]
    assert h.begun == 1, "why it was pending does not matter any more"
    assert not h.scheduler.patches
    await h.__aexit__()


async def test_a_binding_does_not_wait_for_a_patch_that_waits_for_its_worker() -> None:
    """With as many such bindings as connections nobody would be left to send it."""
    h = Slow()  # its dispatcher is not at work yet
    h.first.set()
    h.add_pod(make_pod("p").gates("g"))
    patches = h.scheduler.patches
    patches.tell(h.pod(), None, "n1")
    await patches.settle(h.pod().uid)
    assert not patches
    patches.tell(h.pod(), None, "n2")
    async with h:
        await h.settle()
    assert [patch["status"]["nominatedNodeName"] for _, patch in h.patches] == ["n2"]
    assert not patches


@pytest.mark.parametrize("error", [PodGone("gone"), RuntimeError("no")])
async def test_one_that_failed_holds_up_nobody(error: Exception) -> None:
    h = await unschedulable()
    h.error = error
    told = asyncio.ensure_future(h.scheduler.patches.nominate(h.pod(), "n1"))
    h.first.set()
    await told
    assert h.json["default/p"]["status"]["nominatedNodeName"] == "n1"
    await h.__aexit__()


async def test_whoever_waits_learns_what_went_wrong() -> None:
    async with Slow() as h:
        h.add_node(make_node("n1").capacity(cpu="8"))
        h.add_pod(make_pod("p").gates("g"))
        h.error = PodGone("gone")
        h.first.set()
        with pytest.raises(PodGone):
            await h.scheduler.patches.nominate(h.pod(), "n1")
        assert not h.scheduler.patches
