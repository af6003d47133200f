"""Numbers as Go's `strconv` writes them: scrapers compare the texts of bucket bounds."""

from __future__ import annotations

import math


def go_float(value: float) -> str:
    """The shortest decimal that reads back as `value`; an exponent below 1e-4 and from 1e6 on (1e-05, 2.592e+06)."""
    if -1_000_000 < value < 1_000_000:
        whole = int(value)
        return str(whole) if whole == value else repr(float(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    if "e" in text:
        return text
    sign = "-" if value < 0 else ""
    whole_digits, _, fraction = text.removeprefix("-").partition(".")
    digits = (whole_digits + fraction).rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e+{len(whole_digits) - 1:02d}"
