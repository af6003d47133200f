"""Explanations as text."""

from __future__ import annotations

from skedge.simulate.cluster import Cluster
from skedge.simulate.explain import explain
from skedge.simulate.report import render
from skedge.testing.builders import make_node, make_pod

REJECTED = """\
Pod default/p: Unschedulable (scheduler default-scheduler)
  0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, \
preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for \
scheduling.

REASONS
  1  Insufficient cpu                  NodeResourcesFit
  1  node(s) had untolerated taint(s)  TaintToleration

NODES THAT DO NOT FIT (2)
  NODE  PLUGIN            CODE                          REASONS
  a     NodeResourcesFit  Unschedulable                 Insufficient cpu
  b     TaintToleration   UnschedulableAndUnresolvable  node(s) had untolerated taint(s)

PREEMPTION
  0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.

WHAT WOULD HELP (any one of these)
  tolerate the taint x:NoSchedule: 1 node fits (b)
  ask for cpu 1 instead of 2: 1 node fits (a)
  free the room of default/o (priority 0) on a: 1 node fits (a)
  add a node like a: 1 node fits (a-1)
"""

FITS = """\
Pod default/p: Schedulable (scheduler default-scheduler)

NODES THAT FIT (2)
  chosen: b
  b  498  = TaintToleration 300 + NodeResourcesFit 98 + NodeResourcesBalancedAllocation 100
  a  457  = TaintToleration 300 + NodeResourcesFit 60 + NodeResourcesBalancedAllocation 97
"""


def cluster(second_taint: bool) -> Cluster:
    made = Cluster()
    made.add_node(make_node("a").obj())
    made.add_node((make_node("b").taint("x") if second_taint else make_node("b")).obj())
    made.add_pod(make_pod("o").req(cpu="3").node("a").obj())
    return made


def test_nothing_fits() -> None:
    assert render(explain(cluster(True), make_pod("p").req(cpu="2").info())) == REJECTED


def test_some_fit() -> None:
    text = render(explain(cluster(False), make_pod("p").req(cpu="100m").info()))
    lines = text.splitlines()
    assert lines[:4] == FITS.splitlines()[:4]
    assert [line.split()[0] for line in lines[4:]] == ["b", "a"]
    assert "TaintToleration 300 + " in lines[4]


def test_long_lists_are_cut_unless_all_are_asked_for() -> None:
    many = Cluster()
    for i in range(30):
        many.add_node(make_node(f"n{i:02}").unschedulable().obj())
    found = explain(many, make_pod("p").info())
    text = render(found)
    assert "NODES THAT DO NOT FIT (10 of 30; --nodes all shows all)" in text
    assert "n09" in text
    assert "n10" not in text
    assert "uncordon node n00 (or n01, n02): 1 node fits (n00)" in text
    everything = render(found, all_nodes=True)
    assert "NODES THAT DO NOT FIT (30)" in everything
    assert "n29" in everything


def test_victims_and_budgets() -> None:
    text = render(explain(cluster(True), make_pod("p").req(cpu="2").priority(1).info()))
    assert "PREEMPTION (1)\n  would make room on a\n  a  evicts default/o" in text


def test_gates_notes_and_nodes() -> None:
    text = render(explain(cluster(False), make_pod("p").gates("hold").info()))
    assert (
        "PreEnqueue plugin SchedulingGates: UnschedulableAndUnresolvable: waiting for scheduling gates: [hold]" in text
    )
    assert "Note: what follows holds for the moment the pod is let into the queue" in text
    text = render(explain(cluster(False), make_pod("o").req(cpu="3").node("a").info()))
    assert "It is on node a, and judged here as if it were not." in text


def test_nothing_helps() -> None:
    hopeless = Cluster()
    hopeless.add_node(make_node("a").capacity(pods="0").obj())
    assert render(explain(hopeless, make_pod("p").info())).endswith("\nNo small change would help.\n")
