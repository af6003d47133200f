"""What is said about one pod arrives in the order in which it was said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Slow(Harness):
    """The first patch of a pod takes until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.first = asyncio.Event()
        self.begun = 0

    async def patch_status(self, pod: Any, patch: Mapping[str, Any]) -> None:
        self.begun += 1
        if self.begun == 1:
            await self.first.wait()
        await super().patch_status(pod, patch)


def said(harness: Harness, name: str) -> str:
    conditions = harness.json[f"default/{name}"]["status"].get("conditions", [])
    return next((str(each["message"]) for each in conditions if each["type"] == "PodScheduled"), "")


async def test_a_later_patch_does_not_overtake_an_earlier_one() -> None:
    async with Slow() as h:
        h.add_pod(make_pod("p").req(cpu="4"))
        await h.settle()
        assert h.begun == 1
        h.add_node(make_node("n1").capacity(cpu="2"))
        await h.settle(20.0)
        assert h.begun == 1, "the second has to wait for the first"
        h.first.set()
        await h.settle()
        assert h.begun == 2
        assert "Insufficient cpu" in said(h, "p")
        assert not h.scheduler._patches


async def test_one_that_is_waited_for_takes_its_turn_too() -> None:
    async with Slow() as h:
        h.add_pod(make_pod("p").req(cpu="4"))
        await h.settle()
        pod = h.store["default/p"]
        assert isinstance(pod, PodInfo)
        waited = asyncio.ensure_future(
            h.scheduler.patch_status_now(pod, {"status": {"nominatedNodeName": "n1"}}),
        )
        await h.settle()
        assert not waited.done()
        h.first.set()
        await waited
        assert [patch["status"].get("nominatedNodeName") for _, patch in h.patches][-1] == "n1"


async def test_patches_of_other_pods_do_not_wait() -> None:
    async with Slow() as h:
        h.add_pod(make_pod("p").req(cpu="4"))
        await h.settle()
        h.add_pod(make_pod("q").req(cpu="4"))
        await h.settle()
        assert said(h, "q")
        assert not said(h, "p")
        h.first.set()
        await h.settle()
        assert said(h, "p")
