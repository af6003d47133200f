"""Recorded sequences replayed; what the replay does to a cluster, and that it tells differences."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

from skedge.testing.cases import read_cases
from skedge.testing.sequence import Replay, compare_sequence

DATA = Path(__file__).parents[2] / "data" / "sequences.jsonl.gz"
LINES = {line["case"]["id"]: line for line in read_cases(DATA)}


@pytest.mark.parametrize("case", LINES)
def test_recorded_sequences(case: str) -> None:
    assert compare_sequence(LINES[case]) == []


@pytest.mark.slow
@pytest.mark.skipif("SKEDGE_SHARED" not in os.environ, reason="SKEDGE_SHARED names the folder of all recordings")
@pytest.mark.timeout(300)
def test_all_recorded_sequences() -> None:
    path = Path(os.environ["SKEDGE_SHARED"]) / "conformance" / "cases-sequence.jsonl.gz"
    assert [str(each) for line in read_cases(path) for each in compare_sequence(line)] == []


def test_differences_are_told() -> None:
    line = copy.deepcopy(next(iter(LINES.values())))
    step = next(step for step in line["expected"]["steps"] if len(step.get("feasible", ())) > 1)
    step["totals"][0] += 1
    (found,) = compare_sequence(line)
    assert found.field.endswith("totals")


def pod(name: str, node: str, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, **meta},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
    }


def test_operations() -> None:
    replay = Replay({"nodes": [{"metadata": {"name": "a"}}], "pods": [pod("p", "a", labels={"x": "1"})]})
    cache, listers = replay.cluster.cache, replay.cluster.listers

    def meta(**more: Any) -> dict[str, Any]:
        return {"metadata": {"name": "p", "namespace": "default", **more}}

    replay.do("relabelPod", meta(labels={"x": "2"}))
    (placed,) = cache.pods()
    assert placed.labels == {"x": "2"}
    replay.do("terminatePod", meta(deletionTimestamp="2026-01-01T00:00:00Z"))
    (placed,) = cache.pods()
    assert placed.terminating
    assert placed.labels == {"x": "2"}
    replay.do("deleteNode", {"metadata": {"name": "a"}})
    assert cache.table.count == 0
    replay.do("addNode", {"metadata": {"name": "a"}})
    assert cache.table.count == 1
    replay.do("addPod", pod("q", "gone"))
    assert replay.placements == {"default/p": "a", "default/q": "gone"}
    replay.do("deletePod", meta())
    replay.do("deletePod", meta())  # one that is not there was never placed
    assert replay.placements == {"default/q": "gone"}
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"x": "1"}}}
    replay.do("addService", service)
    assert len(listers.services) == 1
    replay.do("deleteService", {"metadata": service["metadata"]})
    assert len(listers.services) == 0
    replay.do("updateNamespace", {"metadata": {"name": "default", "labels": {"team": "red"}}})
    assert listers.namespaces.get("default") is not None
    with pytest.raises(ValueError, match="unknown operation in a case: dance"):
        replay.do("dance", {})
