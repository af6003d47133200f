"""Reported bugs about explanations. Named after their ids."""

from __future__ import annotations

from skedge.simulate.cluster import Cluster
from skedge.simulate.explain import explain
from skedge.simulate.report import render
from skedge.testing.builders import NodeBuilder, make_node, make_pod

BLOCKERS = {
    "cordoned": ("NodeUnschedulable", "node(s) were unschedulable"),
    "hdd": ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
    "slow": ("NodeResourcesFit", "Insufficient cpu"),
    "small": ("NodeResourcesFit", "Insufficient memory"),
    "tainted": ("TaintToleration", "node(s) had untolerated taint(s)"),
}


def blocked(kind: str, number: int) -> NodeBuilder:
    """A node that the pod would fit on but for one thing; slow ones have more CPU the higher their number is."""
    cpu = f"{1000 + 100 * number}m" if kind == "slow" else "4"
    made = make_node(f"{kind}-{number}").capacity(cpu=cpu, memory="3Gi" if kind == "small" else "8Gi")
    made.label(disk="hdd" if kind == "hdd" else "ssd")
    if kind == "tainted":
        made.taint("dedicated", "gpu")
    return made.unschedulable() if kind == "cordoned" else made


def test_b127_every_node_has_its_reason_and_the_smallest_changes_are_told() -> None:
    cluster = Cluster()
    kinds = [*BLOCKERS] * 4 + ["tainted"]
    nodes = {f"{kind}-{kinds[:i].count(kind)}": kind for i, kind in enumerate(kinds)}
    for name, kind in nodes.items():
        cluster.add_node(blocked(kind, int(name.rpartition("-")[2])).obj())
    pod = make_pod("p").req(cpu="2", memory="4Gi").node_selector(disk="ssd")
    found = explain(cluster, pod.info())
    assert (found.nodes, found.fits, len(found.rejected)) == (21, 0, 21)
    assert {each.node: (each.plugin, *each.reasons) for each in found.rejected} == {
        name: BLOCKERS[kind] for name, kind in nodes.items()
    }
    assert {each.reason: each.nodes for each in found.reasons} == {
        reason: 5 if kind == "tainted" else 4 for kind, (_, reason) in BLOCKERS.items()
    }
    hints = {hint.text: (hint.nodes, hint.examples[0]) for hint in found.hints}
    assert hints["tolerate the taint dedicated=gpu:NoSchedule"] == (5, "tainted-0")
    assert hints["do without the node selector disk=ssd"] == (4, "hdd-0")
    assert hints["ask for memory 3Gi instead of 4Gi"] == (4, "small-0")
    assert hints["ask for cpu 1300m instead of 2"] == (1, "slow-3"), "no less than it must be"
    assert [hint.kind for hint in found.hints][:1] == ["toleration"]
    lines = [line.split() for line in render(found, all_nodes=True).splitlines()]
    for name, kind in nodes.items():
        plugin, reason = BLOCKERS[kind]
        (line,) = [line for line in lines if line[:2] == [name, plugin]]
        assert line[3:] == reason.split()
