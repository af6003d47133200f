"""Where the process is and what it holds: samples of running code, threads and tasks, memory.

What walks all of memory takes its time and is for a thread (`asyncio.to_thread`); what looks at tasks, for the loop's.
"""

from __future__ import annotations

import asyncio
import gc
import linecache
import signal
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable
from types import CoroutineType, FrameType
from typing import Any, Final, NamedTuple

from skedge.clock import Clock
from skedge.serving.pprof import Frame, Profile, Stack, Unit, describe, frame_of, stack_of

RATE: Final = 100
"""Samples a second."""

_PERIOD_NS: Final = 1_000_000_000 // RATE
_CPU: Final = (Unit("samples", "count"), Unit("cpu", "nanoseconds"))
_GOROUTINE: Final = (Unit("goroutine", "count"),)
_THREADS: Final = (Unit("threadcreate", "count"),)
_CONTENTION: Final = (Unit("contentions", "count"), Unit("delay", "nanoseconds"))
_MEMORY: Final = {
    "heap": (Unit("inuse_objects", "count"), Unit("inuse_space", "bytes")),
    "allocs": (Unit("alloc_objects", "count"), Unit("alloc_space", "bytes")),
}


class Busy(Exception):
    """Somebody else is sampling."""


class Sampled(NamedTuple):
    """One sample: seconds since sampling began, a thread, and where it was."""

    at: float
    thread: int
    stack: Stack


class Watcher(threading.Thread):
    """Looks a hundred times a second, from a thread of its own, until told to end."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__(name="sampler", daemon=True)
        self._look = look
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(1 / RATE):
            self._look()

    def end(self) -> None:
        self._over.set()
        self.join()


class CpuSampler:
    """Interrupts the main thread for each hundredth of a second of CPU time the process uses; one at a time.

    The signal that counts belongs to the main thread: `start` and `stop` are called there, which is the event loop's in
    a process of ours. A loop on another thread is watched by wall clock instead.
    """

    def __init__(self) -> None:
        self._running = False
        self._counts: Counter[Stack] = Counter()
        self._watcher: Watcher | None = None

    def start(self) -> None:
        """Begin; Busy while another sampling goes on."""
        if self._running:
            raise Busy("cpu profiling already in use")
        self._running = True
        self._counts = Counter()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPROF, self._take)
            signal.siginterrupt(signal.SIGPROF, False)
            signal.setitimer(signal.ITIMER_PROF, 1 / RATE, 1 / RATE)
        else:
            watched = threading.get_ident()
            self._watcher = Watcher(lambda: self._take(0, sys._current_frames().get(watched)))
            self._watcher.start()

    def stop(self) -> Counter[Stack]:
        """End; how often each stack was seen."""
        if self._watcher is not None:
            self._watcher.end()
            self._watcher = None
        else:
            signal.setitimer(signal.ITIMER_PROF, 0)
            # The default would end the process, should one more signal be on its way.
            signal.signal(signal.SIGPROF, signal.SIG_IGN)
        self._running = False
        return self._counts

    def _take(self, _: int, frame: FrameType | None) -> None:
        self._counts[stack_of(frame)] += 1


class TraceSampler:
    """Notes where every thread but its own is, a hundred times a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin = clock.monotonic()
        self._taken: list[Sampled] = []
        self._watcher = Watcher(self._look)

    def start(self) -> None:
        self._watcher.start()

    def stop(self) -> list[Sampled]:
        """End; the samples in order."""
        self._watcher.end()
        return self._taken

    def _look(self) -> None:
        now = self._clock.monotonic() - self._begin
        for thread, frame in sys._current_frames().items():
            if thread != self._watcher.ident:
                self._taken.append(Sampled(now, thread, stack_of(frame)))


def cpu_profile(counts: Counter[Stack], clock: Clock, seconds: float) -> Profile:
    """What a `CpuSampler` saw in the `seconds` that end now."""
    samples = {stack: (seen, seen * _PERIOD_NS) for stack, seen in counts.items()}
    return Profile(_CPU, samples, _PERIOD_NS, clock.now() - seconds, seconds)


def trace_events(samples: Iterable[Sampled]) -> list[dict[str, Any]]:
    """Samples as Chrome's trace events (times in µs): a span for each frame, as long as consecutive samples show it."""
    events: list[dict[str, Any]] = []
    spans: dict[int, list[tuple[Frame, float]]] = {}
    last: dict[int, float] = {}

    def close(thread: int, depth: int) -> None:
        opened = spans[thread]
        while len(opened) > depth:
            frame, begin = opened.pop()
            micros = {"ts": round(begin * 1e6), "dur": round((last[thread] - begin + 1 / RATE) * 1e6)}
            where = {"file": f"{frame.file}:{frame.start}"}
            events.append({"name": frame.function, "ph": "X", "pid": 1, "tid": thread, **micros, "args": where})

    for at, thread, stack in samples:
        opened = spans.setdefault(thread, [])
        frames = stack[::-1]
        same = 0
        while same < min(len(opened), len(frames)) and opened[same][0][:3] == frames[same][:3]:
            same += 1
        close(thread, same)
        opened.extend((frame, at) for frame in frames[same:])
        last[thread] = at
    for thread in spans:
        close(thread, 0)
    return sorted(events, key=lambda event: (event["tid"], event["ts"], -event["dur"]))


