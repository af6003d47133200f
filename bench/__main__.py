"""`python -m bench [--quick] [--mode decisions|e2e] [--workload NAME[/SIZE]] [--server URL] [--json FILE]`

Each figure is measured in a process of its own. Prints a table; writes a list of records.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.workloads import Workload, workloads

RESULTS = Path(__file__).parent / "results"
MODES = ("decisions", "e2e")
COLUMNS = ("workload", "mode", "nodes", "pods", "pods_per_s", "cpu_ms_per_pod", "p50_ms", "p99_ms", "peak_rss_mib")
E2E_COLUMNS = ("null_pods_per_s", "ratio_to_null")


def chosen(arguments: argparse.Namespace) -> list[Workload]:
    found = []
    for workload in workloads():
        if arguments.workload:
            if arguments.workload in (workload.name, workload.label):
                found.append(workload)
        elif not arguments.quick or workload.params.get("quick"):
            found.append(workload)
    return found


def measure(workload: Workload, mode: str, server: str | None) -> dict[str, Any]:
    """One run, in this process."""
    if mode == "decisions":
        from bench import decisions

        work = decisions.run(workload)
    else:
        from bench import e2e

        work = e2e.run(workload, server)
    try:
        import uvloop
    except ImportError:
        figures = asyncio.run(work)
    else:
        figures = uvloop.run(work)
    return {"workload": workload.name, "size": workload.size, "mode": mode, **figures}


def measure_apart(workload: Workload, mode: str, server: str | None) -> dict[str, Any]:
    """One run, in a process of its own."""
    command = [sys.executable, "-m", "bench", "--one", "--workload", workload.label, "--mode", mode]
    if server:
        command += ["--server", server]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"workload": workload.name, "size": workload.size, "mode": mode, "error": done.stderr[-2000:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the sizes marked quick")
    parser.add_argument("--mode", choices=MODES, help="only this mode")
    parser.add_argument("--workload", help="only this workload, or NAME/SIZE")
    parser.add_argument("--server", help="URL of an API server for e2e (default: the embedded one, in its own process)")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", help="where the records go")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    modes = (arguments.mode,) if arguments.mode else MODES
    if arguments.one:
        (workload,) = chosen(arguments)
        print(json.dumps(measure(workload, modes[0], arguments.server)))
        return 0
    records = []
    failed = False
    for workload in chosen(arguments):
        for mode in modes:
            record = measure_apart(workload, mode, arguments.server)
            records.append(record)
            failed = failed or "error" in record
            shown = {key: record[key] for key in (*COLUMNS, *E2E_COLUMNS) if key in record}
            print("  ".join(f"{key}={value}" for key, value in (shown | {"size": workload.size}).items()), flush=True)
            if "error" in record:
                print(record["error"], file=sys.stderr)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print(f"written to {arguments.json}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
