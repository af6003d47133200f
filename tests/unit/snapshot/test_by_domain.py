"""Numbers of topology domains: the same whether they are gathered row by row or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.api.core import Node
from skedge.api.meta import ObjectMeta
from skedge.snapshot.by_domain import FEW, ByDomain, gathered
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.views import Bare, Row, Rows

ZONE = "zone"


def table_of(zones: list[str | None]) -> NodeTable:
    table = NodeTable()
    for i, zone in enumerate(zones):
        table.set_node(Node(metadata=ObjectMeta(name=f"n{i}", labels=None if zone is None else {ZONE: zone})))
    return table


@given(
    zones=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=12),
    changes=st.lists(st.tuples(st.integers(0, 11), st.sampled_from([None, "a", "b", "d"])), max_size=6),
    gone=st.none() | st.integers(0, 11),
    seed=st.integers(0, 9),
)
def test_every_form_says_the_same(
    zones: list[str | None], changes: list[tuple[int, str | None]], gone: int | None, seed: int
) -> None:
    table = table_of(zones)
    column = table.label_column(ZONE)
    for row, zone in changes:
        if row < len(zones):
            labels = None if zone is None else {ZONE: zone}
            table.set_node(Node(metadata=ObjectMeta(name=f"n{row}", labels=labels)))
    if gone is not None and gone < len(zones):
        table.remove_node(f"n{gone}")
    numbers = np.random.default_rng(seed).integers(0, 2, len(column.values) + 1)
    plain = numbers[column.ids[: table.size]]
    every = Rows(table).by_domain(column, numbers)
    some = np.arange(0, table.size, 2)
    rows_there = plain[table.exists[: table.size]]
    assert np.broadcast_to(gathered(every), table.size)[table.exists[: table.size]].tolist() == rows_there.tolist()
    assert Rows(table, some).by_domain(column, numbers).tolist() == plain[some].tolist()
    assert Bare(table, some).by_domain(column, numbers).tolist() == plain[some].tolist()
    assert [Row(table, row).by_domain(column, numbers) for row in range(table.size)] == plain.tolist()
    assert column.covered == np.count_nonzero(column.ids >= 0)
    assert column.others == np.count_nonzero((column.ids >= 0) & (column.ids != np.arange(len(column.ids))))
    if isinstance(every, ByDomain):
        assert sorted(set(every.present.tolist())) == sorted(set(plain.tolist()))
        assert every.take(some).tolist() == plain[some].tolist()
        assert every.rows().tolist() == plain.tolist()
        assert every.map(lambda each: each * 3).rows().tolist() == (plain * 3).tolist()


@pytest.mark.parametrize(
    ("zones", "numbers", "form"),
    [
        (["a", "b", "b"], [4, 4, 9], int),
        (["a", "b", "b"], [4, 5, 9], ByDomain),
        (["a", "b"], [4, 5, 9], np.ndarray),
        (["a", None], [4, 9], np.ndarray),
        ([f"z{i}" for i in range(FEW)], list(range(FEW + 1)), np.ndarray),
    ],
    ids=["domains agree", "few domains", "every node is one", "a node without the label", "many domains"],
)
def test_form(zones: list[str | None], numbers: list[int], form: type) -> None:
    table = table_of(zones)
    assert isinstance(Rows(table).by_domain(table.label_column(ZONE), np.array(numbers)), form)


def test_a_domain_that_nobody_is_in_any_more_does_not_count() -> None:
    table = table_of(["a", "b"])
    column = table.label_column(ZONE)
    table.set_node(Node(metadata=ObjectMeta(name="n1", labels={ZONE: "a"})))
    found = Rows(table).by_domain(column, np.array([1, 7, 9]))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [1, 1]
