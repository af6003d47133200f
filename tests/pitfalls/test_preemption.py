"""Pitfalls of preemption that the tests of its parts do not number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pitfalls.scripted import by_name, message, scripted, world
from skedge.framework.plugin import PostFilterResult
from skedge.framework.status import SUCCESS, Code, PluginError, Status
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(("reason", "again"), [("PreemptionByScheduler", False), ("DeletionByTaintManager", True)])
async def test_pitfall_105_and_106_which_terminating_victims_are_waited_for(reason: str, again: bool) -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        going = make_pod("going").req(cpu="1").node("n").terminating()
        going.json["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
        h.add_pod(going)
        h.add_pod(make_pod("other").req(cpu="1").node("n"))
        h.add_pod(make_pod("p").req(cpu="1").priority(10).nominated("n"))
        h.scheduler.run_slice()
        assert ("preemption" in message_now(h)) is not again


def message_now(h: Harness) -> str:
    return h.events[-1].note


async def test_pitfall_107_unresolvable_nodes_are_no_candidates() -> None:
    plugin = scripted("S", filter=by_name(lambda name: 1))
    plugin.filter_status = lambda state, pod, code: Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "never")
    async with world(plugin, post_filter=True) as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        h.add_pod(make_pod("low").req(cpu="1").node("n"))
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        await h.settle()
        assert h.deleted == []
        assert "1 Preemption is not helpful for scheduling." in message(h)


async def test_pitfall_110_the_filters_own_words_where_freed_room_is_not_enough() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        h.add_pod(make_pod("low").req(cpu="1").node("n"))
        h.add_pod(make_pod("p").req(cpu="3").priority(10).node_selector(**{"kubernetes.io/hostname": "n"}))
        h.add_pod(make_pod("high").req(cpu="1").priority(20).node("n"))
        await h.settle()
        assert h.deleted == []
        assert "preemption: 0/1 nodes are available: 1 " in message(h)


async def test_pitfall_116_an_error_on_one_node_does_not_stop_a_candidate() -> None:
    def fail(state: Any, pod: Any, view: Any) -> Any:
        if len(view.rows) == 1 and view.table.names[view.rows[0]] == "bad":
            raise PluginError("no idea about bad")
        return np.zeros(view.size, np.int64)

    async with world(scripted("S", filter=fail), post_filter=True) as h:
        for name in ("bad", "good"):
            h.add_node(make_node(name).capacity(cpu="1"))
            h.add_pod(make_pod(f"on-{name}").req(cpu="1").node(name))
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        await h.settle()
        assert len(h.deleted) == 1


async def test_pitfall_125_any_of_equal_candidates_will_do() -> None:
    async with Harness() as h:
        for name in ("n1", "n2"):
            h.add_node(make_node(name).capacity(cpu="1"))
            h.add_pod(make_pod(f"on-{name}").req(cpu="1").node(name).start_time("2026-01-01T00:00:00Z"))
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        await h.settle()
        await h.settle(20.0)
        assert [f"on-{h.node_of('p')}"] == [key.removeprefix("default/") for key in h.deleted]


async def test_pitfall_12_words_of_a_preemption_that_breaks() -> None:
    """The prefix is there for errors, too."""

    def post_filter(*args: Any) -> tuple[PostFilterResult | None, Status]:
        return None, Status(Code.ERROR, error=RuntimeError('preemption: running RemovePod on PreFilter plugin "S": no'))

    async with world(scripted("S", filter=by_name(lambda name: 1), post_filter=post_filter)) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert message(h).endswith('1 no. preemption: running RemovePod on PreFilter plugin "S": no')
    assert SUCCESS.ok
