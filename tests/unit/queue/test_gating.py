"""PreEnqueue: who is kept out, who is asked, and how a pod gets in again."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.framework import events
from skedge.framework.status import Code
from skedge.queue.pending import Place
from skedge.snapshot.pods import PodInfo
from unit.queue.support import POD_DELETE, QUEUE, SKIP, Barrier, World, pod


def test_the_gate_that_holds_is_asked_first() -> None:
    late = Barrier("Late", POD_DELETE)
    world = World(late)
    late.closed = {"p"}
    world.add(pod())
    assert (world.barrier.runs, late.runs) == (1, 1)
    world.queue.activate([pod()])
    assert (world.barrier.runs, late.runs) == (1, 2)
    late.closed, world.barrier.closed = set(), {"p"}
    world.queue.activate([pod()])
    record = world.queue.find("ns/p")
    assert record is not None
    assert (record.gating_plugin, record.gating_events) == ("Barrier", (POD_DELETE,))
    assert record.unschedulable_plugins == {"Late", "Barrier"}, "what once gated stays listed"
    assert world.counts.gauge() == {"Late": 1, "Barrier": 1}


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.SUCCESS])
def test_anything_but_success_gates(code: Code) -> None:
    world = World()
    world.barrier.closed, world.barrier.code = {"p"}, code
    world.add(pod())
    assert world.place(pod()) is Place.GATED


def test_a_gate_that_raises_holds() -> None:
    class Broken(Barrier):
        def pre_enqueue(self, pod: PodInfo) -> Any:
            if self.closed:
                raise KeyError("x")
            return super().pre_enqueue(pod)

    broken = Broken("Broken", POD_DELETE, answer=QUEUE)
    broken.closed = {"p"}
    world = World(broken)
    world.add(pod())
    assert world.place(pod()) is Place.GATED
    broken.closed = set()
    world.queue.move_all(POD_DELETE)
    assert world.place(pod()) is Place.ACTIVE


@pytest.mark.parametrize(("early", "into", "out"), [(True, Place.GATED, None), (False, Place.BACKOFF, Place.GATED)])
def test_pre_enqueue_at_one_end_of_backoff(early: bool, into: Place, out: Place | None) -> None:
    """kubernetes#117194: on the way in where pods are popped from backoff, on the way out otherwise."""
    world = World(pop_from_backoff_q=early)
    record = world.rejected(pod())
    world.barrier.closed = {"p"}
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is into
    if out is not None:
        world.pass_time(2)
        assert world.place(record.pod) is out


def test_a_preemptor_gated_without_any_helpful_hint_comes_back() -> None:
    """kubernetes#139162: the sweep is the last resort for gates too."""
    preemption = Barrier("DefaultPreemption", POD_DELETE)
    world = World(preemption)
    record = world.rejected(pod())
    preemption.closed = {"p"}
    world.queue.move_all(events.NODE_ADD)
    assert world.place(record.pod) is Place.GATED
    preemption.closed = set()
    world.fit.answer = SKIP
    world.queue.move_all(events.ASSIGNED_POD_DELETE)
    assert world.place(record.pod) is Place.GATED
    world.pass_time(330)
    assert world.place(record.pod) is Place.ACTIVE
    assert record.was_flushed_from_unschedulable
