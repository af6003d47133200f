"""Texts of the SIGUSR2 dump."""

from __future__ import annotations

from skedge.serving.dump import Mismatch, NodeDump, PodLine, compare_nodes, compare_pods, dump_nodes, dump_queue

POD = PodLine("p", "ns", "u1", "Running")
NOMINATED = PodLine("q", "ns", "u2", "Pending", "n1")


def test_nodes() -> None:
    node = NodeDump("n1", False, {"cpu": 500, "memory": 1024}, {"cpu": 4000, "pods": 110}, [POD], [NOMINATED])
    gone = NodeDump("n2", True, {}, {}, [])
    assert dump_nodes([node, gone]) == (
        "Node name: n1\nDeleted: false\n"
        "Requested Resources: {cpu:500 memory:1024}\nAllocatable Resources: {cpu:4000 pods:110}\n"
        "Scheduled Pods(number: 1):\n"
        "name: p, namespace: ns, uid: u1, phase: Running, nominatedNode: \n"
        "Nominated Pods(number: 1):\n"
        "name: q, namespace: ns, uid: u2, phase: Pending, nominatedNode: n1\n"
        "\n"
        "Node name: n2\nDeleted: true\nRequested Resources: {}\nAllocatable Resources: {}\n"
        "Scheduled Pods(number: 0):\nNominated Pods(number: 0):\n"
    )


def test_queue() -> None:
    text = dump_queue("activeQ:1; backoffQ:0; unschedulablePods:0", [NOMINATED])
    assert text == f"activeQ:1; backoffQ:0; unschedulablePods:0\n{NOMINATED}\n"


def test_comparison() -> None:
    assert compare_nodes(["b", "a", "c"], ["c", "d"]) == Mismatch(("a", "b"), ("d",))
    assert not compare_nodes(["a"], ["a"])
    assert compare_pods(["u1", "u2", "u3"], ["u1"], ["u2", "u4"]) == Mismatch(("u3",), ("u4",))
