"""Profiles: what is encoded is what is decoded, and what samplers see."""

from __future__ import annotations

import asyncio
import gc
import gzip
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest

from protobuf_reader import decode_message, unpack
from skedge.clock import RealClock, VirtualClock
from skedge.serving import sampling
from skedge.serving.pprof import Frame, Profile, Stack, Unit, describe, encode, render

MAIN = Frame("main", "main.py", 1, 5)
WORK = Frame("work", "work.py", 10, 12)
WORK_LATER = Frame("work", "work.py", 10, 14)
PROFILE = Profile(
    (Unit("samples", "count"), Unit("cpu", "nanoseconds")),
    {(WORK, MAIN): (3, 300), (WORK_LATER, MAIN): (1, 100), (MAIN,): (0, 0)},
    period=100,
    time=1.5,
    duration=2.0,
)


class Decoded:
    """A profile as a reader of the format sees it."""

    def __init__(self, data: bytes) -> None:
        message = decode_message(gzip.decompress(data))
        self.message = message
        self.strings = [text.decode() for text in message[6]]  # type: ignore[union-attr]
        functions = {f[1][0]: f for f in map(decode_message, message.get(5, []))}  # type: ignore[arg-type]
        self.locations: dict[int, Frame] = {}
        for encoded in message.get(4, []):
            location = decode_message(encoded)  # type: ignore[arg-type]
            line = decode_message(location[4][0])  # type: ignore[arg-type]
            function = functions[line[1][0]]
            name, file = self.string(function[2][0]), self.string(function[4][0])
            start, at = function.get(5, [0])[0], line.get(2, [0])[0]
            self.locations[location[1][0]] = Frame(name, file, start, at)  # type: ignore[index, arg-type]
        self.types = [self.unit(each) for each in message[1]]
        self.samples: dict[Stack, tuple[int, ...]] = {}
        for encoded in message.get(2, []):
            sample = decode_message(encoded)  # type: ignore[arg-type]
            ids = unpack(b"".join(sample.get(1, [])))  # type: ignore[arg-type]
            values = tuple(unpack(b"".join(sample.get(2, []))))  # type: ignore[arg-type]
            self.samples[tuple(self.locations[each] for each in ids)] = values

    def string(self, index: int | bytes) -> str:
        assert isinstance(index, int)
        return self.strings[index]

    def unit(self, encoded: int | bytes) -> Unit:
        assert isinstance(encoded, bytes)
        message = decode_message(encoded)
        return Unit(self.string(message[1][0]), self.string(message[2][0]))


def test_round_trip() -> None:
    decoded = Decoded(encode(PROFILE))
    assert decoded.strings[0] == ""
    assert len(set(decoded.strings)) == len(decoded.strings)
    assert decoded.types == list(PROFILE.types)
    assert decoded.samples == PROFILE.samples
    assert decoded.message[9] == [1_500_000_000]
    assert decoded.message[10] == [2_000_000_000]
    assert decoded.unit(decoded.message[11][0]) == Unit("cpu", "nanoseconds")
    assert decoded.message[12] == [100]
    assert len(decoded.message[5]) == 2, "two lines of one function share it"


def test_an_empty_profile_still_says_what_it_is_of() -> None:
    decoded = Decoded(encode(sampling.contention_profile(VirtualClock())))
    assert decoded.samples == {}
    assert decoded.types == [Unit("contentions", "count"), Unit("delay", "nanoseconds")]


def test_large_numbers() -> None:
    decoded = Decoded(encode(Profile((Unit("a", "b"),), {(MAIN,): (1 << 62,)})))
    assert decoded.samples == {(MAIN,): (1 << 62,)}


def test_text() -> None:
    assert render("cpu", PROFILE).startswith(
        "cpu profile: 4 samples/count, 400 cpu/nanoseconds\n"
        "\n3 300 @\n#\twork\twork.py:12\n#\tmain\tmain.py:5\n\n1 100 @\n"
    )


def here() -> str:
    return "busy"


def test_cpu_time_of_the_main_thread_is_sampled() -> None:
    sampler = sampling.CpuSampler()
    sampler.start()
    with pytest.raises(sampling.Busy, match="cpu profiling already in use"):
        sampler.start()
    while not sampler._counts:
        here()
    counts = sampler.stop()
    assert any(frame.function == "test_cpu_time_of_the_main_thread_is_sampled" for stack in counts for frame in stack)
    profile = sampling.cpu_profile(counts, RealClock(), 1.0)
    assert sum(values[1] for values in profile.samples.values()) == sum(counts.values()) * 10_000_000
    sampler.start()
    sampler.stop()


