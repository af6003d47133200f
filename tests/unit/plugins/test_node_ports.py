"""NodePorts: collisions in a living cluster, on views, and after deletions."""

from __future__ import annotations

import random

import numpy as np
import pytest

from skedge.api.ports import any_collide
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code
from skedge.plugins.node_ports import REASON, NodePorts
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.views import DeltaView, Row, Rows
from skedge.testing.builders import PodBuilder, make_node, make_pod

Port = tuple[str, str, int]


def with_ports(name: str, *ports: Port) -> PodBuilder:
    pod = make_pod(name)
    for protocol, ip, port in ports:
        pod = pod.host_port(port, protocol, ip)
    return pod


@pytest.mark.parametrize(
    ("used", "wanted", "taken"),
    [
        ([("UDP", "127.0.0.1", 8080)], [("UDP", "127.0.0.1", 8080)], True),
        ([("TCP", "127.0.0.2", 8080)], [("TCP", "127.0.0.1", 8080)], False),
        ([("TCP", "127.0.0.1", 8080)], [("UDP", "127.0.0.1", 8080)], False),
        ([("TCP", "127.0.0.1", 8001)], [("TCP", "", 8001)], True),
        ([("TCP", "", 8001)], [("TCP", "127.0.0.1", 8001)], True),
        ([("TCP", "", 8001)], [("UDP", "127.0.0.1", 8001)], False),
        ([("TCP", "127.0.0.1", 8001)], [("TCP", "10.0.10.10", 8001), ("TCP", "0.0.0.0", 8001)], True),
        ([("TCP", "", 80)], [("TCP", "::", 80)], True),
        ([("TCP", "::", 80)], [("TCP", "", 80)], True),
        ([("TCP", "::", 80)], [("TCP", "127.0.0.1", 80)], False),
    ],
)
def test_collisions(used: list[Port], wanted: list[Port], taken: bool) -> None:
    table = NodeTable()
    table.set_node(make_node("n").obj())
    table.add_pod(with_ports("other", *used).node("n").placed())
    plugin, pod = NodePorts(), with_ports("p", *wanted).info()
    state = CycleState()
    plugin.pre_filter(state, pod, Rows(table))
    assert plugin.filter(state, pod, Rows(table)).tolist() == [taken]
    assert plugin.filter(state, pod, Row(table)) == taken


def test_words_and_skip() -> None:
    plugin = NodePorts()
    status = plugin.filter_status(CycleState(), make_pod("p").info(), 1)
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON,))
    assert plugin.pre_filter(CycleState(), make_pod("p").info(), Rows(NodeTable()))[1].skip
    assert plugin.pre_filter(CycleState(), with_ports("p", ("TCP", "", 80)).info(), Rows(NodeTable()))[1].ok


def test_a_living_cluster_and_its_views_against_looking_at_every_pod() -> None:
    rng = random.Random(1)
    table, plugin = NodeTable(), NodePorts()
    placed: list[PlacedPod] = []

    def some_ports() -> list[Port]:
        return [
            (rng.choice(["TCP", "UDP"]), rng.choice(["", "::", "10.0.0.1", "10.0.0.2"]), rng.choice([80, 81]))
            for _ in range(rng.randrange(3))
        ]

    for i in range(5):
        table.set_node(make_node(f"n{i}").obj())
    for i in range(300):
        if placed and rng.random() < 0.45:
            table.remove_pod(placed.pop(rng.randrange(len(placed))))
        else:
            pod = with_ports(f"p{i}", *some_ports()).node(f"n{rng.randrange(5)}").placed()
            table.add_pod(pod)
            placed.append(pod)
        info = with_ports("x", *some_ports()).info()
        if not info.ports:
            continue
        state = CycleState()
        plugin.pre_filter(state, info, Rows(table))
        rows = np.array(rng.sample(range(5), 3), np.int64)
        removed = {int(row): [p for p in table.pods[row].values() if rng.random() < 0.5] for row in rows}
        added = {int(rows[0]): [with_ports("new", *some_ports()).node("n").placed()]}
        view = DeltaView(table, rows, added, removed)
        for looked_at in (Rows(table), view):
            want = [any_collide(info.ports, [q for p in looked_at.pods(r) for q in p.ports]) for r in looked_at.rows]
            assert plugin.filter(state, info, looked_at).tolist() == want
    for pod in placed:
        table.remove_pod(pod)
    assert len(table.host_ports) == 0


@pytest.mark.parametrize(
    ("ports", "node", "nominated", "hint"),
    [
        ([("TCP", "", 8080)], "n", "", QueueingHint.QUEUE),
        ([("TCP", "", 8080)], "", "n", QueueingHint.QUEUE),
        ([("TCP", "", 8081)], "n", "", QueueingHint.QUEUE_SKIP),
        ([], "n", "", QueueingHint.QUEUE_SKIP),
        ([("TCP", "", 8080)], "", "", QueueingHint.QUEUE_SKIP),
    ],
)
def test_a_deleted_pod_wakes_those_that_want_its_ports(
    ports: list[Port], node: str, nominated: str, hint: QueueingHint
) -> None:
    gone = with_ports("gone", *ports)
    if node:
        gone = gone.node(node)
    if nominated:
        gone = gone.nominated(nominated)
    assert NodePorts().after_pod_delete(with_ports("p", ("TCP", "", 8080)).info(), gone.info(), None) is hint
