"""The node table: rows, ghosts, columns that grow, ids that are given back."""

from __future__ import annotations

import numpy as np
import pytest

from skedge.snapshot.changes import Aspect, ChangeLog
from skedge.snapshot.interning import Interner
from skedge.snapshot.lookup import Lookup, Membership
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.views import DeltaView, Row, Rows
from skedge.testing.builders import make_node, make_pod


def test_a_ghost_has_pods_but_no_answer_and_its_row_is_used_again() -> None:
    table = NodeTable()
    pod = make_pod("p").req(cpu="1").node("gone").placed()
    row = table.add_pod(pod)
    assert (table.row_of["gone"], bool(table.exists[row]), table.count) == (row, False, 0)
    assert table.set_node(make_node("gone").obj()) == row
    assert bool(table.exists[row])
    assert table.remove_node("gone")
    assert table.row_of == {"gone": row}
    table.remove_pod(pod)
    assert table.row_of == {}
    assert table.set_node(make_node("other").obj()) == row
    assert table.requested["cpu"][row] == 0
    assert not table.remove_node("unknown")


def test_columns_grow_with_the_cluster() -> None:
    table = NodeTable(capacity=2)
    table.label_column("kubernetes.io/hostname")
    for i in range(20):
        table.set_node(make_node(f"n{i}").taint("k", str(i % 3)).obj())
        table.add_pod(make_pod(f"p{i}").req(cpu="1").node(f"n{i}").placed())
    view = Rows(table)
    assert view.size == 20
    assert view.requested("cpu").tolist() == [1000] * 20
    assert view.allocatable("cpu").tolist() == [4000] * 20
    hostname = Membership(["n7"], inside=1, outside=0, absent=0)
    assert np.flatnonzero(view.by_label("kubernetes.io/hostname", hostname)).tolist() == [7]
    taints = Lookup(lambda taints: len(taints or ()) and int(taints[0].value))
    assert view.by_taints(taints).tolist() == [i % 3 for i in range(20)]


def test_replacing_nodes_leaves_columns_flat() -> None:
    table = NodeTable()
    column = table.label_column("kubernetes.io/hostname")
    for i in range(2_000):
        table.set_node(make_node(f"n{i}").taint("k", str(i)).obj())
        if i >= 10:
            table.remove_node(f"n{i - 10}")
    assert (table.capacity, table.size) == (64, 11)
    assert (column.values.in_use(), len(column.values)) == (10, 11)
    assert table.taint_sets.in_use() == 10


def test_label_columns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTable, "MAX_LABEL_COLUMNS", 3)
    table = NodeTable()
    table.set_node(make_node("n").labels({f"k{i}": "v" for i in range(9)}).obj())
    for i in range(9):
        assert Rows(table).by_label(f"k{i}", Membership(["v"], 1, 0, 0)).tolist() == [1]
    assert list(table.labels) == ["k6", "k7", "k8"]


def test_one_row_gives_the_numbers_that_many_rows_give() -> None:
    table = NodeTable()
    table.set_node(make_node("a").label(x="1").taint("k").unschedulable().obj())
    table.set_node(make_node("b").capacity(cpu="2").obj())
    table.add_pod(make_pod("p").req(cpu="1", memory="1Gi").node("a").placed())
    many = Rows(table)
    by_label = Lookup(lambda value: 7 if value == "1" else -7)
    by_taints = Lookup(lambda taints: len(taints or ()))
    for row in range(2):
        one = Row(table, row)
        for resource in ("cpu", "memory", "example.com/none"):
            assert one.allocatable(resource) == many.allocatable(resource)[row]
            assert one.requested(resource) == many.requested(resource)[row]
        for name in ("allowed_pods", "pod_count", "nonzero_cpu", "nonzero_memory", "unschedulable"):
            assert getattr(one, name) == getattr(many, name)[row]
        assert one.by_label("x", by_label) == many.by_label("x", by_label)[row]
        assert one.by_taints(by_taints) == many.by_taints(by_taints)[row]
        assert one.named(("a",)) == many.named(("a",))[row]


def test_a_delta_view_is_a_world_a_row() -> None:
    table = NodeTable()
    for name in "ab":
        table.set_node(make_node(name).obj())
    old = make_pod("old").req(cpu="1").node("a").placed()
    row = table.add_pod(old)
    new = make_pod("new").req(cpu="2").node("b").placed()
    view = DeltaView(table, np.array([0, 1]), added={1: [new]}, removed={row: [old]})
    assert view.requested("cpu").tolist() == [0, 2000]
    assert view.pod_count.tolist() == [0, 1]
    assert [list(view.pods(r)) for r in (0, 1)] == [[], [new]]
    assert Rows(table).requested("cpu").tolist() == [1000, 0]


def test_wide_amounts_are_noticed_and_forgotten() -> None:
    table = NodeTable()
    assert not table.wide
    table.set_node(make_node("n").capacity(memory="8Ei").obj())
    assert table.wide
    table.set_node(make_node("n").capacity(memory="8Gi").obj())
    assert not table.wide
    pod = make_pod("p").req(memory="9223372036854775807").node("n").placed()
    other = make_pod("q").req(memory="9223372036854775807").node("n").placed()
    table.add_pod(pod)
    table.add_pod(other)
    assert table.wide
    assert table.requested["memory"][0] == -2  # wraps as int64 does
    table.remove_pod(pod)
    table.remove_pod(other)
    assert not table.wide
    assert table.requested["memory"][0] == 0


def test_the_change_log_tells_readers_that_fell_behind() -> None:
    log = ChangeLog(window=4)
    for row in range(6):
        log.append(row, Aspect.TAINTS if row % 2 else Aspect.RESOURCES)
    assert log.since(0, Aspect.TAINTS) == {1, 3, 5}
    assert log.since(4, Aspect.ALL) == {4, 5}
    for row in range(6, 12):
        log.append(row, Aspect.LABELS)
    assert log.since(0, Aspect.ALL) is None
    assert log.since(11, Aspect.ALL) == {11}
    assert log.since(12, Aspect.ALL) == set()


def test_interned_ids_are_counted() -> None:
    interner: Interner[str] = Interner()
    a, b = interner.acquire("a"), interner.acquire("b")
    assert interner.acquire("a") == a
    interner.release(a)
    assert interner.get("a") == a
    generation = interner.generation
    interner.release(a)
    assert interner.get("a") == -1
    assert interner.acquire("c") == a
    assert interner.generation == generation + 1
    assert (interner.get("b"), interner.in_use(), len(interner)) == (b, 2, 2)


def test_sums_beyond_int64_wrap_without_a_warning() -> None:
    table = NodeTable()
    table.set_node(make_node("n").obj())
    pods = [
        make_pod(name).req(memory=amount).node("n").placed()
        for name, amount in (("a", "7Ei"), ("b", "1Gi"), ("c", "7Ei"))
    ]
    for pod in pods:
        table.add_pod(pod)
    row = table.row_of["n"]
    assert int(table.requested["memory"][row]) == (14 << 60) + (1 << 30) - (1 << 64)
    for pod in pods:
        table.remove_pod(pod)
    assert int(table.requested["memory"][row]) == 0
