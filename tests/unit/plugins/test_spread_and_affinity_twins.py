"""PodTopologySpread and InterPodAffinity, kept current in a living cluster, against their slow twins."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.api.core import Node, Pod
from skedge.framework.plugin import MAX_NODE_SCORE
from skedge.framework.state import CycleState
from skedge.plugins.inter_pod_affinity.plugin import REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING
from skedge.plugins.pod_topology_spread.plugin import REASON, REASON_MISSING
from skedge.snapshot.by_domain import gathered
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView, Rows
from twins import affinity, spread
from twins.growing import Growing, placed

WORDS = {
    REASON: spread.SKEWED,
    REASON_MISSING: spread.MISSING,
    REASON_AFFINITY: affinity.AFFINITY,
    REASON_ANTI_AFFINITY: affinity.ANTI_AFFINITY,
    REASON_EXISTING: affinity.EXISTING,
}
SEEDS = st.integers(0, 2**32 - 1)
PLUGINS = pytest.mark.parametrize(("name", "twin"), [("PodTopologySpread", spread), ("InterPodAffinity", affinity)])


def plugin_of(growing: Growing, name: str) -> Any:
    return next(p for p in growing.cluster.profiles["default-scheduler"].plugins if p.name == name)


def verdicts(plugin: Any, state: CycleState, info: PodInfo, view: Any) -> list[str]:
    codes = np.broadcast_to(plugin.filter(state, info, view), (view.size,))
    return [WORDS[plugin.filter_status(state, info, int(c)).reasons[0]] if c else "" for c in codes]


def filtered(growing: Growing, name: str, pod: Pod) -> dict[str, str] | None:
    """The plugin's verdict on each node; None: it skips the pod."""
    plugin, state, info = plugin_of(growing, name), CycleState(), PodInfo(pod)
    table = growing.cluster.cache.table
    _, status = plugin.pre_filter(state, info, Rows(table))
    if status.skip:
        return None
    assert status.ok
    said = verdicts(plugin, state, info, Rows(table))
    return {table.names[row]: word for row, word in enumerate(said) if table.exists[row]}


def scored(growing: Growing, name: str, pod: Pod, feasible: list[Node]) -> list[int]:
    plugin, state, info = plugin_of(growing, name), CycleState(), PodInfo(pod)
    table = growing.cluster.cache.table
    view = Rows(table, np.array([table.row_of[node.metadata.name] for node in feasible], np.int64))
    if plugin.pre_score(state, info, view).skip:
        return [0] * len(feasible)
    raw = gathered(plugin.score(state, info, view))
    if len(feasible) == table.size:  # all rows, in whatever form the plugin finds best for them
        whole = Rows(table)
        plugin.pre_score(state, info, whole)
        of_all = np.broadcast_to(gathered(plugin.score(state, info, whole)), table.size)
        assert of_all[view.rows].tolist() == raw.tolist()
    scores: list[int] = plugin.normalizer.apply(raw, plugin.normalizer.bounds(raw)).tolist()
    assert all(0 <= score <= MAX_NODE_SCORE for score in scores)
    return scores


@PLUGINS
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_filter_equals_its_twin_all_along(name: str, twin: Any, seed: int) -> None:
    growing = Growing(seed)
    pods = [growing.pod() for _ in range(4)]
    for _ in range(30):
        growing.step()
        pod = growing.rng.choice(pods)
        got = filtered(growing, name, pod)
        nodes = growing.world.nodes
        expected = {n: twin.verdict(growing.world, pod, node) for n, node in nodes.items()}
        assert (got if got is not None else dict.fromkeys(nodes, "")) == expected
    plugin_of(growing, name)._counters.validate()


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_scores_equal_their_twins_all_along(seed: int) -> None:
    growing = Growing(seed)
    pods = [growing.pod() for _ in range(4)]
    for _ in range(20):
        growing.step()
        nodes = list(growing.world.nodes.values())
        feasible = growing.rng.sample(nodes, growing.rng.randrange(len(nodes) + 1))
        if not feasible:
            continue
        pod = growing.rng.choice(pods)
        assert scored(growing, "InterPodAffinity", pod, feasible) == affinity.scores(growing.world, pod, feasible)
        soft = spread.of_action(pod, "ScheduleAnyway")
        expected = spread.scores(growing.world, pod, soft, feasible, True) if soft else [0] * len(feasible)
        assert scored(growing, "PodTopologySpread", pod, feasible) == expected


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_default_scores_equal_their_twin(seed: int) -> None:
    """System defaults: nodes without a key are not ignored."""
    growing = Growing(seed)
    growing.cluster.add("services", {"metadata": {"name": "s", "namespace": "one"}, "spec": {"selector": {"app": "a"}}})
    for _ in range(25):
        growing.step()
    json: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "one", "uid": "p", "labels": {"app": "a"}},
        "spec": {"schedulerName": "default-scheduler", "containers": []},
    }
    constraints = [
        {"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    for constraint in constraints:
        constraint["labelSelector"] = {"matchLabels": {"app": "a"}}
    feasible = list(growing.world.nodes.values())
    if feasible:
        bare = msgspec.convert(json, Pod)
        own = msgspec.convert({**json, "spec": {**json["spec"], "topologySpreadConstraints": constraints}}, Pod)
        soft = spread.of_action(own, "ScheduleAnyway")
        expected = spread.scores(growing.world, own, soft, feasible, False)
        assert scored(growing, "PodTopologySpread", bare, feasible) == expected


@PLUGINS
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_worlds_equal_their_twins(name: str, twin: Any, seed: int) -> None:
    """Each row with pods added and removed on it, all rows at once, against one node at a time."""
    growing = Growing(seed)
    rng = growing.rng
    for _ in range(25):
        growing.step()
    table, plugin = growing.cluster.cache.table, plugin_of(growing, name)
    for _ in range(6):
        pod = growing.pod()
        state, info = CycleState(), PodInfo(pod)
        _, status = plugin.pre_filter(state, info, Rows(table))
        nodes = list(growing.world.nodes.values())
        if status.skip or not nodes:
            continue
        chosen = rng.sample(nodes, rng.randrange(1, len(nodes) + 1))
        rows = np.array([table.row_of[node.metadata.name] for node in chosen], np.int64)
        added = {
            node.metadata.name: [growing.other(node.metadata.name) for _ in range(rng.randrange(3))] for node in chosen
        }
        removed = {node.metadata.name: [p for p in growing.world.on(node) if rng.random() < 0.5] for node in chosen}

        def by_row(pods: dict[str, list[Pod]]) -> dict[int, list[PlacedPod]]:
            return {table.row_of[n]: [placed(p) for p in of_node] for n, of_node in pods.items() if of_node}

        view = DeltaView(table, rows, by_row(added), by_row(removed))
        expected = [
            twin.verdict(growing.world, pod, node, added[node.metadata.name], removed[node.metadata.name])
            for node in chosen
        ]
        assert verdicts(plugin, state, info, view) == expected