def memory_profile(name: str, clock: Clock, collect: bool = False) -> Profile:
    """`heap` or `allocs`: memory still held, by where it was allocated (while `tracemalloc` traces), else by type."""
    if collect:
        gc.collect()
    samples: dict[Stack, tuple[int, int]] = {}
    if tracemalloc.is_tracing():
        for entry in tracemalloc.take_snapshot().statistics("traceback"):
            # tracemalloc knows files and lines, not functions; the line itself says more than nothing.
            stack = tuple(
                Frame(linecache.getline(each.filename, each.lineno).strip() or "?", each.filename, 0, each.lineno)
                for each in reversed(entry.traceback)
            )
            count, size = samples.get(stack, (0, 0))
            samples[stack] = (count + entry.count, size + entry.size)
    else:
        for kind, (count, size) in _by_type().items():
            samples[(Frame(f"{kind.__module__}.{kind.__qualname__}", kind.__module__, 0, 0),)] = (count, size)
    return Profile(_MEMORY[name], samples, time=clock.now())


class _Met:
    """Which objects were met before: a bit for 16 bytes of memory, to be small beside a large heap."""

    def __init__(self) -> None:
        self._regions: dict[int, bytearray] = {}

    def first_time(self, address: int) -> bool:
        region = self._regions.get(address >> 20)
        if region is None:
            region = self._regions[address >> 20] = bytearray(1 << 13)
        place, bit = (address & 0xFFFFF) >> 7, 1 << (address >> 4 & 7)
        if region[place] & bit:
            return False
        region[place] |= bit
        return True


def _by_type() -> dict[type, tuple[int, int]]:
    """How many objects of each type can be reached, and their bytes.

    By way of references, because the collector lists neither what it was told to take for lasting (`gc.freeze`) nor
    texts and numbers.
    """
    counts: Counter[type] = Counter()
    sizes: Counter[type] = Counter()
    met = _Met()
    waiting: list[Any] = [*gc.get_objects(), sys.modules]
    while waiting:
        each = waiting.pop()
        if met.first_time(id(each)):
            kind = type(each)
            counts[kind] += 1
            # Not `object.__sizeof__`: it knows nothing of what a list holds, and talks nonsense about coroutines.
            sizes[kind] += sys.getsizeof(each, 0)
            waiting += gc.get_referents(each)
    return {kind: (count, sizes[kind]) for kind, count in counts.items()}


class Running(NamedTuple):
    """A thread or task: what it is called and does, and where it is."""

    name: str
    state: str
    stack: Stack


def running() -> list[Running]:
    """Every thread, and every task of the running loop. To be called on the loop's thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = [
        Running(names.get(ident) or f"thread {ident}", "thread", stack_of(frame))
        for ident, frame in sys._current_frames().items()
    ]
    current = asyncio.current_task()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        state = "running" if task is current else "waiting"
        found.append(Running(task.get_name(), state, _task_stack(task)))
    return found


def _task_stack(task: asyncio.Task[Any]) -> Stack:
    """Where a task waits: through all the coroutines it awaits, innermost first."""
    stack: list[Frame] = []
    awaited: Any = task.get_coro()
    while isinstance(awaited, CoroutineType):
        if (frame := awaited.cr_frame) is not None:
            stack.append(frame_of(frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        awaited = awaited.cr_await
    return tuple(reversed(stack))


def goroutine_profile(clock: Clock) -> Profile:
    """Threads and tasks by where they are."""
    counts = Counter(each.stack for each in running())
    return Profile(_GOROUTINE, {stack: (seen,) for stack, seen in counts.items()}, time=clock.now())


def goroutine_text() -> str:
    """Every thread and task with its stack, one after the other (`?debug=2`)."""
    parts = [
        f"goroutine {number} [{each.state}]: {each.name}\n{''.join(describe(each.stack))}"
        for number, each in enumerate(running(), 1)
    ]
    return "\n".join(parts)


def thread_profile(clock: Clock) -> Profile:
    """Threads by where they are."""
    counts = Counter(stack_of(frame) for frame in sys._current_frames().values())
    return Profile(_THREADS, {stack: (seen,) for stack, seen in counts.items()}, time=clock.now())


def contention_profile(clock: Clock) -> Profile:
    """`block` and `mutex`: always empty; one thread owns the state and nobody waits for a lock of ours."""
    return Profile(_CONTENTION, {}, time=clock.now())


def work_under_way() -> int:
    """Tasks and threads: what `go_goroutines` counts here. To be called on the loop's thread."""
    return len(asyncio.all_tasks()) + threading.active_count()
