"""A blend equals the sums of its parts made anew, after any changes, also those that its journals forgot."""

from __future__ import annotations

import random

import numpy as np
import pytest

from skedge.snapshot.blends import Blend
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.counters_rows import Domains, RowCounts
from skedge.snapshot.nodes import NodeTable
from skedge.testing.builders import make_node

KEY = "topology.kubernetes.io/zone"


def check(blend: Blend, parts: list[tuple[RowCounts, int]]) -> None:
    blend.sync()
    ids, expected, counted = blend.domains.ids, np.zeros_like(blend.by_domain), 0
    for counts, worth in parts:
        for row, number in enumerate(counts.array().tolist()):
            if ids[row] >= 0:
                expected[ids[row]] += number * worth
                counted += number
    assert blend.by_domain.tolist() == expected.tolist()
    assert blend.counted == counted
    assert len(set(blend.touched.tolist())) == len(blend.touched)
    assert set(np.flatnonzero(expected).tolist()) <= set(blend.touched.tolist())
    present = expected[:-1][blend.domains.members > 0].tolist() or [0]
    assert blend.extremes == (min(present), max(present))


@pytest.mark.parametrize("zones", [5, 90], ids=["few domains", "a domain a node"])
@pytest.mark.parametrize("seed", range(4))
def test_a_blend_follows_its_parts(seed: int, zones: int) -> None:
    rng = random.Random(seed)
    table = NodeTable(capacity=64)
    nodes = 90

    def set_node(i: int, zone: int) -> None:
        node = make_node(f"n{i}")
        if rng.random() < 0.95 or zones == nodes:
            node.label(**{KEY: f"z{zone}"})
        table.set_node(node.obj())

    for i in range(nodes):
        set_node(i, i % zones)
    parts = [(RowCounts(table, Recent(1 << 20)), worth) for worth in (1, 7, -3)]
    blend = Blend(Domains(table, KEY), parts)
    check(blend, parts)
    for step in range(120):
        for _ in range(1500 if step % 40 == 39 else rng.choice([0, 1, 1, 1, 3])):
            counts, _ = rng.choice(parts)
            row = rng.randrange(nodes)
            counts.bump(row, -1 if counts.array()[row] > 0 and rng.random() < 0.4 else 1)
        if rng.random() < 0.05:
            set_node(rng.randrange(nodes + 10), rng.randrange(zones))
        if rng.random() < 0.9:
            check(blend, parts)
    check(blend, parts)


def test_a_journal_nobody_reads_is_given_up() -> None:
    table = NodeTable()
    table.set_node(make_node("n").obj())
    counts = RowCounts(table, Recent(1 << 20))
    position = counts.position()
    for _ in range(5000):
        counts.bump(0, 1)
    assert counts.since(position) is None
    position = counts.position()
    counts.bump(0, -1)
    assert counts.since(position) == [(0, -1)]
    assert len(counts._journal) < 1500
