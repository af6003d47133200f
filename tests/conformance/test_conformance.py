"""Recorded decisions: the selections in this folder, and whole families when SKEDGE_SHARED names where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skedge.testing import conformance

HERE = Path(__file__).parent
SELECTIONS = sorted(HERE.glob("*.jsonl.gz"))


def _whole(selection: Path) -> Path:
    return Path(os.environ.get("SKEDGE_SHARED", "")) / "conformance" / f"cases-{selection.name}"


def _differences(path: Path, seed: int | None = None) -> list[str]:
    return [str(each) for _, differences in conformance.run([path], seed=seed) for each in differences]


@pytest.mark.parametrize("path", SELECTIONS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_selection(path: Path) -> None:
    assert _differences(path) == []


@pytest.mark.parametrize("path", SELECTIONS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_selection_step_by_step(path: Path) -> None:
    """The same answers after detours, undone changes and looks on the way."""
    assert _differences(path, seed=0) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif("SKEDGE_SHARED" not in os.environ, reason="SKEDGE_SHARED is not set")
@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_whole_family(selection: Path) -> None:
    assert _differences(_whole(selection)) == []


def test_selections_stay_small() -> None:
    assert sum(path.stat().st_size for path in SELECTIONS) <= 4 << 20
