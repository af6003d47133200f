"""The order in which a search that ends early looks at nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.order import NodeOrder, zone_of
from skedge.testing.builders import NodeBuilder, make_node

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def node(name: str, zone: str = "", region: str = "") -> NodeBuilder:
    labels = {key: value for key, value in ((ZONE, zone), (REGION, region)) if value}
    return make_node(name).labels(labels)


class World:
    def __init__(self, *nodes: NodeBuilder) -> None:
        self.table = NodeTable()
        for each in nodes:
            self.table.set_node(each.obj())
        self.order = NodeOrder(self.table)

    def put(self, each: NodeBuilder) -> None:
        self.table.set_node(each.obj())

    def names(self) -> str:
        return " ".join(self.table.names[row] for row in self.order.rows())


def test_first_of_each_zone_then_second() -> None:
    world = World(
        node("n0"),
        node("n1", region="r1"),
        node("n2", zone="z2"),
        node("n3", "z2", "r1"),
        node("n4", "z2", "r1"),
        node("n5", "z3", "r1"),
        node("n6", "z2", "r2"),
        node("n7", "z2", "r2"),
        node("n8", "z2", "r2"),
    )
    assert world.names() == "n0 n1 n2 n3 n5 n6 n4 n7 n8"


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({ZONE: "z"}, ":\0:z"),
        ({REGION: "r"}, "r:\0:"),
        ({ZONE: "z", REGION: "r"}, "r:\0:z"),
        ({ZONE: "new", OLD_ZONE: "old", REGION: "r"}, "r:\0:old"),
        ({OLD_REGION: "old", REGION: "new"}, "old:\0:"),
    ],
)
def test_zone_of(labels: dict[str, str], zone: str) -> None:
    assert zone_of(make_node("n").labels(labels).obj()) == zone


def come(world: World) -> None:
    world.put(node("d", "z1"))


def change_zone(world: World) -> None:
    world.put(node("a", "z2"))


def go_and_come_back(world: World) -> None:
    world.table.remove_node("a")
    world.put(node("a", "z1"))


def zone_empties_and_returns(world: World) -> None:
    world.table.remove_node("a")
    world.table.remove_node("b")
    world.names()
    world.put(node("a", "z1"))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([], "a c b"),
        ([come], "a c b d"),
        ([change_zone], "a c b"),  # the list keeps its old order
        ([change_zone, come], "b c d a"),
        ([go_and_come_back], "a c b"),
        ([go_and_come_back, come], "b c a d"),
        ([zone_empties_and_returns], "c a"),
    ],
    ids=lambda value: "+".join(change.__name__ for change in value) if isinstance(value, list) else "",
)
def test_list_is_made_anew_only_when_nodes_come_or_go(changes: list[Callable[[World], None]], names: str) -> None:
    world = World(node("a", "z1"), node("b", "z1"), node("c", "z2"))
    assert world.names() == "a c b"
    for change in changes:
        change(world)
    assert world.names() == names


def test_a_node_that_came_back_is_found_on_its_new_row() -> None:
    world = World(node("a"), node("b"))
    world.names()
    world.table.remove_node("a")
    world.table.remove_node("b")
    world.put(node("a"))
    world.put(node("b"))
    assert world.names() == "a b"
    assert [world.table.row_of[name] for name in ("a", "b")] == world.order.rows().tolist() == [1, 0]
