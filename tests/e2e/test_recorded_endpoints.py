"""Every recorded question to the endpoints, asked of a process that has been through the recorded scenarios."""

from __future__ import annotations

import re

import pytest

from e2e import endpoints
from e2e.endpoints import Answered
from e2e.replay import Run

SCRAPE = "admin GET /metrics"


def comparable(answer: Answered, case: str) -> Answered:
    """Without what differs from run to run, and from one implementation to the other."""
    text = re.sub(r"^# HELP .*\n", "", answer.text, flags=re.MULTILINE)
    if "/statusz" in case:
        text = re.sub(r"^(Started|Up|Go version)  .*", r"\1", text, flags=re.MULTILINE)
    if "/configz" in case and answer.status == 200:
        return answer
    if "/pprof" in case and answer.status == 200:
        text = "(HTML index)"
    return answer._replace(text=text.rstrip("\n"))


@pytest.mark.parametrize("case", [case for case in endpoints.CASES if case != SCRAPE and case != "admin GET /flagz"])
def test_answer(run: Run, case: str) -> None:
    assert comparable(run.answers[case], case) == comparable(endpoints.recorded(case), case)


def test_flags(run: Run) -> None:
    """We have more flags than the reference; those of the reference are all there, with its values."""
    ours = run.answers["admin GET /flagz"].text.splitlines()
    theirs = endpoints.recorded("admin GET /flagz").text.splitlines()
    assert ours[:3] == theirs[:3]
    foreign = "unsupported-kube-api-over-localhost=false"  # a flag of the build that was recorded
    assert [line for line in theirs[3:] if line not in ours and line != foreign] == []


TIMING = (
    # How soon a pod is tried again depends on how fast the operator's next deed comes.
    "scheduler_queue_incoming_pods_total",
    # Of two plugins that rejected a pod one is asked first, by chance.
    "scheduler_queueing_hint_execution_duration_seconds",
    # Only one cycle in ten is looked at.
    "scheduler_plugin_execution_duration_seconds",
)
OURS = {
    "scheduler_batch_attempts_total": "kept answers stand in for batches",
    "scheduler_batch_cache_flushed_total": "kept answers stand in for batches",
    "scheduler_get_node_hint_duration_seconds": "kept answers stand in for batches",
    "scheduler_store_schedule_results_duration_seconds": "kept answers stand in for batches",
}
"""Families of the reference that have no series here."""
NO_SERIES = (
    'extension_point="Sign"',  # belongs to batches
    'extension_point="Score",plugin="DynamicResources"',  # it scores nothing yet
)


def counts(scrape: str) -> dict[str, dict[str, float]]:
    """Counters, gauges and the `_count` of histograms, of the scheduler's own families."""
    return {
        family: {
            name: value
            for name, value in found.items()
            if "_bucket" not in name and "_sum" not in name and not any(part in name for part in NO_SERIES)
        }
        for family, found in endpoints.series(scrape).items()
        if family.startswith("scheduler_") and family not in TIMING
    }


def test_counts_of_the_scheduler(run: Run) -> None:
    theirs = counts(endpoints.recorded(SCRAPE).text)
    ours = counts(run.answers[SCRAPE].text)
    assert {family for family in theirs if family not in ours} == set(OURS)
    for family in theirs.keys() - OURS.keys():
        if family.endswith(("unschedulable_pods", "cache_size")):
            ours[family] = {name: ours[family].get(name, 0.0) for name in theirs[family]}
        assert ours[family] == theirs[family], family


def bounds(scrape: str) -> dict[str, list[str]]:
    """The `le` values of each histogram."""
    found: dict[str, list[str]] = {}
    for family, bound in re.findall(r'^(\w+)_bucket\{.*?le="([^"]+)"', scrape, flags=re.MULTILINE):
        known = found.setdefault(family, [])
        if bound not in known:
            known.append(bound)
    return found


def test_forms_of_all_families(run: Run) -> None:
    """Types, label names and bucket bounds of every family that both have."""
    ours, theirs = run.answers[SCRAPE].text, endpoints.recorded(SCRAPE).text
    for name, kind in endpoints.types(theirs).items():
        assert endpoints.types(ours).get(name, kind) == kind, name
    for name, found in bounds(theirs).items():
        assert bounds(ours).get(name, found) == found, name
    shared = endpoints.types(ours).keys() & endpoints.types(theirs).keys()
    assert {
        each for each in shared if each.startswith(("rest_client_requests", "leader_election", "authent", "author"))
    }
    for name in shared:
        assert labels(ours, name) == labels(theirs, name), name


def labels(scrape: str, family: str) -> set[str]:
    series = re.findall(rf"^{family}(?:_bucket|_sum|_count)?(?:\{{(.*)\}})? ", scrape, flags=re.MULTILINE)
    return {name for each in series for name in re.findall(r'(\w+)="', each)}
