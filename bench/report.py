"""Records as a table for people and as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.charts import Bar, bars, number
from bench.charts import lines as line_chart

Record = Mapping[str, Any]
COLUMNS: Final = (
    ("workload", "workload"),
    ("size", "size"),
    ("mode", "mode"),
    ("pods/s", "pods_per_s"),
    ("best", "best_pods_per_s"),
    ("CPU ms/pod", "cpu_ms_per_pod"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("RSS MiB", "peak_rss_mib"),
    ("null/s", "null_pods_per_s"),
    ("ratio", "ratio_to_null"),
    ("unplaced", "unplaced"),
)
CPU_TARGET: Final = 0.9
MAIN_NODES: Final = range(4_500, 6_501)


def table(records: Sequence[Record]) -> str:
    """Aligned columns, a line a record."""
    rows = [[title for title, _ in COLUMNS]]
    for record in records:
        shown = [cell(record.get(key)) for _, key in COLUMNS]
        rows.append([*shown[:3], "failed", *[""] * (len(COLUMNS) - 4)] if "error" in record else shown)
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append("  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(cells)).rstrip())
    return "\n".join(lines)


def cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else number(float(value))


def charts(records: Sequence[Record], folder: Path) -> list[Path]:
    """Writes the charts there is something for; their paths."""
    good = [record for record in records if "error" not in record and record.get("pods_per_s")]
    main = [record for record in good if record.get("nodes") in MAIN_NODES]
    written = []

    def write(name: str, text: str) -> None:
        path = folder / f"{name}.svg"
        path.write_text(text, encoding="utf-8")
        written.append(path)

    folder.mkdir(parents=True, exist_ok=True)
    decisions = [Bar(_label(r), r["pods_per_s"]) for r in main if r["mode"] == "decisions"]
    if decisions:
        write("decisions", bars("Decisions at 5,000 nodes", "pods/s", decisions))
    e2e = [record for record in main if record["mode"] == "e2e"]
    if e2e:
        cpu = [Bar(_label(r), r["cpu_ms_per_pod"], 1) for r in e2e]
        write("e2e-cpu", bars("Scheduler end to end at 5,000 nodes", "CPU ms a pod", cpu, CPU_TARGET))
        both = []
        for r in e2e:
            both += [Bar(_label(r), r["pods_per_s"]), Bar("null binder", r["null_pods_per_s"] or 0.0, 3)]
        write("e2e-rate", bars("End to end at 5,000 nodes", "pods/s", both))
    growth: dict[str, list[tuple[float, float]]] = {}
    for record in good:
        if record["mode"] == "decisions" and record.get("nodes"):
            growth.setdefault(record["workload"], []).append((record["nodes"], record["pods_per_s"]))
    growth = {name: values for name, values in growth.items() if len({x for x, _ in values}) > 1}
    if growth:
        write("growth", line_chart("Decisions as the cluster grows", "nodes", "pods/s", growth))
    return written


def _label(record: Record) -> str:
    name: str = record["workload"]
    return name if len(name) <= 46 else f"{name[:45]}…"
