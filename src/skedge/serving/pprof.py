"""Profiles in the format of `pprof` (gzipped `perftools.profiles.Profile`), and as text.

A stack is a tuple of frames, innermost first. Field numbers are those of pprof's `profile.proto`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

from skedge.telemetry import protobuf as pb


class Frame(NamedTuple):
    """A place in a program: function, file, the function's first line, and the line it is at."""

    function: str
    file: str
    start: int
    line: int


Stack: TypeAlias = tuple[Frame, ...]


class Unit(NamedTuple):
    """What a number of a sample means: `("cpu", "nanoseconds")`."""

    type: str
    unit: str


class Profile(NamedTuple):
    """Stacks with a number for each of `types`."""

    types: Sequence[Unit]
    samples: Mapping[Stack, Sequence[int]]
    period: int = 0
    """Of the last type: one sample stands for this much."""
    time: float = 0.0
    duration: float = 0.0


def frame_of(code: CodeType, line: int) -> Frame:
    return Frame(code.co_qualname, code.co_filename, code.co_firstlineno, line)


def stack_of(frame: FrameType | None) -> Stack:
    """The stack that ends (innermost) at `frame`."""
    stack = []
    while frame is not None:
        # A frame that is being left has no line.
        stack.append(frame_of(frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return tuple(stack)


class _Ids(dict[tuple[object, ...], int]):
    """Numbers things in the order they are first seen, from `first` on."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: tuple[object, ...]) -> int:
        self[key] = number = len(self) + self._first
        return number


def encode(profile: Profile) -> bytes:
    """The profile as the `pprof` tool reads it."""
    strings, functions, locations = _Ids(0), _Ids(1), _Ids(1)
    assert strings["",] == 0

    def unit(value: Unit) -> bytes:
        return pb.number(1, strings[value.type,]) + pb.number(2, strings[value.unit,])

    out = [pb.block(1, unit(each)) for each in profile.types]
    for stack, values in profile.samples.items():
        ids = [locations[functions[frame[:3]], frame.line] for frame in stack]
        out.append(pb.block(2, pb.packed(1, ids) + pb.packed(2, values)))
    for (function, line), number in locations.items():
        assert isinstance(function, int)
        assert isinstance(line, int)
        where = pb.block(4, pb.number(1, function) + pb.number(2, line))
        out.append(pb.block(4, pb.number(1, number) + where))
    for (name, file, start), number in functions.items():
        assert isinstance(start, int)
        names = pb.number(2, strings[name,]) + pb.number(3, strings[name,]) + pb.number(4, strings[file,])
        out.append(pb.block(5, pb.number(1, number) + names + pb.number(5, start)))
    if profile.period:
        out.append(pb.block(11, unit(profile.types[-1])) + pb.number(12, profile.period))
    out.append(pb.number(9, int(profile.time * 1e9)) + pb.number(10, int(profile.duration * 1e9)))
    out += [pb.text(6, str(text)) for (text,) in strings]
    return gzip.compress(b"".join(out), 6)


def render(name: str, profile: Profile) -> str:
    """The profile as text, largest first (`?debug=1`)."""
    totals = [sum(values[i] for values in profile.samples.values()) for i in range(len(profile.types))]
    heads = ", ".join(f"{total} {each.type}/{each.unit}" for total, each in zip(totals, profile.types, strict=True))
    lines = [f"{name} profile: {heads}\n"]
    for stack, values in sorted(profile.samples.items(), key=lambda item: item[1][-1], reverse=True):
        lines.append(f"\n{' '.join(map(str, values))} @\n")
        lines += describe(stack)
    return "".join(lines)


def describe(stack: Iterable[Frame]) -> list[str]:
    """A stack as lines, innermost first."""
    return [f"#\t{frame.function}\t{frame.file}:{frame.line}\n" for frame in stack]
