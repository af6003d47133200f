"""Room that was promised to a pod which does not take it goes to whoever may use it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

import pytest

from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Mute(Harness):
    """No status patch ever arrives: what is promised is known to the scheduler alone."""

    async def patch_status(self, pod: Any, patch: Mapping[str, Any]) -> None:
        raise RuntimeError("no")


def where(h: Harness, name: str) -> str:
    return next((str(place.value) for place, record in h.scheduler.queue.records() if record.pod.name == name), "")


GPU = "example.com/gpu"


async def promised(h: Harness, known: bool) -> None:
    """`p`, gated, is promised n1, as its status says or not; `q`, as important, would fit there else, and only there.

    When its gate opens `p` does not fit on n1 any more.
    """
    h.add_node(make_node("n1").capacity(cpu="4").resource(GPU, "1"))
    pod = make_pod("p").req(cpu="4").priority(10).gates("g")
    h.add_pod(pod.nominated("n1") if known else pod)
    await h.settle()
    h.scheduler.queue.nominator.add(cast(PodInfo, h.store["default/p"]), "n1")
    h.add_pod(make_pod("old").req(cpu="1").priority(10).node("n1"))
    h.add_pod(make_pod("q").req(cpu="3").resource(GPU, "1").priority(10))
    await h.settle()
    assert (where(h, "p"), where(h, "q")) == ("gated", "unschedulable")


def open_gate(h: Harness) -> None:
    pod = copy.deepcopy(h.json["default/p"])
    del pod["spec"]["schedulingGates"]
    h.add_pod(pod)


@pytest.mark.parametrize("known", [True, False])
async def test_the_pod_chooses_another_node(known: bool) -> None:
    async with Mute() as h:
        await promised(h, known)
        h.add_node(make_node("n2").capacity(cpu="4"))
        open_gate(h)
        await h.settle(30.0)
        assert h.bindings == [("default/p", "n2"), ("default/q", "n1")]


@pytest.mark.parametrize("known", [True, False])
async def test_the_next_attempt_takes_it_back(known: bool) -> None:
    async with Mute() as h:
        await promised(h, known)
        open_gate(h)
        await h.settle(30.0)
        assert h.bindings == [("default/q", "n1")]


@pytest.mark.parametrize("known", [True, False])
async def test_the_pod_is_deleted(known: bool) -> None:
    async with Mute() as h:
        await promised(h, known)
        h.delete_pod("p")
        await h.settle(30.0)
        assert h.bindings == [("default/q", "n1")]


@pytest.mark.parametrize("known", [True, False])
async def test_somebody_else_binds_the_pod_to_another_node(known: bool) -> None:
    async with Mute() as h:
        await promised(h, known)
        h.add_node(make_node("n2").capacity(cpu="2"))
        bound = copy.deepcopy(h.json["default/p"])
        bound["spec"]["nodeName"] = "n2"
        h.add_pod(bound)
        await h.settle(30.0)
        assert h.bindings == [("default/q", "n1")]