def test_a_loop_on_another_thread_is_watched() -> None:
    sampler = sampling.CpuSampler()
    found: list[Counter[Stack]] = []

    def loop() -> None:
        sampler.start()
        while not sampler._counts:
            here()
        found.append(sampler.stop())

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert any(frame.function.endswith("<locals>.loop") for stack in found[0] for frame in stack)


def test_traces_see_every_thread() -> None:
    sampler = sampling.TraceSampler(RealClock())
    sampler.start()
    while not sampler._taken:
        here()
    samples = sampler.stop()
    assert threading.get_ident() in {sample.thread for sample in samples}
    assert all(frame.function != "Watcher.run" for sample in samples for frame in sample.stack)


def test_trace_events_span_consecutive_samples_of_the_same_function() -> None:
    inner, outer = Frame("inner", "f.py", 10, 12), Frame("outer", "f.py", 1, 2)
    samples = [
        sampling.Sampled(0.0, 7, (inner, outer)),
        sampling.Sampled(0.01, 7, (inner._replace(line=13), outer)),
        sampling.Sampled(0.02, 7, (outer,)),
        sampling.Sampled(0.03, 7, (inner, outer)),
    ]
    events = [(event["name"], event["ts"], event["dur"], event["tid"]) for event in sampling.trace_events(samples)]
    assert events == [("outer", 0, 40_000, 7), ("inner", 0, 20_000, 7), ("inner", 30_000, 10_000, 7)]


@pytest.fixture
def _tracing() -> Iterator[None]:
    tracemalloc.start(5)
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_tracing")
def test_memory_by_line() -> None:
    held = [bytes(1000) for _ in range(100)]
    profile = sampling.memory_profile("heap", RealClock(), collect=True)
    mine = [values for stack, values in profile.samples.items() if stack[0].function.startswith("held = [bytes(1000)")]
    assert sum(size for _, size in mine) >= 100_000
    assert profile.types[-1] == Unit("inuse_space", "bytes")
    del held


class Held:
    """Something to be found in memory."""


def test_memory_by_type() -> None:
    held = [Held() for _ in range(50)]
    profile = sampling.memory_profile("allocs", RealClock())
    name = f"{Held.__module__}.Held"
    (values,) = (values for stack, values in profile.samples.items() if stack[0].function == name)
    assert values[0] == len(held)
    assert values[1] == sum(map(sys.getsizeof, held))
    assert profile.types[-1] == Unit("alloc_space", "bytes")


def test_memory_by_type_counts_what_is_taken_for_lasting_and_what_things_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, text = list(range(100_000)), "x" * 1_000_000

    async def waits() -> None:
        """Its size, naively asked for, is an address."""

    coroutine = waits()
    monkeypatch.setattr(Held, "things", [numbers, text, coroutine], raising=False)
    gc.freeze()
    try:
        profile = sampling.memory_profile("heap", RealClock())
    finally:
        gc.unfreeze()
        coroutine.close()
    found = {stack[0].function: values for stack, values in profile.samples.items()}
    assert found["builtins.list"][1] > sys.getsizeof(numbers)
    assert found["builtins.str"][1] > len(text)
    assert found["builtins.coroutine"][1] < 100_000_000


@pytest.mark.asyncio
async def test_tasks_are_shown_where_they_wait() -> None:
    event = asyncio.Event()

    async def inner() -> None:
        await event.wait()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="a named task")
    await asyncio.sleep(0)
    (mine,) = (each for each in sampling.running() if each.name == "a named task")
    assert mine.state == "waiting"
    assert [frame.function.rpartition(".")[2] for frame in mine.stack] == ["wait", "inner", "outer"]
    text = sampling.goroutine_text()
    assert "[waiting]: a named task\n" in text
    assert "".join(describe(mine.stack)) in text
    assert "[thread]: MainThread\n" in text
    assert sampling.work_under_way() == len(asyncio.all_tasks()) + threading.active_count()
    profile = sampling.goroutine_profile(RealClock())
    assert profile.samples[mine.stack] == (1,)
    event.set()
    await task


def test_threads() -> None:
    profile = sampling.thread_profile(RealClock())
    assert sum(count for (count,) in profile.samples.values()) >= 1
