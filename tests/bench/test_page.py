"""The page shows what the suite wrote, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from bench.page import BEGIN, END, FOLDER, PAGE, RECORDS, figures, page
from bench.report import charts


def test_the_page_and_its_charts_are_made_from_the_records(tmp_path: Path) -> None:
    records = json.loads(RECORDS.read_text("utf-8"))
    text = PAGE.read_text("utf-8")
    assert page(text, records) == text, "run: python -m bench.page"
    written = charts(records, tmp_path)
    assert {path.name for path in written} == {path.name for path in FOLDER.glob("*.svg")}
    for path in written:
        assert path.read_text("utf-8") == (FOLDER / path.name).read_text("utf-8"), "run: python -m bench.page"


def test_figures_go_between_the_marks() -> None:
    record = {"workload": "W", "size": "1", "mode": "decisions", "pods_per_s": 12345.6, "cpu_ms_per_pod": 0.1}
    other = {"workload": "S", "size": "2", "mode": "e2e", "peak_rss_mib": 99.0, "seconds": 1.5, "nodes": 7}
    text = page(f"before\n{BEGIN}old{END}after\n", [record, other])
    assert text.startswith(f"before\n{BEGIN}\n### Decisions")
    assert text.endswith(f"{END}after\n")
    assert "| W | 1 | 12,346 | 0.1 |" in text
    assert "| S | 2 | seconds 1.5, peak_rss_mib 99 |" in text
    assert "old" not in text
    assert figures([record]).count("###") == 1
