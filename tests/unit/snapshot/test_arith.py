"""Go's int64 arithmetic, on arrays as on plain integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.snapshot.arith import round_half_away, trunc_div, truncate, where

numbers = st.integers(-(10**12), 10**12)


@given(a=numbers, b=numbers.filter(bool))
def test_division_truncates_toward_zero(a: int, b: int) -> None:
    expected = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert trunc_div(a, b) == expected
    assert trunc_div(np.array([a]), np.array([b])).tolist() == [expected]


@given(x=st.floats(-1e9, 1e9))
def test_rounding_is_half_away_from_zero(x: float) -> None:
    expected = int(math.copysign(math.floor(abs(x) + 0.5), x))
    assert round_half_away(x) == expected
    assert round_half_away(np.array([x])).tolist() == [expected]
    assert truncate(x) == math.trunc(x) == truncate(np.array([x]))[0]


@pytest.mark.parametrize(("condition", "expected"), [(True, 1), (False, 2)])
def test_where_keeps_plain_values_plain(condition: bool, expected: int) -> None:
    assert where(condition, 1, 2) == expected
    assert where(np.array([condition]), 1, 2).tolist() == [expected]
