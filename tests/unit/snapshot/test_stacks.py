"""Resources side by side equal the columns they were made from, whatever happened in between."""

from __future__ import annotations

import random

import numpy as np
import pytest

from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.stacks import Stack
from skedge.testing.builders import make_node, make_pod

GPU = "example.com/gpu"
RESOURCES = (("cpu", "memory"), ("cpu",), ("memory", "cpu", GPU), ("nobody.has/it",), ())


def check(table: NodeTable, resources: tuple[str, ...]) -> None:
    stack = table.stack(resources)
    assert stack is not None
    exists = table.exists[: table.size]
    nothing = np.zeros(table.size, np.int64)
    for i, resource in enumerate(resources):
        allocatable = table.allocatable.get(resource, nothing)[: table.size]
        used = table.requested.get(resource, nothing)[: table.size]
        nonzero = {"cpu": table.nonzero_cpu, "memory": table.nonzero_memory}.get(resource)
        counted = used if nonzero is None else nonzero[: table.size]
        assert (stack.allocatable[i] == allocatable)[exists].all()
        assert (stack.used[i] == used)[exists].all()
        assert (stack.free[i] == allocatable - used)[exists].all()
        assert (stack.free_nonzero[i] == allocatable - counted)[exists].all()
    slots = (table.allowed_pods - table.pod_count)[: table.size]
    assert (stack.free[-1] == slots)[exists].all()
    assert stack.everywhere == bool((stack.allocatable[:, exists] != 0).all())
    for nonzero, free in ((False, stack.free), (True, stack.free_nonzero)) if exists.any() else ():
        least = free[:, exists].min(axis=1).tolist()
        for change in (0, 1):
            for i in range(len(least)):
                amounts = [each + change * (i == j) for j, each in enumerate(least)]
                assert stack.fits(amounts, nonzero=nonzero) == (not change)


@pytest.mark.parametrize("seed", range(6))
def test_stack_follows_the_table(seed: int) -> None:
    rng, table, pods = random.Random(seed), NodeTable(), list[PlacedPod]()
    for step in range(150):
        name = f"n{rng.randrange(12)}"
        what = rng.random()
        if what < 0.25:
            node = make_node(name).capacity(cpu=rng.choice(["0", "2", "4"]), memory="8Gi", pods="30")
            table.set_node((node.capacity(**{GPU: "2"}) if rng.random() < 0.3 else node).obj())
        elif what < 0.32:
            table.remove_node(name)
        elif what < 0.8 or not pods:
            pod = make_pod(f"p{step}")
            pods.append(PlacedPod((pod if rng.random() < 0.4 else pod.req(cpu="300m", memory="100Mi")).info(), name))
            table.add_pod(pods[-1])
        else:
            table.remove_pod(pods.pop(rng.randrange(len(pods))))
        if rng.random() < 0.6:
            check(table, rng.choice(RESOURCES))


def test_one_changed_row_is_followed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = NodeTable()
    for i in range(5):
        table.set_node(make_node(f"n{i}").capacity(cpu="4", memory="8Gi", pods="30").obj())
    check(table, ("cpu", "memory"))
    monkeypatch.setattr(Stack, "_all_rows", lambda self: pytest.fail("all rows were made anew"))
    table.add_pod(PlacedPod(make_pod("p").req(cpu="300m").info(), "n3"))
    check(table, ("cpu", "memory"))


def test_there_is_none_while_amounts_are_too_large() -> None:
    table = NodeTable()
    table.set_node(make_node("n0").capacity(cpu="4", memory="8Ei", pods="30").obj())
    assert table.stack(("cpu", "memory")) is None
    table.set_node(make_node("n0").capacity(cpu="4", memory="8Gi", pods="30").obj())
    check(table, ("cpu", "memory"))


def test_few_are_kept() -> None:
    table = NodeTable()
    table.set_node(make_node("n0").capacity(cpu="4", pods="30").obj())
    for i in range(NodeTable.MAX_STACKS * 2):
        table.stack((f"example.com/{i}",))
    assert len(table._stacks) == NodeTable.MAX_STACKS


def test_the_log_knows_changes_of_pods_alone() -> None:
    table = NodeTable()
    table.set_node(make_node("n0").obj())
    position = table.log.position
    table.add_pod(PlacedPod(make_pod("p").info(), "n0"))
    assert table.log.nodes_position == position
    assert table.log.since(position, Aspect.LABELS | Aspect.TAINTS) == set()
    assert table.log.since(position, Aspect.LABELS | Aspect.PODS) == {0}
    table.set_node(make_node("n0").label(a="b").obj())
    assert table.log.since(position, Aspect.LABELS | Aspect.TAINTS) == {0}
