"""Quantities in canonical form, as the server writes them back.

`staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go`: the format family of the input is kept (binary suffixes,
decimal suffixes, exponent), the suffix becomes the largest that leaves an integer, precision ends at nano (rounded up).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

PATTERN_MESSAGE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+|[KMGTPE]i|[numkMGTPE]?)")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NANO = 10**9


class BadQuantity(ValueError):
    """Not a quantity; the message is upstream's."""


def _parsed(text: str) -> tuple[Fraction, str]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise BadQuantity(PATTERN_MESSAGE)
    sign, digits, suffix = match.groups()
    number = Fraction(digits if not digits.endswith(".") else digits[:-1])
    if suffix in _BINARY:
        number *= 1 << _BINARY[suffix]
        family = "binary"
    elif suffix in _DECIMAL:
        number *= Fraction(10) ** _DECIMAL[suffix]
        family = "decimal"
    else:
        exponent = int(suffix[1:])
        if abs(exponent) > 99:
            raise BadQuantity(PATTERN_MESSAGE)
        number *= Fraction(10) ** exponent
        family = "exponent"
    number = Fraction(-((-number * _NANO).__floor__()), _NANO)  # away from zero, to nano
    return (-number if sign == "-" else number), family


@lru_cache(maxsize=8192)
def value(text: str) -> Fraction:
    """The exact value of a quantity. Raises BadQuantity."""
    return _parsed(text)[0]


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """The canonical spelling of a quantity. Raises BadQuantity."""
    number, family = _parsed(text)
    return format_quantity(number, family)


def format_quantity(number: Fraction, family: str = "decimal") -> str:
    """A value in the canonical spelling of a format family: binary, decimal or exponent."""
    if number == 0:
        return "0"
    if family == "binary" and number.denominator == 1 and not -1024 < number < 1024:
        scale, mantissa = 0, int(number)
        while mantissa % 1024 == 0 and scale < 60:
            mantissa //= 1024
            scale += 10
        suffix = next((s for s, bits in _BINARY.items() if bits == scale), "")
        return f"{mantissa}{suffix}"
    exponent = 0
    while number.denominator != 1:
        number *= 1000
        exponent -= 3
    mantissa = int(number)
    while mantissa % 1000 == 0 and exponent < 18:
        mantissa //= 1000
        exponent += 3
    if family == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
