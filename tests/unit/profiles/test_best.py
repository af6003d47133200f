"""`Search.best` finds the rows with the highest total, however it comes to know them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from skedge.profiles import scoring
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.snapshot.pods import PlacedPod
from skedge.testing.builders import PodBuilder, make_node, make_pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS: dict[str, Callable[[PodBuilder], PodBuilder]] = {
    "away from its like": lambda p: p.prefer_pods(10, HOST, {"app": "a"}, anti=True),
    "away from every like": lambda p: p.pod_affinity(HOST, {"app": "a"}, anti=True),
    "near its like": lambda p: p.prefer_pods(10, HOST, {"app": "a"}),
    "in the zone of its like": lambda p: p.prefer_pods(10, ZONE, {"app": "a"}),
    "spread over zones": lambda p: p.spread(ZONE, {"app": "a"}, when="ScheduleAnyway"),
    "spread over nodes and zones": lambda p: p.spread(ZONE, {"app": "a"}, when="ScheduleAnyway").spread(
        HOST, {"app": "a"}, max_skew=3, when="ScheduleAnyway"
    ),
    "both": lambda p: p.spread(ZONE, {"app": "a"}, when="ScheduleAnyway").prefer_pods(5, HOST, {"app": "a"}, anti=True),
    "where it may": lambda p: p.spread(ZONE, {"app": "a"}, max_skew=2).prefer_pods(5, HOST, {"app": "a"}, anti=True),
}


def cluster(rng: random.Random, nodes: int, odd: bool) -> Cluster:
    found = Cluster()
    for i in range(nodes):
        node = make_node(f"n{i}").capacity(cpu=rng.choice(["4", "8"]) if odd else "4", memory="16Gi", pods="20")
        node.label(**{HOST: f"n{i}"})
        if not odd or rng.random() < 0.9:
            node.zone(rng.choice("abc"))
        if odd and rng.random() < 0.1:
            node.unschedulable()
        found.add_node(node.obj())
    if odd:
        for i in range(0, nodes, 30):
            gone = found.cache.table.nodes[i]
            assert gone is not None
            found.cache.remove_node(gone)
    return found


@pytest.mark.parametrize("odd", [False, True], ids=["all nodes fit", "some are gone, cordoned, or in no zone"])
@pytest.mark.parametrize("kind", KINDS)
def test_best_rows_are_those_with_the_highest_total(kind: str, odd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(kind)
    world = cluster(rng, 90, odd)
    profile = world.profiles["default-scheduler"]
    ways: Counter[tuple[str, bool]] = Counter()

    def counted(name: str) -> Callable[..., Any]:
        shortcut = getattr(scoring, name)

        def count(*args: Any) -> Any:
            found = shortcut(*args)
            ways[name, found is not None and (name == "_drawn" or len(found) > 0)] += 1
            return found

        return count

    for name in ("_drawn", "_unbeaten", "_best_scattered"):
        monkeypatch.setattr(scoring, name, counted(name))
    for i in range(160 if kind != "away from every like" else 60):
        pod = KINDS[kind](make_pod(f"p{i}").label(app="a").req(cpu="100m", memory="64Mi")).info()
        search, picking, fresh = (Search(profile, pod) for _ in range(3))
        search.run()
        picking.run()
        fresh.run()
        totals = fresh.scores()
        expected = fresh.rows[totals == totals.max()].tolist()
        best = [int(row) for row in search.best()]
        assert best == expected, f"pod {i}"
        assert picking.pick(rng) in expected, f"pod {i}"
        row = rng.choice(best) if rng.random() < 0.9 else int(rng.choice(search.rows.tolist()))
        world.cache.add_pod(PlacedPod(pod, world.cache.table.names[row]))
        if rng.random() < 0.2:
            world.cache.remove_pod(rng.choice(list(world.cache.pods())))
    if kind == "away from its like" and not odd:
        assert ways["_drawn", True] > 50
        assert ways["_unbeaten", True] > 50
    if kind == "near its like":
        assert ways["_drawn", False] > 5
        assert ways["_best_scattered", True] > 100
    if kind == "in the zone of its like":
        assert ways["_unbeaten", False] > 5
    if kind == "away from every like" and not odd:
        assert ways["_drawn", True] > 30  # though many nodes do not fit


def test_every_best_row_is_picked_as_often() -> None:
    """Of 60 equal nodes 20 are in the zone with the fewest pods."""
    world = Cluster()
    for i in range(60):
        world.add_node(make_node(f"n{i}").capacity(cpu="4", memory="16Gi", pods="20").zone("abc"[i % 3]).obj())
    pending = make_pod("p").label(app="a").req(cpu="100m").spread(ZONE, {"app": "a"}, when="ScheduleAnyway").info()
    for i, node in enumerate(("n0", "n1")):
        placed = make_pod(f"there-{i}").label(app="a").req(cpu="100m").info()
        world.cache.add_pod(PlacedPod(placed, node))
    rng, picked = random.Random(1), Counter[int]()
    for _ in range(2000):
        search = Search(world.profiles["default-scheduler"], pending)
        search.run()
        picked[search.pick(rng)] += 1
    assert sorted(picked) == [row for row in range(60) if row % 3 == 2]
    assert all(60 < times < 140 for times in picked.values())


class Halves:
    """A normaliser of a user's own: no row gets more than 50."""

    @staticmethod
    def bounds(scores: Any) -> int:
        return int(scores.max())

    @staticmethod
    def apply(scores: Any, bounds: int) -> Any:
        return scores * 50 // bounds


def test_a_normaliser_of_ones_own_that_never_gives_the_most() -> None:
    world = cluster(random.Random(1), 30, odd=False)
    profile = world.profiles["default-scheduler"]
    part = scoring._Part(Halves, 2, np.arange(30) % 7, 6)
    search = Search(profile, make_pod("p").info())
    search.run()
    assert not len(scoring._unbeaten(search, [part]))
