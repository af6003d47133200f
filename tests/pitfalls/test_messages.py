"""Pitfalls 1 to 12: words of conditions and events."""

from __future__ import annotations

import pytest

from pitfalls.scripted import BAD, NO, by_name, message, place, scripted, world
from skedge.framework.status import SUCCESS, Code, Status
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


def nodes(h: Harness, count: int) -> None:
    for i in range(count):
        h.add_node(make_node(f"n{i}"))


async def test_pitfall_1_reasons_are_sorted_as_text() -> None:
    codes = by_name(lambda name: 1 if name < "n2" and len(name) == 2 else 3 if name == "n9" else 2)
    words = {1: "node(s) A", 2: "node(s) B", 3: "node(s) C"}
    plugin = scripted("S", filter=codes, filter_status=lambda state, pod, code: Status(Code.UNSCHEDULABLE, words[code]))
    async with world(plugin) as h:
        nodes(h, 13)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/13 nodes are available: 1 node(s) C, 10 node(s) B, 2 node(s) A."


async def test_pitfall_2_a_prefilter_rejection_has_no_histogram() -> None:
    async with world(scripted("S", pre_filter=(None, Status(Code.UNSCHEDULABLE, "Node(s) failed")))) as h:
        nodes(h, 3)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/3 nodes are available: Node(s) failed."


async def test_pitfall_3_words_of_postfilter_follow_after_a_space_without_a_stop() -> None:
    plugin = scripted(
        "S", filter=by_name(lambda name: 1), post_filter=(None, Status(Code.UNSCHEDULABLE, "nobody goes"))
    )
    async with world(plugin) as h:
        nodes(h, 2)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/2 nodes are available: 2 no. nobody goes"
    async with world(post_filter=True) as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("p").req(cpu="2"))
        await h.settle()
        inner = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert message(h) == f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {inner}"


async def test_pitfall_4_nodes_that_prefilter_left_out_are_counted_as_unsatisfying() -> None:
    plugin = scripted("P", pre_filter=(frozenset({"n3"}), SUCCESS), filter=by_name(lambda name: 1))
    plugin.filter_status = lambda state, pod, code: Status(Code.UNSCHEDULABLE, "X")
    async with world(plugin) as h:
        nodes(h, 5)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/5 nodes are available: 1 X, 4 node(s) didn't satisfy plugin(s) [P]."


async def test_pitfall_5_a_preemption_that_succeeds_is_not_in_the_message() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("low").req(cpu="1").node("n"))
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        h.scheduler.run_slice()
        await h.scheduler.dispatcher.drain()
        status = next(patch["status"] for key, patch in h.patches if key == "default/p")
        assert status["nominatedNodeName"] == "n"
        assert status["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient cpu."


async def test_pitfall_6_no_nodes_at_all() -> None:
    async with Harness() as h:
        h.add_pod(make_pod("p").nominated("gone"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert (condition["message"], condition["reason"]) == ("no nodes available to schedule pods", "Unschedulable")
        assert place(h) == "error backoff"
        assert h.json["default/p"]["status"]["nominatedNodeName"] == ""


@pytest.mark.parametrize("point", ["reserve", "permit"])
async def test_pitfall_7_reserve_and_permit_speak_of_one_node(point: str) -> None:
    async with world(scripted("S", **{point: (NO, 0.0) if point == "permit" else NO}, unreserve=None)) as h:
        nodes(h, 50)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/1 nodes are available: 1 no."


async def test_pitfall_8_two_reasons_a_node_are_counted_apart() -> None:
    async with world() as h:
        nodes(h, 100)
        h.add_pod(make_pod("p").req(cpu="100", memory="1Ti"))
        await h.settle()
        assert message(h) == "0/100 nodes are available: 100 Insufficient cpu, 100 Insufficient memory."


async def test_pitfall_9_only_the_note_of_the_event_is_cut() -> None:
    plugin = scripted("S", filter=by_name(lambda name: 1))
    plugin.filter_status = lambda state, pod, code: Status(Code.UNSCHEDULABLE, "x" * 3000)
    async with world(plugin) as h:
        nodes(h, 1)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert len(message(h)) > 3000
        note = h.events[-1].note
        assert (len(note), note[-4:]) == (1024, " ...")


async def test_pitfall_10_a_percent_sign_stays_what_it_is() -> None:
    """The reference spoils the event's note; here both are intact (docs/deviations.md)."""
    plugin = scripted("S", filter=by_name(lambda name: 1))
    plugin.filter_status = lambda state, pod, code: Status(Code.UNSCHEDULABLE, "50% full")
    async with world(plugin) as h:
        nodes(h, 1)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == h.events[-1].note == "0/1 nodes are available: 1 50% full."


async def test_pitfall_72_and_73_narrowed_to_nothing() -> None:
    first = scripted("A", pre_filter=(frozenset({"n0"}), SUCCESS))
    second = scripted("B", pre_filter=(frozenset({"n1"}), SUCCESS))
    async with world(first, second) as h:
        nodes(h, 2)
        h.add_pod(make_pod("p"))
        await h.settle()
        text = "node(s) didn't satisfy plugin(s) [A B] simultaneously"
        assert message(h) == f"0/2 nodes are available: {text}."
    async with world(scripted("A", pre_filter=(frozenset({"invalid-node"}), SUCCESS))) as h:
        nodes(h, 2)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [A]."


@pytest.mark.parametrize(("second", "text"), [(BAD, "never"), (SUCCESS, "no")])
async def test_pitfall_70_and_71_which_prefilter_rejection_counts(second: Status, text: str) -> None:
    a, b = scripted("A", pre_filter=(None, NO)), scripted("B", pre_filter=(None, second))
    async with world(a, b) as h:
        nodes(h, 1)
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h) == f"0/1 nodes are available: {text}."
        assert set(b.calls) == {"pre_filter"}  # it ran, though A had said no
