"""A few seeds of the soak with every test run; 200 of them, and processes that are killed, in the slow tier."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from skedge.testing import soak
from skedge.testing.faults import APPLIES, Fault, Faults, FaultTransport, Step, step_of


def together(seeds: range, events: int) -> tuple[soak.Hits, list[str], int]:
    hits: soak.Hits = Counter()
    failures, bound = [], 0
    for outcome in soak.run_seeds(seeds, events, jobs=2):
        hits += outcome.hits
        bound += outcome.bound
        failures += [f"seed {outcome.seed}: {text}" for text in outcome.failures]
    return hits, failures, bound


@pytest.mark.timeout(180)
def test_a_few_seeds() -> None:
    hits, failures, bound = together(range(8), 120)
    assert failures == []
    assert bound > 0
    assert {fault for fault, _ in hits} == set(Fault)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_seeds() -> None:
    hits, failures, _ = together(range(200), soak.EVENTS)
    assert failures == []
    assert soak.unhit(hits) == []


def test_a_seed_repeats() -> None:
    assert soak.run_seed(160, 120) == soak.run_seed(160, 120)


def test_summary(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def seeds(wanted: range, events: int, jobs: int) -> list[soak.Outcome]:
        every = Counter({(fault, step): 1 for fault, steps in APPLIES.items() for step in steps})
        return [soak.Outcome(seed, ["a", "b"] if seed == 8 else [], every, 1, 5) for seed in wanted]

    monkeypatch.setattr(soak, "run_seeds", seeds)
    assert soak.main(["--seeds", "2", "--first", "6"]) == 0
    assert soak.main(["--seeds", "2", "--first", "8"]) == 1
    out = capsys.readouterr().out
    assert "seed 8: 2 failures; a" in out
    assert "2 seeds, 1 failing; 2 lives of the scheduler, 10 pods bound in the end" in out
    monkeypatch.setattr(soak, "run_seeds", lambda *args: [soak.Outcome(0, [], Counter(), 1, 0)])
    assert soak.main(["--seeds", "2"]) == 1
    assert "half-open never hit watch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "target", "step"),
    [
        ("GET", "/api/v1/pods?limit=500", Step.LIST),
        ("GET", "/api/v1/pods?allowWatchBookmarks=true&watch=true", Step.WATCH),
        ("POST", "/api/v1/namespaces/a/pods/p/binding", Step.BIND),
        ("PATCH", "/api/v1/namespaces/a/pods/p/status", Step.PATCH),
        ("DELETE", "/api/v1/namespaces/a/pods/p", Step.DELETE),
        ("PUT", "/api/v1/persistentvolumes/v", Step.UPDATE),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", Step.EVENT),
        ("GET", "/apis/events.k8s.io/v1", None),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", None),
    ],
)
def test_step_of(method: str, target: str, step: Step | None) -> None:
    assert step_of(method, target) is step


def test_names_are_public() -> None:
    assert Path(soak.__file__).name == "soak.py"
    assert FaultTransport.__doc__
    assert Faults.__doc__
