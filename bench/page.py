"""`python -m bench.page RESULTS.json ...`: takes records into docs/performance, and prints them into the page.

Records of the same workload, size and mode replace those that are there. The page's tables and the charts come from the
records and nothing else; a test compares them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import FIRST
from bench.report import COLUMNS, Record, cell, charts

PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
FOLDER: Final = PAGE.with_suffix("")
RECORDS: Final = FOLDER / "results.json"
BEGIN, END = "<!-- figures: python -m bench.page -->\n", "<!-- end of figures -->\n"
_TITLES: Final = {"decisions": "Decisions", "e2e": "End to end"}
_COLUMNS: Final = {
    "decisions": ("workload", "size", "pods/s", "CPU ms/pod", "p50 ms", "p99 ms", "RSS MiB"),
    "e2e": ("workload", "size", "pods/s", "CPU ms/pod", "p50 ms", "p99 ms", "RSS MiB", "null/s", "ratio"),
}
_LEFT_OUT: Final = frozenset({*FIRST, "size", "runs", "unplaced", "best_pods_per_s", "best_cpu_ms_per_pod"})


def key(record: Record) -> tuple[str, str, str]:
    return record["mode"], record["workload"], record["size"]


def figures(records: Sequence[Record]) -> str:
    """The part of the page between its marks."""
    rates = [record for record in records if record.get("cpu_ms_per_pod")]
    parts = []
    for mode, titles in _COLUMNS.items():
        fields = dict(COLUMNS)
        rows = [[cell(r.get(fields[title])) for title in titles] for r in rates if r["mode"] == mode]
        if rows:
            parts.append(f"### {_TITLES[mode]}\n\n{_markdown(titles, rows)}")
    others = [record for record in records if not record.get("cpu_ms_per_pod")]
    if others:
        rows = [[r["workload"], r["size"], _rest(r)] for r in others]
        parts.append(f"### Other figures\n\n{_markdown(('scenario', 'size', 'figures'), rows)}")
    names = sorted(path.name for path in FOLDER.glob("*.svg"))
    parts += [f"![{name.removesuffix('.svg')}]({FOLDER.name}/{name})\n" for name in names]
    return "\n".join(parts)


def _rest(record: Record) -> str:
    shown = {k: v for k, v in record.items() if k not in _LEFT_OUT and v is not None}
    if record.get("peak_rss_mib"):
        shown["peak_rss_mib"] = record["peak_rss_mib"]
    return ", ".join(f"{name} {cell(value)}" for name, value in shown.items())


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---" if title in ("workload", "size", "scenario", "figures") else "---:" for title in titles]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (titles, rule, *rows))


def page(text: str, records: Sequence[Record]) -> str:
    """The page with these figures."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures(records)}\n{END}{after}"


def main(paths: Sequence[str]) -> int:
    known: list[dict[str, Any]] = json.loads(RECORDS.read_text("utf-8")) if RECORDS.exists() else []
    by_key = {key(record): record for record in known}
    for path in paths:
        by_key |= {key(record): record for record in json.loads(Path(path).read_text("utf-8"))}
    records = [by_key[each] for each in sorted(by_key)]
    FOLDER.mkdir(exist_ok=True)
    RECORDS.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
    charts(records, FOLDER)
    PAGE.write_text(page(PAGE.read_text("utf-8"), records), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
