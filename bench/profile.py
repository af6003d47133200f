"""Where a pod's processor time goes: `python -m bench.profile NAME/SIZE [--mode decisions|e2e] [--top N]`

Looks at the stack once a millisecond of processor time while pods are measured, and counts each look for the first
part of the work that any frame belongs to; then prints microseconds a pod by part, and by the function at the top of
the stack. What the interpreter spends in compiled code counts for the function that called it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import bench
import skedge
from bench import decisions, e2e
from bench.operations import Background, Batch
from bench.workloads import MODES, find

INTERVAL: Final = 0.001
_SKEDGE: Final = str(Path(skedge.__file__).parent) + "/"
_BENCH: Final = str(Path(bench.__file__).parent) + "/"

# The first of these that any frame of a stack is in gets the look: path below skedge/, and functions (none: all).
PARTS: Final[tuple[tuple[str, str, frozenset[str]], ...]] = (
    ("metrics", "telemetry/families.py", frozenset()),
    ("metrics", "telemetry/hooks.py", frozenset()),
    ("metrics", "profiles/measures.py", frozenset()),
    ("decode: pod records", "snapshot/pods.py", frozenset({"__init__", "shape_of"})),
    ("decode", "client/watch.py", frozenset({"_decode", "decode"})),
    ("decode", "api/decode.py", frozenset()),
    ("event HTTP", "client/outbox.py", frozenset()),
    ("event HTTP", "client/events.py", frozenset()),
    ("bind HTTP", "app/ports.py", frozenset({"bind"})),
    ("status HTTP", "app/ports.py", frozenset({"patch_status"})),
    ("queue", "queue/", frozenset()),
    ("cache and columns", "cache/", frozenset()),
    ("cache and columns", "snapshot/", frozenset()),
    ("handlers", "scheduler/event_handlers.py", frozenset()),
    ("cycle: search", "profiles/", frozenset()),
    ("binding cycle", "scheduler/binding_cycle.py", frozenset()),
    ("binding cycle", "scheduler/dispatcher.py", frozenset()),
    ("cycle: rest", "scheduler/", frozenset()),
    ("HTTP: answers and watch", "client/", frozenset()),
)
_PLUGINS: Final = "plugins/"


def part_of(frames: list[tuple[str, str]]) -> str:
    """The part of the work a stack belongs to; frames are (file, function), innermost first."""
    ours = [i for i, (file, _) in enumerate(frames) if file.startswith(_BENCH)]
    called = frames[: ours[0]] if ours else frames  # what stands in for the API server is called by the scheduler
    inside = [(file.removeprefix(_SKEDGE), name) for file, name in called if file.startswith(_SKEDGE)]
    for path, _ in inside:
        if path.startswith(_PLUGINS):
            return (
                "cycle: " + path.removeprefix(_PLUGINS).removesuffix(".py").split("/")[-2 if "/plugin" in path else -1]
            )
    for part, prefix, functions in PARTS:
        if any(path.startswith(prefix) and (not functions or name in functions) for path, name in inside):
            return part
    if ours:
        return "the benchmark itself (decodes in mode decisions)"
    return "event loop"


class Sampler:
    """Counts looks at the stack between `start` and `stop`."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()
        self.tops: Counter[str] = Counter()
        self.looks = 0

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)

    def _look(self, number: int, frame: FrameType | None) -> None:
        frames = []
        while frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_code.co_qualname))
            frame = frame.f_back
        self.looks += 1
        self.parts[part_of([(file, name.rpartition(".")[2]) for file, name in frames])] += 1
        if frames:
            file, name = frames[0]
            self.tops[f"{name} ({file.removeprefix(_SKEDGE).removeprefix(_BENCH)})"] += 1


def sampled(world: type[Any], method: str, sampler: Sampler) -> None:
    """Has a world's method sampled."""
    original: Callable[..., Awaitable[Any]] = getattr(world, method)

    async def call(self: Any, batch: Batch, background: list[Background]) -> Any:
        sampler.start()
        try:
            return await original(self, batch, background)
        finally:
            sampler.stop()

    setattr(world, method, call)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("workload", metavar="NAME/SIZE")
    parser.add_argument("--mode", choices=MODES, default="decisions")
    parser.add_argument("--top", type=int, default=25, help="so many functions")
    arguments = parser.parse_args()
    try:
        workload = find(arguments.workload)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 1
    sampler = Sampler()
    if arguments.mode == "decisions":
        sampled(decisions.World, "measure", sampler)
        work = decisions.run(workload)
    else:
        e2e.World.profiler = sampler
        work = e2e.run(workload)
    try:
        import uvloop
    except ImportError:
        found = asyncio.run(work)
    else:
        found = uvloop.run(work)
    _print(sampler, found, arguments.top)
    return 0


def _print(sampler: Sampler, found: dict[str, Any], top: int) -> None:
    pods = found["pods"] or 1
    scale = found["cpu_ms_per_pod"] * 1000 / max(sampler.looks, 1)
    print(f"{pods} pods, {found['cpu_ms_per_pod'] * 1000:.0f} µs of processor time each, {sampler.looks} looks\n")
    for title, counts, limit in (("part", sampler.parts, None), ("function", sampler.tops, top)):
        print(f"µs/pod      %  {title}")
        for name, looks in counts.most_common(limit):
            print(f"{looks * scale:6.1f}  {looks * 100 / max(sampler.looks, 1):5.1f}  {name}")
        print()


if __name__ == "__main__":
    sys.exit(main())
