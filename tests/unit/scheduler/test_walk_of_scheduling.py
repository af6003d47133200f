"""The start-up flow of old releases, walked on: what the scheduler does once it runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from skedge.config.defaults import default_configuration
from skedge.config.types import Plugin
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Status
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Diary:
    """Writes down who is filtered, and who is assumed."""

    name = "Diary"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def filter(self, state: CycleState, pod: PodInfo, view: Any) -> Any:
        self.lines.append(f"filter {pod.name}")
        return view.full(0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.lines.append(f"reserve {pod.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.lines.append(f"unreserve {pod.name}")


def with_diary() -> tuple[Harness, Diary]:
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Diary", 0))
    diary = Diary()
    return Harness(config, out_of_tree={"Diary": lambda args, handle: diary}), diary


async def test_a1_one_pod_a_cycle_while_bindings_go_on() -> None:
    h, diary = with_diary()
    slow = asyncio.Event()
    h.bind_delay = lambda pod: slow
    async with h:
        for i in range(2):
            h.add_node(make_node(f"n{i}"))
        h.add_pod(make_pod("first").req(cpu="1").priority(1))
        h.add_pod(make_pod("second").req(cpu="1"))
        await h.settle()
        assert diary.lines == ["filter first", "reserve first", "filter second", "reserve second"]
        assert h.scheduler.dispatcher.unfinished_bindings == 2
        slow.set()
        await h.settle()
        assert h.node_of("first")
        assert h.node_of("second")


async def test_a2_filtered_nodes_never_best_nodes_always_ties_evenly() -> None:
    found: Counter[str] = Counter()
    for seed in range(60):
        async with Harness(seed=seed) as h:
            h.add_node(make_node("full").capacity(cpu="1"))
            h.add_node(make_node("small").capacity(cpu="3"))
            for name in ("a", "b"):
                h.add_node(make_node(name).capacity(cpu="8"))
            h.add_pod(make_pod("p").req(cpu="2"))
            await h.settle()
            found[h.node_of("p")] += 1
    assert set(found) == {"a", "b"}
    assert min(found.values()) > 15


@pytest.mark.parametrize(
    ("nodes", "percentage", "seen"), [(99, 0, 99), (99, 10, 99), (1000, 0, 420), (1000, 100, 1000)]
)
async def test_a3_a4_all_nodes_of_a_small_cluster_and_a_sample_of_a_large_one(
    nodes: int, percentage: int, seen: int
) -> None:
    """1000 nodes are sampled at 50 - 1000/125 per cent; the next cycle begins where this one ended."""
    config = default_configuration()
    config.percentage_of_nodes_to_score = percentage
    metrics = Metrics("1.36.2")
    async with Harness(config, hooks=SchedulerMetrics(metrics)) as h:
        for i in range(nodes):
            h.add_node(make_node(f"n{i}"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p")
        filters = metrics.counter("scheduler_plugin_evaluation_total").labels("NodeName", "Filter", "default-scheduler")
        assert filters.total == seen
        sampler = h.scheduler.profiles["default-scheduler"].sampler
        assert (sampler.start if sampler is not None else 0) == seen % nodes


async def test_a25_which_pods_go_where() -> None:
    """Assigned ones into the cache, ours without a node into the queue, others' nowhere; and out again."""
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        h.add_pod(make_pod("assigned").req(cpu="1").node("n"))
        h.add_pod(make_pod("ours").req(cpu="2"))
        h.add_pod(make_pod("foreign").scheduler("other"))
        await h.settle()
        cache, queue = h.scheduler.cache, h.scheduler.queue
        assert cache.statistics()["pods"] == 1
        assert queue.find("default/ours") is not None
        assert queue.find("default/foreign") is None
        h.delete_pod("ours")
        await h.settle()
        assert queue.find("default/ours") is None
        h.delete_pod("assigned")
        await h.settle()
        assert cache.statistics()["pods"] == 0
        h.validate()


async def test_a26_a_new_pod_is_popped_once() -> None:
    h, diary = with_diary()
    async with h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle(60.0)
        assert diary.lines == ["filter p", "reserve p"]


async def test_a42_nothing_to_do_is_waited_for_and_an_end_comes_promptly() -> None:
    async with Harness() as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        loop = asyncio.create_task(h.scheduler.run())
        for _ in range(200):
            await asyncio.sleep(0)
        assert h.node_of("p") == "n"
        waits = h.scheduler._wake
        assert len(waits._waiters) == 1, "the loop sleeps until it is woken"
        h.scheduler.stop()
        await loop
