"""Evaluations are counted as the sequential reference counts them: against a twin that asks node by node."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from skedge.profiles.measures import CountedMeasures
from skedge.profiles.search import Search
from skedge.snapshot.views import DeltaView, Rows
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

NAME = "default-scheduler"


def counted(metrics: Metrics, point: str) -> Counter[str]:
    family = metrics.counter("scheduler_plugin_evaluation_total").sample()
    found: Counter[str] = Counter()
    for sample in family.samples:
        of = dict(sample.labels)
        if of["extension_point"] == point and sample.value:
            found[of["plugin"]] += int(sample.value)  # type: ignore[arg-type]
    return found


def one_by_one(search: Search) -> Counter[str]:
    """What the reference would count for this search: every node, plugin after plugin, until one says no."""
    found: Counter[str] = Counter()
    crowded = search.crowded()
    table = search.table

    def passes(view: Any) -> bool:
        for plugin in search.profile.filter:
            if plugin.name in search.skip_filter:
                continue
            found[plugin.name] += 1
            if np.broadcast_to(plugin.filter(search.state, search.pod, view), (1,))[0]:
                return False
        return True

    for row in np.flatnonzero(table.exists).tolist():
        rows = np.array([row], np.int64)
        if row in crowded and not passes(DeltaView(table, rows, added={row: crowded[row]})):
            continue
        passes(Rows(table, rows))
    return found


def cluster(rng: random.Random, harness: Harness) -> None:
    for i in range(12):
        node = make_node(f"n{i}").capacity(cpu=str(rng.choice([2, 4])), memory="8Gi", pods="20")
        node = node.label(zone=rng.choice("ab"))
        if rng.random() < 0.3:
            node = node.taint("k", "v", "NoSchedule")
        harness.add_node(node)


def any_pod(rng: random.Random, i: int) -> Any:
    pod = make_pod(f"p{i}").req(cpu=f"{rng.choice([200, 900, 1800])}m").label(app=rng.choice("xy"))
    if rng.random() < 0.4:
        pod = pod.node_selector(zone=rng.choice("ab"))
    if rng.random() < 0.4:
        pod = pod.spread("zone", {"app": "x"})
    return pod.priority(rng.choice([0, 0, 10]))


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(8))
async def test_filter_counts_what_one_by_one_would(seed: int) -> None:
    rng = random.Random(seed)
    async with Harness(seed=seed) as harness:
        cluster(rng, harness)
        profile = harness.scheduler.profiles[NAME]
        for i in range(25):
            harness.add_pod(any_pod(rng, i))
            await harness.settle()
            probe = any_pod(rng, 1000 + i)
            metrics = Metrics("1.36.2")
            profile.measures = CountedMeasures(profile, SchedulerMetrics(metrics), harness.clock.monotonic)
            for standing in profile._standings.values():
                standing.measured = None
            search = Search(profile, probe.info(), harness.scheduler.queue.nominator)
            search.run()
            assert counted(metrics, "Filter") == one_by_one(search), (seed, i)
            if len(search.rows) > 1:
                search.scores()
                assert set(counted(metrics, "Score").values()) <= {len(search.rows)}
                assert counted(metrics, "Score")["NodeResourcesFit"] == len(search.rows)
