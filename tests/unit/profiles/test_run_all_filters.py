"""Profiles that ask every filter about every node (a Policy's alwaysCheckAllPredicates)."""

import pytest

from skedge.config.defaults import default_configuration
from skedge.framework.status import Code, Status
from skedge.profiles.diagnosis import merged
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import make_node, make_pod

TAINT = "node(s) had untolerated taint(s)"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"


def search(run_all: bool) -> Search:
    config = default_configuration()
    config.profiles[0].run_all_filters = run_all
    cluster = Cluster(config)
    cluster.add_node(make_node("small").capacity(cpu="1").taint("a").obj())
    cluster.add_node(make_node("tainted").taint("a").obj())
    cluster.add_node(make_node("full").label(disk="ssd").obj())
    cluster.add_pod(make_pod("other").req(cpu="3").node("full").obj())
    found = Search(cluster.profiles["default-scheduler"], make_pod("p").req(cpu="2").node_selector(disk="ssd").info())
    found.run()
    return found


@pytest.mark.parametrize(
    ("run_all", "message", "plugins"),
    [
        (
            False,
            f"0/3 nodes are available: 1 Insufficient cpu, 2 {TAINT}.",
            {"TaintToleration", "NodeResourcesFit"},
        ),
        (
            True,
            f"0/3 nodes are available: 2 Insufficient cpu, 2 {SELECTOR}, 2 {TAINT}.",
            {"TaintToleration", "NodeResourcesFit", "NodeAffinity"},
        ),
    ],
)
def test_every_reason_of_a_node_is_told(run_all: bool, message: str, plugins: set[str]) -> None:
    diagnosis = search(run_all).diagnosis
    assert diagnosis.message() == message
    assert diagnosis.unschedulable_plugins == plugins
    assert {name: status.plugin for name, status in diagnosis.node_statuses().items()} == {
        "small": "TaintToleration",
        "tainted": "TaintToleration",
        "full": "NodeResourcesFit",
    }


def test_a_node_is_no_candidate_for_preemption_when_one_plugin_says_so() -> None:
    diagnosis = search(True).diagnosis
    assert [diagnosis.table.names[row] for row in diagnosis.potential()] == ["full"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE), Code.UNSCHEDULABLE),
        ((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        ((Code.ERROR, Code.UNSCHEDULABLE_AND_UNRESOLVABLE), Code.ERROR),
    ],
)
def test_the_worst_code_counts(codes: tuple[Code, Code], expected: Code) -> None:
    status = merged([Status(code, str(i), plugin=f"P{i}") for i, code in enumerate(codes)])
    assert status == Status(expected, "0", "1", plugin="P0")
