"""Durations as Go writes them: `15s`, `1h15m`, `300ms`. Upstream: Go's `time.ParseDuration` and `Duration.String`."""

import re
from typing import Self

from skedge.config.fields import go_quote

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_MAX = (1 << 63) - 1


class Duration(int):
    """A length of time in whole nanoseconds (an int64 in the reference); prints in Go's form."""

    @classmethod
    def of(cls, seconds: float) -> Self:
        """The duration of so many seconds, rounded to the nanosecond."""
        return cls(round(seconds * 1_000_000_000))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse Go syntax; raises ValueError with Go's own message."""
        sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
        if rest == "0":
            return cls(0)
        if not rest:
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        total = 0
        while rest:
            match = _PART.match(rest)
            assert match is not None  # every part of the pattern may be empty
            whole, fraction, unit = match[1], match[2] or "", match[3]
            if not whole and not fraction:
                raise ValueError(f"time: invalid duration {go_quote(text)}")
            if not unit:
                raise ValueError(f"time: missing unit in duration {go_quote(text)}")
            scale = _UNITS.get(unit)
            if scale is None:
                raise ValueError(f"time: unknown unit {go_quote(unit)} in duration {go_quote(text)}")
            total += int((whole or "0")[-40:]) * scale if len(whole) < 40 else _MAX + 2
            total += int((fraction[:18] or "0").ljust(18, "0")) * scale // 10**18
            rest = rest[match.end() :]
        if total > _MAX + (sign < 0):
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        return cls(sign * total)

    @property
    def seconds(self) -> float:
        return int(self) / 1_000_000_000

    def __str__(self) -> str:
        value = abs(int(self))
        sign = "-" if self < 0 else ""
        if value == 0:
            return "0s"
        if value < 1_000:
            return f"{sign}{value}ns"
        if value < 1_000_000:
            return f"{sign}{_decimal(value, 1_000)}µs"
        if value < 1_000_000_000:
            return f"{sign}{_decimal(value, 1_000_000)}ms"
        minutes, nanos = divmod(value, 60_000_000_000)
        hours, minutes = divmod(minutes, 60)
        tail = f"{_decimal(nanos, 1_000_000_000)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{tail}"
        return f"{sign}{minutes}m{tail}" if minutes else f"{sign}{tail}"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")
