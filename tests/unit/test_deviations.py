"""docs/deviations.md is what the table says, and the table says the truth where that can be looked up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skedge.config.gate_table import WITHOUT_EFFECT
from skedge.config.gates import FeatureGates
from skedge.deviations import DEVIATIONS, Deviation, render
from skedge.telemetry.metric_table import OMITTED

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py") if path.name != "deviations.py")


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "deviations.md").read_text("utf-8")
    assert page == render(), "run: python -m skedge.deviations > docs/deviations.md"


@pytest.mark.parametrize("each", DEVIATIONS, ids=lambda each: each.what)
def test_entries_are_whole_and_name_what_exists(each: Deviation) -> None:
    assert each.area
    assert each.what
    assert each.accepted
    assert each.effect.endswith((".", "`"))
    for flag in re.findall(r"`--([a-z0-9-]+)", each.accepted):
        assert flag in SOURCE, f"no flag {flag}"
    for gate in re.findall(r"gate `(\w+)`", each.accepted):
        assert gate in {name for name, _, _ in FeatureGates().items()}, f"no gate {gate}"
    for line in re.findall(r"`([^`]+)`", each.log):
        assert line in SOURCE, f"nothing logs {line}"


def test_what_is_left_out_elsewhere_is_told_here() -> None:
    page = render()
    assert [prefix for prefix in OMITTED if f"`{prefix}*`" not in page] == []
    assert [gate for gate in WITHOUT_EFFECT.split() if f"gate `{gate}`" not in page] == []


def test_areas_stand_together() -> None:
    areas = [each.area for each in DEVIATIONS]
    assert len({*areas}) == sum(1 for a, b in zip(["", *areas], areas, strict=False) if a != b)
    assert len({each.what for each in DEVIATIONS}) == len(DEVIATIONS)
