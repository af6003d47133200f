"""`python -m bench [--quick] [--mode decisions|e2e] [--only NAME[/SIZE] ...] [--server URL] [--repeat N] [--json FILE]`

Each figure is measured in a process of its own. Prints a table; writes a list of records, and charts beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

from bench import figures, report, scenarios
from bench.workloads import MODES, find, workloads

RESULTS: Final = Path(__file__).parent / "results"
TIMEOUT: Final = 3600.0
"""Seconds after which one run is given up."""
REPEATS: Final = {"decisions": 3, "e2e": 1}
MANY_PODS: Final = 20_000
"""Workloads of so many pods average over themselves: one run."""

Job = tuple[str, str]
"""(NAME/SIZE, mode)"""


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """What to measure, in order."""
    for workload in workloads():
        modes = workload.params.get("quick", ()) if arguments.quick else workload.modes
        if _wanted(arguments, workload.name, workload.label):
            yield from ((workload.label, mode) for mode in (modes or workload.modes) if _mode(arguments, mode))
        elif not arguments.only:
            yield from ((workload.label, mode) for mode in modes if _mode(arguments, mode))
    for scenario in scenarios.SCENARIOS.values():
        unasked = not arguments.only and (scenario.quick or not arguments.quick) and not scenario.test
        if (unasked or _wanted(arguments, scenario.name, scenario.label)) and _mode(arguments, scenario.mode):
            yield scenario.label, scenario.mode


def _wanted(arguments: argparse.Namespace, name: str, label: str) -> bool:
    return any(wanted in (name, label) for wanted in arguments.only)


def _mode(arguments: argparse.Namespace, mode: str) -> bool:
    return arguments.mode is None or arguments.mode == mode


def measure(label: str, mode: str, server: str | None) -> dict[str, Any]:
    """One run, in this process."""
    name, _, size = label.partition("/")
    work: Coroutine[Any, Any, dict[str, Any]]
    if label in scenarios.SCENARIOS:
        work = scenarios.SCENARIOS[label].run(server)
    elif mode == "decisions":
        from bench import decisions

        work = decisions.run(find(label))
    else:
        from bench import e2e

        work = e2e.run(find(label), server)
    try:
        import uvloop
    except ImportError:
        found = asyncio.run(work)
    else:
        found = uvloop.run(work)
    return figures.record(name, size, mode, found)


def measure_apart(label: str, mode: str, server: str | None) -> dict[str, Any]:
    """One run, in a process of its own."""
    command = [sys.executable, "-m", "bench", "--one", label, "--mode", mode]
    if server:
        command += ["--server", server]
    name, _, size = label.partition("/")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return figures.record(name, size, mode, {"error": f"not done after {TIMEOUT:.0f} s"})
    if done.returncode:
        return figures.record(name, size, mode, {"error": done.stderr[-2000:]})
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _repeats(arguments: argparse.Namespace, label: str, mode: str) -> int:
    if arguments.repeat:
        return int(arguments.repeat)
    if label in scenarios.SCENARIOS or int(find(label).params.get("pods", 0)) >= MANY_PODS:
        return 1
    return REPEATS[mode]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what is marked quick (about five minutes)")
    parser.add_argument("--mode", choices=MODES, help="only this mode")
    parser.add_argument("--only", action="append", default=[], metavar="NAME[/SIZE]", help="only this; may be repeated")
    parser.add_argument("--server", help="URL of an API server for e2e (default: the embedded one, in its own process)")
    parser.add_argument("--repeat", type=int, help="runs of each, of which the median is told (default 3; e2e 1)")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", help="where the records go")
    parser.add_argument("--list", action="store_true", help="print what would be measured")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.mode, arguments.server)))
        return 0
    chosen = list(jobs(arguments))
    if arguments.list:
        print("\n".join(f"{label} {mode}" for label, mode in chosen))
        return 0
    if not chosen:
        print("nothing to measure: see --list for names", file=sys.stderr)
        return 1
    return _all(arguments, chosen)


def _all(arguments: argparse.Namespace, chosen: list[Job]) -> int:
    records: list[dict[str, Any]] = []
    for number, (label, mode) in enumerate(chosen, 1):
        began = time.perf_counter()
        runs = [measure_apart(label, mode, arguments.server) for _ in range(_repeats(arguments, label, mode))]
        record = figures.combined(runs)
        records.append(record)
        print(f"[{number}/{len(chosen)}] {_line(record)}  ({time.perf_counter() - began:.0f} s)", flush=True)
        if "error" in record:
            print(record["error"], file=sys.stderr)
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print(report.table(records))
    drawn = report.charts(records, arguments.json.parent)
    print(f"written: {arguments.json}" + "".join(f", {path.name}" for path in drawn))
    return 1 if any("error" in record for record in records) else 0


def _line(record: dict[str, Any]) -> str:
    shown = {key: record[key] for key in (*figures.FIRST[2:], "ratio_to_null") if record.get(key) is not None}
    told = "  ".join(f"{key}={value}" for key, value in shown.items())
    return f"{record['workload']}/{record['size']} {record['mode']}: {'failed' if 'error' in record else told}"


if __name__ == "__main__":
    sys.exit(main())
