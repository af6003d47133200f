"""Quantities: recorded readings, and an exact twin on random texts."""

from __future__ import annotations

import gzip
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skedge.api import quantity as q

DATA = Path(__file__).parents[2] / "data" / "quantities.jsonl.gz"


def recorded() -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt") as lines:
        return [json.loads(line) for line in lines]


def reading(text: str) -> dict[str, Any]:
    try:
        parsed = q.parse(text)
    except q.QuantityError as err:
        return {"input": text, "error": str(err)}
    return {
        "input": text,
        "canonical": parsed.canonical(),
        "value": parsed.value(),
        "milliValue": parsed.milli_value(),
        "sign": parsed.sign(),
    }


def test_recorded_readings() -> None:
    cases = recorded()
    assert len(cases) == 1482
    assert [reading(case["input"]) for case in cases] == cases


def test_cached_readings_agree_with_parse() -> None:
    for case in recorded():
        if "error" in case or case["input"].strip() != case["input"]:
            continue
        assert (q.value(case["input"]), q.milli_value(case["input"])) == (case["value"], case["milliValue"])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", q.FORMAT_ERROR),
        ("1.1.M", q.FORMAT_ERROR),
        ("1+1.0M", q.FORMAT_ERROR),
        ("0.1am", q.FORMAT_ERROR),
        ("aoeu", q.FORMAT_ERROR),
        (" 1", q.FORMAT_ERROR),
        ("1 ", q.FORMAT_ERROR),
        ("1\n", q.FORMAT_ERROR),
        ("١", q.FORMAT_ERROR),
        ("0.1mi", q.SUFFIX_ERROR),
        (".5i", q.SUFFIX_ERROR),
        ("1i", q.SUFFIX_ERROR),
        ("1+1", q.SUFFIX_ERROR),
        ("1m5", q.SUFFIX_ERROR),
        ("-3.01e-", q.SUFFIX_ERROR),
        ("1e9223372036854775808", q.SUFFIX_ERROR),
        ("9" * 5000, q.NUMBER_ERROR),
    ],
)
def test_errors(text: str, error: str) -> None:
    with pytest.raises(q.QuantityError) as raised:
        q.parse(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("amount", "value", "milli"),
    [
        (1, 1, 1000),
        (0.5, 1, 500),
        (1.5, 2, 1500),
        (1e22, 0, 0),
        (-2, -2, -2000),
        (" 2 ", 2, 2000),
        ("007", 7, 7000),
        ("250m", 1, 250),
        ("64Mi", 67108864, 67108864000),
        ("9Ei", q.MAX_INT64, -1000),
        ("-1500m", -2, -1500),
        ("1e2000000000", 0, 0),
        ("1234567890123456789e2000000000", 0, 0),
        ("1e-2000000000", 1, 1),
    ],
)
def test_fields_of_decoded_objects(amount: q.QuantityText, value: int, milli: int) -> None:
    assert (q.value(amount), q.milli_value(amount)) == (value, milli)


def test_sums_are_exact_before_they_are_read() -> None:
    half = q.parse("0.0005")
    assert half.milli_value() == 1
    assert (half + half).milli_value() == 1
    assert (half + half) == q.parse("1m")
    assert (q.parse("5E") + q.parse("5E")).value() == 0
    assert (q.parse("9223372036854775807") + q.parse("1")).value() == -(2**63)
    assert (q.parse("0") + q.parse("1Gi")).canonical() == "1Gi"
    assert (q.parse("1Gi") + q.parse("0")).canonical() == "1Gi"


@pytest.mark.parametrize("text", ["0.5", "100m", "-1", "1Ki", "7.25Gi", "9Ei", "1e30", "0.0005", "12E"])
def test_exact_units(text: str) -> None:
    parsed = q.parse(text)
    for exponent in (0, -3):
        exact = parsed.exact(exponent)
        if exact is not None:
            assert exact == (parsed.milli_value() if exponent else parsed.value())


SUFFIXES = {
    "": Fraction(1),
    **{name: Fraction(10) ** power for name, power in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9}.items()},
    **{name: Fraction(2) ** power for name, power in {"Ki": 10, "Mi": 20, "Gi": 30}.items()},
}


@st.composite
def texts_and_numbers(draw: st.DrawFn) -> tuple[str, Fraction]:
    whole = draw(st.text("0123456789", min_size=1, max_size=12))
    fraction = draw(st.text("0123456789", max_size=12))
    suffix = draw(st.sampled_from([*SUFFIXES, "e3", "E-2", "e+5"]))
    factor = SUFFIXES[suffix] if suffix in SUFFIXES else Fraction(10) ** int(suffix[1:])
    number = Fraction(f"{whole}.{fraction or '0'}") * factor
    if suffix.endswith("i"):
        number = min(number, Fraction(2**63 - 1))
    number = Fraction(math.ceil(number * 10**9), 10**9)  # nothing is finer than nano
    return f"{whole}.{fraction}{suffix}", number


@given(texts_and_numbers())
def test_twin_of_reading(case: tuple[str, Fraction]) -> None:
    text, number = case
    parsed = q.parse(text)
    if number * 1000 < 2**63:
        assert (parsed.value(), parsed.milli_value()) == (math.ceil(number), math.ceil(number * 1000))
    assert q.parse(parsed.canonical()) == parsed


@given(texts_and_numbers(), texts_and_numbers())
def test_twin_of_sum_and_order(a: tuple[str, Fraction], b: tuple[str, Fraction]) -> None:
    left, right = q.parse(a[0]), q.parse(b[0])
    assert (left < right, left == right, left > right) == (a[1] < b[1], a[1] == b[1], a[1] > b[1])
    assert (left <= right, left >= right) == (a[1] <= b[1], a[1] >= b[1])
    if (a[1] + b[1]) * 1000 < 2**63:
        assert (left + right).milli_value() == math.ceil((a[1] + b[1]) * 1000)
    if left == right:
        assert hash(left) == hash(right)


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert reading(text)["input"] == text


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "Ki", "Mi", "Gi", "Ti", "i", " ", "٣"]))
@example(10**9 - 1, "Gi")
def test_short_texts_are_read_at_once(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    try:
        known = q.quantity(text)
    except q.QuantityError:
        assert q.plain_value(text) is None
        assert q.plain_milli_value(text) is None
        return
    assert q.plain_value(text) in (None, known.value())
    assert q.plain_milli_value(text) in (None, known.milli_value())
    if number < 10**9 and suffix in ("", "Ki", "Mi", "Gi"):
        assert q.plain_value(text) is not None
