"""ImageLocality: recorded scores of upstream's table, and answers that follow the cluster's image counts."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from skedge.api.core import Node, Pod
from skedge.framework.state import CycleState
from skedge.plugins.image_locality import ImageLocality, normalized_name
from skedge.profiles.kept import Kept
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows

MIB = 1 << 20


def node(name: str, *sizes: int) -> Node:
    images = [
        {"names": [f"gcr.io/{size}:latest", f"gcr.io/{size}@sha256:abc"], "sizeBytes": size * MIB} for size in sizes
    ]
    return msgspec.convert({"metadata": {"name": name}, "status": {"images": images}}, Node)


def pod(*sizes: int, init: tuple[int, ...] = (), volumes: tuple[int, ...] = ()) -> PodInfo:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": f"gcr.io/{size}"} for size in sizes],
        "initContainers": [{"name": "i", "image": f"gcr.io/{size}"} for size in init],
        "volumes": [{"name": "v", "image": {"reference": f"gcr.io/{size}"}} for size in volumes],
    }
    return PodInfo(msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod))


def cluster(*nodes: tuple[int, ...]) -> tuple[NodeTable, ImageLocality]:
    table = NodeTable()
    for i, sizes in enumerate(nodes):
        table.set_node(node(f"n{i}", *sizes))
    return table, ImageLocality(None, SimpleNamespace(table=table))


@pytest.mark.parametrize(
    ("asking", "nodes", "scores"),
    [
        (pod(40, 250), [(40, 300, 2000), (250, 10)], [0, 5]),
        (pod(40, 300), [(40, 300, 2000), (250, 10)], [7, 0]),
        (pod(4000, 10), [(4000,), (10,)], [100, 0]),
        (pod(4000, 10), [(4000,), (10,), ()], [66, 0, 0]),
        (pod(300, 600, 900), [(600, 900), (300, 600, 900), ()], [32, 36, 0]),
        (pod(30, 40), [(20, 30, 40), (400, 30)], [1, 0]),
        (pod(300, volumes=(30,)), [(40, 300, 2000), (30, 20)], [12, 0]),
        (pod(30, init=(300,)), [(40, 300, 2000), (20, 30, 40)], [6, 0]),
        (pod(300, 300), [(300,)], [29]),
        (pod(volumes=(30,)), [(30,)], [100]),
        (pod(volumes=(10,)), [(10,)], [0]),
    ],
)
def test_scores(asking: PodInfo, nodes: list[tuple[int, ...]], scores: list[int]) -> None:
    table, plugin = cluster(*nodes)
    assert plugin.score(CycleState(), asking, Rows(table)).tolist() == scores


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("a/b@sha256:abc", "a/b@sha256:abc"),
    ],
)
def test_names(image: str, name: str) -> None:
    assert normalized_name(image) == name


def test_the_first_node_sets_the_size_until_the_last_one_is_gone() -> None:
    table = NodeTable()
    small, large = node("a", 40), node("b", 40)
    large.status.images = (msgspec.structs.replace(large.status.images[0], size_bytes=80 * MIB),)  # type: ignore[index]
    table.set_node(small)
    table.set_node(large)
    state = table.images.get("gcr.io/40:latest")
    assert state is not None
    assert (state.size, len(state.rows)) == (40 * MIB, 2)
    table.remove_node("a")
    table.set_node(node("b"))
    assert len(table.images) == 0


def test_kept_answers_follow_the_counts_and_unrelated_changes_touch_one_row() -> None:
    rng = random.Random(3)
    table, plugin = cluster((300,), (300, 600), ())
    asking = pod(300, 600)
    kept = Kept(table, plugin, CycleState(), asking, "score")
    for i in range(200):
        name = f"n{rng.randrange(6)}"
        if rng.random() < 0.2:
            table.remove_node(name)
        else:
            table.set_node(node(name, *rng.sample([300, 600, 900, 1], rng.randrange(4))))
        before = kept.generation
        totals = plugin.totals(asking) == kept._known_totals
        kept.sync()
        assert i == 0 or (kept.generation == before) == totals
        if table.count:
            want = plugin.score(CycleState(), asking, Rows(table))
            assert (kept.answers[: table.size] == want)[table.exists[: table.size]].all()
