"""Quantities as the server reads and writes them: texts in, canonical texts out, sums as fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from skedge.api.quantity import Quantity, parse
from skedge.api.quantity import QuantityError as BadQuantity

_NANO = 9


@lru_cache(maxsize=8192)
def value(text: str) -> Fraction:
    """The exact value of a quantity. Raises BadQuantity."""
    return parse(text).fraction()


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """The canonical spelling of a quantity. Raises BadQuantity."""
    return parse(text).canonical()


def format_quantity(number: Fraction, like: str = "") -> str:
    """A sum in canonical spelling, with the kind of suffixes of `like`; finer than nano is rounded up."""
    form = parse(like).form if like else "SI"
    return Quantity(-(-number.numerator * 10**_NANO // number.denominator), -_NANO, form=form).canonical()


__all__ = ["BadQuantity", "canonical", "format_quantity", "value"]
