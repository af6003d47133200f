"""Every workload at its smallest size, in memory; a few of them over HTTP. Times are never looked at."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from bench.workloads import HERE, MODES, Workload, find, workloads

from bench import decisions, e2e, figures

SMALLEST = [workload for workload in workloads() if workload.params.get("test")]
OVER_HTTP = (
    "SchedulingBasic/5Nodes",
    "TopologySpreading/5Nodes",
    "SchedulingCSIPVs/5Nodes",
    "PreemptionBasic/5Nodes",
    "Unschedulable/5Nodes_1Init_10Pods",
    "SchedulingWhileGated/1Node_10GatedPods",
)
NAMES = {
    "SchedulingBasic",
    "SchedulingDaemonset",
    "SchedulingNodeAffinity",
    "SchedulingPodAntiAffinity",
    "SchedulingPodMatchingAntiAffinity",
    "SchedulingPodAffinity",
    "SchedulingPreferredPodAffinity",
    "SchedulingPreferredPodAntiAffinity",
    "SchedulingRequiredPodAntiAffinityWithNSSelector",
    "SchedulingPreferredAntiAffinityWithNSSelector",
    "SchedulingRequiredPodAffinityWithNSSelector",
    "SchedulingPreferredAffinityWithNSSelector",
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput",
    "TopologySpreading",
    "PreferredTopologySpreading",
    "DefaultTopologySpreading",
    "SchedulingWithNodeInclusionPolicy",
    "MixedSchedulingBasePod",
    "SchedulingWithMixedChurn",
    "Unschedulable",
    "SchedulingWhileGated",
    "SchedulingDeletedPodsWithFinalizers",
    "PreemptionBasic",
    "PreemptionAsync",
    "PreemptionPVs",
    "SchedulingCSIPVs",
    "SchedulingInTreePVs",
    "SchedulingMigratedInTreePVs",
    "SchedulingSecrets",
    "SchedulingWithExtendedResource",
}


def expect(workload: Workload, found: dict[str, Any]) -> None:
    assert found["pods"] == workload.params["pods"]
    assert found["unplaced"] == 0
    assert found["nodes"] >= workload.params.get("nodes", 1)
    assert found["peak_rss_mib"] > 0


@pytest.mark.asyncio
@pytest.mark.parametrize("workload", SMALLEST, ids=lambda workload: workload.label)
async def test_decisions(workload: Workload) -> None:
    expect(workload, await decisions.run(workload))


@pytest.mark.asyncio
@pytest.mark.parametrize("label", OVER_HTTP)
async def test_end_to_end(label: str) -> None:
    workload = find(label)
    found = await e2e.run(workload)
    expect(workload, found)
    assert found["null_pods_per_s"] > 0


def test_every_workload_has_a_smallest_size() -> None:
    every = {workload.name for workload in workloads()}
    assert {workload.name for workload in SMALLEST} == every
    assert every >= NAMES


def test_the_quick_set() -> None:
    quick = {(workload.name, mode) for workload in workloads() for mode in workload.params.get("quick", ())}
    for name in ("SchedulingBasic", "TopologySpreading", "SchedulingPodAffinity", "AllDifferent"):
        assert {(name, mode) for mode in MODES} <= quick
        sizes = [w.params["nodes"] for w in workloads() if w.name == name and "e2e" in w.params.get("quick", ())]
        assert sizes == [5000]


def test_parameters_are_given() -> None:
    for workload in workloads():
        text = yaml.safe_dump(list(map(dict, workload.ops)))
        for word in text.replace("\n", " ").split():
            if word.startswith("$"):
                assert word[1:] in workload.params, f"{workload.label}: {word}"


def test_no_template_is_left_over() -> None:
    used = (HERE / "workloads.yaml").read_text() + (HERE / "scenarios.py").read_text() + (HERE / "load.py").read_text()
    for path in (HERE / "templates").iterdir():
        assert path.stem in used or path.stem == "node", f"{path.name} is used nowhere"


def test_a_record_has_the_agreed_fields_first() -> None:
    record = figures.record("A", "5Nodes", "decisions", {"unplaced": 0, "pods": 3, "nodes": 5})
    assert tuple(record)[: len(figures.FIRST)] == figures.FIRST
    assert record["null_pods_per_s"] is None
    assert record["size"] == "5Nodes"


@pytest.mark.parametrize(
    ("rates", "middle", "best"),
    [([3.0, 1.0, 2.0], 2.0, 3.0), ([1.0], 1.0, None), ([1.0, 2.0], 2.0, 2.0)],
)
def test_runs_are_combined(rates: list[float], middle: float, best: float | None) -> None:
    runs = [{"pods_per_s": rate, "cpu_ms_per_pod": 1 / rate} for rate in rates]
    found = figures.combined(runs)
    assert found["pods_per_s"] == middle
    assert found.get("best_pods_per_s") == best
    assert found["runs"] == len(rates)


@pytest.mark.parametrize(("percent", "expected"), [(50, 51.0), (99, 100.0), (0, 1.0)])
def test_percentiles(percent: float, expected: float) -> None:
    assert figures.percentile([i / 1000 for i in range(1, 101)], percent) == expected


def test_percentile_of_nothing() -> None:
    assert figures.percentile([], 99) == 0.0
