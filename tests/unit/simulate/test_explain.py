"""Explanations against the engine's own words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skedge.api.core import Pod
from skedge.config.defaults import default_configuration
from skedge.config.types import Extender
from skedge.simulate.cluster import Cluster
from skedge.simulate.explain import explain
from skedge.simulate.explanation import Explanation
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster as CaseCluster
from skedge.testing.cases import read_cases

SHARED = os.environ.get("SKEDGE_SHARED")


def small_cluster() -> Cluster:
    """Four nodes, each of which turns the pod of `picky` down for a reason of its own."""
    cluster = Cluster()
    cluster.add_node(make_node("tainted").label(disk="ssd").taint("dedicated", "gpu").obj())
    cluster.add_node(make_node("full").label(disk="ssd").obj())
    cluster.add_node(make_node("cordoned").label(disk="ssd").unschedulable().obj())
    cluster.add_node(make_node("other").label(disk="hdd").obj())
    cluster.add_pod(make_pod("big").req(cpu="3").node("full").obj())
    return cluster


def picky() -> PodBuilder:
    return make_pod("p").req(cpu="2").node_selector(disk="ssd")


def judge(cluster: Cluster, pod: PodBuilder, **options: Any) -> Explanation:
    return explain(cluster, pod.info(), **options)


def test_nothing_fits() -> None:
    found = judge(small_cluster(), picky(), hints=False)
    assert (found.pod, found.scheduler, found.verdict) == ("default/p", "default-scheduler", "Unschedulable")
    assert (found.nodes, found.fits, found.feasible, found.best) == (4, 0, [], [])
    assert [(each.node, each.plugin, each.code) for each in found.rejected] == [
        ("cordoned", "NodeUnschedulable", "UnschedulableAndUnresolvable"),
        ("full", "NodeResourcesFit", "Unschedulable"),
        ("other", "NodeAffinity", "UnschedulableAndUnresolvable"),
        ("tainted", "TaintToleration", "UnschedulableAndUnresolvable"),
    ]
    first = found.reasons[0]
    assert (first.nodes, first.reason, first.plugins) == (1, "Insufficient cpu", ["NodeResourcesFit"])
    assert found.message == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. no new claims to deallocate, preemption: "
        "0/4 nodes are available: 1 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )
    assert found.preemption is not None
    assert (found.preemption.chosen, found.preemption.candidates) == ("", [])


def test_preemption_is_told_and_not_done() -> None:
    cluster = small_cluster()
    found = judge(cluster, picky().priority(7), hints=False)
    assert found.preemption is not None
    assert found.preemption.chosen == "full"
    assert [(each.node, each.victims) for each in found.preemption.candidates] == [("full", ["default/big"])]
    assert found.message.endswith("1 node(s) were unschedulable.")
    assert [pod.key for pod in cluster.cache.pods()] == ["default/big"]


def test_several_fit() -> None:
    found = judge(small_cluster(), make_pod("p").req(cpu="500m"))
    assert (found.verdict, found.message, found.fits, found.hints) == ("Schedulable", "", 2, [])
    assert [each.node for each in found.feasible] == ["other", "full"]
    assert found.best == ["other"]
    for each in found.feasible:
        assert each.total == sum(each.scores.values())
    assert found.feasible[0].scores["NodeResourcesFit"] > found.feasible[1].scores["NodeResourcesFit"]
    assert found.weights["TaintToleration"] == 3
    assert len(found.rejected) == 2


def test_one_fits_and_is_not_scored() -> None:
    found = judge(small_cluster(), make_pod("p").node_selector(disk="hdd"))
    assert [(each.node, each.total, each.scores) for each in found.feasible] == [("other", None, {})]
    assert found.best == ["other"]


@pytest.mark.parametrize(
    ("pod", "verdict", "message"),
    [
        (make_pod("p").gates("a", "b"), "Gated", "Scheduling is blocked due to non-empty scheduling gates"),
        (make_pod("p").terminating(), "Terminating", "the pod is being deleted"),
        (
            make_pod("p").scheduler("mine"),
            "Ignored",
            "no profile has the scheduler name 'mine' (default-scheduler)",
        ),
    ],
)
def test_pods_that_are_not_tried(pod: PodBuilder, verdict: str, message: str) -> None:
    found = judge(small_cluster(), pod)
    assert (found.verdict, found.message) == (verdict, message)


def test_a_gated_pod_is_judged_as_if_it_were_let_in() -> None:
    found = judge(small_cluster(), picky().gates("hold"))
    assert found.pre_enqueue is not None
    assert found.pre_enqueue.plugin == "SchedulingGates"
    assert found.verdict == "Gated"
    assert len(found.rejected) == 4
    assert found.hints


def test_no_nodes() -> None:
    found = judge(Cluster(), make_pod("p"))
    assert (found.verdict, found.message, found.hints) == ("Unschedulable", "no nodes available to schedule pods", [])


def test_pre_filter_rejects_for_all_nodes() -> None:
    pod = make_pod("p")
    pod.json["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["a"]},
                            {"key": "metadata.name", "operator": "In", "values": ["b"]},
                        ]
                    }
                ]
            }
        }
    }
    found = judge(small_cluster(), pod, hints=False)
    assert found.pre_filter is not None
    assert (found.pre_filter.plugin, found.pre_filter.reasons) == ("NodeAffinity", ["pod affinity terms conflict"])
    assert [(each.nodes, each.reason) for each in found.reasons] == [(4, "pod affinity terms conflict")]
    assert found.message.startswith("0/4 nodes are available: pod affinity terms conflict.")


def test_nodes_that_a_plugin_leaves_out() -> None:
    pod = make_pod("p").req(cpu="2")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["full"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    found = judge(small_cluster(), pod, hints=False)
    assert {each.node: each.plugin for each in found.rejected}["tainted"] == "NodeAffinity"
    assert [(each.nodes, each.reason) for each in found.reasons] == [
        (3, "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        (1, "Insufficient cpu"),
    ]
    assert "only nodes named by NodeAffinity are looked at" in found.notes


def test_a_pod_that_has_a_node_is_judged_as_if_it_had_not() -> None:
    cluster = small_cluster()
    big = PodInfo(make_pod("big").req(cpu="3").node("full").obj())
    found = explain(cluster, big)
    assert (found.node, found.verdict) == ("full", "Schedulable")
    assert {each.node for each in found.feasible} == {"full", "other"}
    cluster.cache.validate()
    assert [pod.key for pod in cluster.cache.pods()] == ["default/big"]


def test_a_nominated_node_that_fits_is_the_answer() -> None:
    cluster = small_cluster()
    found = judge(cluster, make_pod("p").req(cpu="1").nominated("other"))
    assert [each.node for each in found.feasible] == ["other"]
    assert found.notes == ["the pod fits on its nominated node other, and no other is looked at"]


def test_room_promised_to_a_nominated_pod_is_taken() -> None:
    cluster = Cluster()
    cluster.add_node(make_node("n").obj())
    cluster.add_pod(make_pod("first").req(cpu="3").priority(5).nominated("n").obj())
    found = judge(cluster, make_pod("p").req(cpu="2"))
    assert [each.reasons for each in found.rejected] == [["Insufficient cpu"]]
    assert "ask for cpu 1 instead of 2" in [hint.text for hint in found.hints]


def test_extenders_are_mentioned() -> None:
    config = default_configuration()
    config.extenders = [Extender(url_prefix="http://x/", filter_verb="filter")]
    cluster = Cluster(config)
    cluster.add_node(make_node("n").obj())
    assert judge(cluster, make_pod("p")).notes == ["extenders are not asked: they may reject or prefer other nodes"]


def test_all_nodes_are_looked_at_where_a_scheduler_takes_a_sample() -> None:
    config = default_configuration()
    config.percentage_of_nodes_to_score = 10
    cluster = Cluster(config)
    for i in range(1500):
        cluster.add_node(make_node(f"n{i}").obj())
    found = judge(cluster, make_pod("p"))
    assert (found.fits, len(found.feasible)) == (1500, 1500)
    assert found.notes == ["a scheduler with this configuration stops at the first 150 nodes that fit"]


def test_an_error_of_a_plugin_is_the_verdict() -> None:
    config = default_configuration()
    config.profiles[0].plugins.pre_filter.disabled = []
    cluster = small_cluster()
    pod = make_pod("p").prefer_node(5, "bad key!", ["x"])
    found = judge(cluster, pod)
    assert found.verdict == "Error"
    assert 'running PreScore plugin "NodeAffinity"' in found.message


def test_every_reason_where_the_profile_asks_for_it() -> None:
    config = default_configuration()
    config.profiles[0].run_all_filters = True
    cluster = Cluster(config)
    cluster.add_node(make_node("n").taint("a").capacity(cpu="1").obj())
    found = judge(cluster, make_pod("p").req(cpu="2"), hints=False)
    assert [(each.plugin, each.reasons) for each in found.rejected] == [
        ("TaintToleration, NodeResourcesFit", ["node(s) had untolerated taint(s)", "Insufficient cpu"])
    ]


@pytest.mark.skipif(not SHARED, reason="the full set of recordings is not here")
@pytest.mark.parametrize("family", ["taints", "nodeaffinity", "preemption", "resources"])
def test_messages_are_the_recorded_ones(family: str) -> None:
    for line in read_cases(Path(str(SHARED)) / "conformance" / f"cases-{family}.jsonl.gz"):
        case, expected = line["case"], line["expected"]
        if "fitErrorMessage" not in expected:
            continue
        cluster = CaseCluster(case.get("config"))
        cluster.fill(case)
        found = explain(cluster, PodInfo(msgspec.convert(case["pod"], Pod)), hints=False)
        assert found.message == expected["fitErrorMessage"], case["id"]
        _same_candidates(found, expected.get("preemption"))


def _same_candidates(found: Explanation, expected: Mapping[str, Any] | None) -> None:
    assert found.preemption is not None or expected is None
    if expected is not None and found.preemption is not None:
        got = {each.node: each.victims for each in found.preemption.candidates}
        assert got == {node: each["victims"] for node, each in expected["candidates"].items()}
