"""The product against the plain scheduler, on recorded cases crossed with each other."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from generated.crossings import Crossings
from skedge.api.core import Pod
from skedge.testing.cases import Cluster, read_cases
from skedge.testing.conformance import compare_decision
from skedge.testing.incremental import Growth
from twins.plain.decision import decide
from twins.plain.objects import Unclear

SELECTIONS = Path(__file__).parents[1] / "conformance"
FAMILIES = (
    "images", "mixed", "nodeaffinity", "podaffinity", "ports", "preemption", "profiles", "resources", "scoring",
    "spread", "taints", "unschedulable", "volumes",
)  # fmt: skip
ROUNDS, AT_ONCE = 12, 25
"""The slow tier runs ten times as many; where `SKEDGE_SHARED` is set, on all recorded cases."""


@lru_cache(maxsize=1)
def pool() -> list[Any]:
    shared = os.environ.get("SKEDGE_SHARED")
    names = [
        Path(shared) / "conformance" / f"cases-{f}.jsonl.gz" if shared else SELECTIONS / f"{f}.jsonl.gz"
        for f in FAMILIES
    ]
    return [line for name in names for line in read_cases(name)]


def differences(seed: int) -> list[str]:
    case = Crossings([line["case"] for line in pool()], seed).case()
    try:
        expected = json.loads(json.dumps(decide(case)))
    except Unclear:
        return []
    if seed % 3:
        cluster = Cluster(case.get("config"))
        cluster.fill(case)
    else:
        cluster = Growth(case, seed).run()
    pod = msgspec.convert(case["pod"], Pod)
    return [str(each) for each in compare_decision(cluster, case["id"], pod, expected)]


@pytest.mark.parametrize("start", range(0, ROUNDS * AT_ONCE, AT_ONCE))
def test_unseen_cases(start: int) -> None:
    assert [each for seed in range(start, start + AT_ONCE) for each in differences(seed)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", range(10_000, 10_000 + 10 * ROUNDS * AT_ONCE, 10 * AT_ONCE))
def test_many_unseen_cases(start: int) -> None:
    assert [each for seed in range(start, start + 10 * AT_ONCE) for each in differences(seed)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plain_scheduler_says_what_was_recorded(family: str) -> None:
    """A twin that is wrong is no judge: its feasible nodes, scores and messages are those of the recordings."""
    for line in pool():
        if line["case"]["family"] != family:
            continue
        want = line["expected"]
        try:
            got = decide(line["case"])
        except Unclear:
            continue
        where = line["case"]["id"]
        assert ("error" in got) == ("error" in want), where
        if "error" in want:
            continue
        for field in ("feasible", "best", "fitErrorMessage", "unschedulablePlugins", "preEnqueue"):
            assert (got.get(field) or None) == (want.get(field) or None), (where, field)
        for node, parts in (want.get("scores") or {}).items():
            own = got["scores"][node]
            assert {k: v for k, v in own.items() if v} == {k: v for k, v in parts.items() if v}, (where, node)
        candidates = (want.get("preemption") or {}).get("candidates")
        assert (got.get("preemption") or {}).get("candidates") == candidates, where
