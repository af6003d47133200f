"""Arithmetic of Go's int64 on arrays and on plain integers: division truncates, sums and products wrap.

Rules are written once and run on arrays (many rows) or on plain Python numbers (one row). Plain integers do not wrap,
so callers give single rows as one-element arrays while any value is wide (see `NodeTable.wide`).
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Number = TypeVar("Number")

WIDE: Final = (1 << 52) // 100
"""From here on amount x 100 is no longer exact in float64, and soon wraps in int64."""

_FEW: Final = 64
_EXACT: Final = 1 << 52


def trunc_div(a: Any, b: Any) -> Any:
    """`a / b` of Go: toward zero. `b` must not be 0. Arrays (int64) or plain integers.

    Dividends below 2**52 are divided as float64, several times as fast: no quotient of those is rounded to an integer
    that it does not reach, for it is at least `1 / b` away from it. Divisors that are float64 already say that those
    dividends whose quotients count are below it.
    """
    if isinstance(b, np.ndarray) and b.dtype == np.float64:
        return (a / b).astype(np.int64)
    if isinstance(a, np.ndarray) and a.size and a.min() > -_EXACT and a.max() < _EXACT:
        return (a / b).astype(np.int64)
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a))


def percent(a: Any, b: Any) -> Any:
    """`trunc_div(a * 100, b)`; of many rows with a float64 divisor those that count are exact without integers.

    Whole numbers that are float64 stay float64.
    """
    if isinstance(b, np.ndarray) and b.dtype == np.float64:
        share = a * 100.0
        share /= b
        return np.trunc(share, out=share) if a.dtype == np.float64 else share.astype(np.int64)
    return trunc_div(a * 100, b)


def small_div(a: Any, b: int) -> Any:
    """`a // b` of numbers from 0 to 2**52."""
    if not b & (b - 1):
        return a >> (b.bit_length() - 1)
    return (a / b).astype(np.int64) if isinstance(a, np.ndarray) else a // b


def positive(a: Any) -> Any:
    """0 where the number is below it."""
    return np.maximum(a, 0) if isinstance(a, np.ndarray) else max(a, 0)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`numpy.where` that stays with plain values when the condition is one."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def extremes(numbers: Any) -> tuple[Any, Any]:
    """(smallest, largest) of an array; 0 where it is empty. Few numbers are quicker looked at one by one."""
    if len(numbers) <= _FEW:
        listed = numbers.tolist() or (0,)
        return min(listed), max(listed)
    return numbers.min().item(), numbers.max().item()


def for_each(value: Any, size: int) -> Ints:
    """A value for each of so many rows: an array as it is, a plain value repeated."""
    if isinstance(value, np.ndarray) and value.shape == (size,):
        return value
    return np.broadcast_to(value, (size,))


def everywhere(condition: Any) -> bool:
    """Whether a condition holds for all rows."""
    return int(np.count_nonzero(condition)) == condition.size if isinstance(condition, np.ndarray) else bool(condition)


def anywhere(condition: Any) -> bool:
    """Whether a condition holds for some row."""
    return bool(np.count_nonzero(condition)) if isinstance(condition, np.ndarray) else bool(condition)


def round_half_away(x: Any) -> Any:
    """Go's `math.Round`, as int64 or int."""
    if isinstance(x, np.ndarray):
        return np.where(x >= 0, np.floor(x + 0.5), np.ceil(x - 0.5)).astype(np.int64)
    return int(x + 0.5) if x >= 0 else -int(0.5 - x)


def truncate(x: Any) -> Any:
    """Go's `int64(float64)`, as int64 or int."""
    return x.astype(np.int64) if isinstance(x, np.ndarray) else int(x)
