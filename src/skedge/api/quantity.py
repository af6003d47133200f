"""`resource.Quantity`: exact amounts, and their int64 readings with every habit of the reference.

A quantity is `unscaled * 10**exponent`. Like the reference it is in one of two representations: *small* (fits int64, no
finer than nano) or *big* (arbitrary precision). They are equal as numbers, but `value()` and `milli_value()` overflow
differently: a small one mostly gives 0, a big one wraps. Recorded decisions depend on that.

Upstream: `staging/src/k8s.io/apimachinery/pkg/api/resource/{quantity,amount,scale_int,suffix}.go`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

QuantityText = str | int | float

FORMAT_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMBER_ERROR: Final = "unable to parse numeric part of quantity"
SUFFIX_ERROR: Final = "unable to parse quantity's suffix"

MAX_INT64: Final = 2**63 - 1
_NANO: Final = -9
_MAX_DIGITS: Final = 4000  # of a number; also below CPython's own limit of int(text)
_MAX_EXPONENT: Final = 1000  # int64 readings are 0 from 10**64 on; keeps a hostile 1e2000000000 cheap
_WRAPPING_SHIFTS: Final = (1, 2, 3, 6, 9)  # powers of ten with a multiplication of their own; others give 0 on overflow
_CACHE: Final = 1 << 16

_SPLIT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = ("", *_BINARY_SUFFIXES)


class QuantityError(ValueError):
    """The text is not a quantity; the message is the reference's."""


class Quantity:
    """An exact, immutable amount that remembers how it was written. Make one with `parse` or `of_units`."""

    __slots__ = ("_big", "_exponent", "_format", "_text", "_unscaled")

    def __init__(self, unscaled: int, exponent: int, *, big: bool = False, form: str = "SI", text: str = "") -> None:
        self._unscaled = unscaled
        self._exponent = exponent
        self._big = big
        self._format = form  # "SI", "binary" or "exponent"
        self._text = text  # when it was written in canonical form already

    @property
    def form(self) -> str:
        """How it was written: "SI", "binary" or "exponent"."""
        return self._format

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._unscaled > 0) - (self._unscaled < 0)

    def value(self) -> int:
        """The amount as int64, rounded up (a small one: away from zero)."""
        return self._scaled(0)

    def milli_value(self) -> int:
        """A thousand times the amount as int64, rounded up (a small one: away from zero)."""
        return self._scaled(-3)

    def exact(self, exponent: int) -> int | None:
        """The amount in units of `10**exponent` if that is a whole number well within int64, else None."""
        shift = self._exponent - exponent
        if shift >= 0:
            result = self._unscaled * _pow10(shift)
        else:
            result, rest = divmod(self._unscaled, _pow10(-shift))
            if rest:
                return None
        return result if -(1 << 48) < result < 1 << 48 else None

    def fraction(self) -> Fraction:
        """The amount itself."""
        return Fraction(self._unscaled) * Fraction(10) ** self._exponent

    def _scaled(self, exponent: int) -> int:
        shift = self._exponent - exponent
        if not self._big:
            if shift >= 0:
                result = self._unscaled * _pow10(shift)
                if -MAX_INT64 <= result <= MAX_INT64:
                    return result
                return _wrap(result) if shift in _WRAPPING_SHIFTS else 0
            result, rest = divmod(abs(self._unscaled), _pow10(-shift))
            result += rest > 0
            return -result if self._unscaled < 0 else result
        if shift >= 0:
            # 10**19 and above is not an int64; the processor's conversion of it gives the lowest int64.
            return _wrap(_wrap(self._unscaled) * (_pow10(shift) if shift <= 18 else -(2**63)))
        divisor = _pow10(-shift)
        if self._unscaled < MAX_INT64 and -shift < 19:
            # Taken by every negative number, however large: what is divided is its low 64 bits.
            low = _wrap(self._unscaled)
            result, rest = divmod(abs(low), divisor)
            return (-result if low < 0 else result) + (rest > 0)
        result, rest = divmod(self._unscaled, divisor)
        return _wrap(_wrap(result) + (rest > 0))

    def canonical(self) -> str:
        """The text an API server would return for this quantity."""
        if self._text:
            return self._text
        if not self._unscaled:
            return "0"
        form = self._format
        if form == "binary":
            whole = self._whole()
            if whole is not None and abs(whole) >= 1024:
                power = 0
                while whole % 1024 == 0:
                    whole //= 1024
                    power += 1
                return f"{whole}{_BINARY_NAMES[power]}"
            form = "SI"
        mantissa, exponent = self._unscaled, self._exponent
        while mantissa % 10 == 0:
            mantissa //= 10
            exponent += 1
        mantissa *= _pow10(exponent % 3)
        exponent -= exponent % 3
        if form == "SI":
            return f"{mantissa}{_DECIMAL_NAMES.get(exponent, '')}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def _whole(self) -> int | None:
        if self._exponent >= 0:
            return self._unscaled * _pow10(self._exponent)
        result, rest = divmod(self._unscaled, _pow10(-self._exponent))
        return None if rest else result

    def __add__(self, other: Quantity) -> Quantity:
        exponent = min(self._exponent, other._exponent)
        form = self._format if self._unscaled else other._format
        if not (self._big or other._big):
            if not other._unscaled:
                return Quantity(self._unscaled, self._exponent, form=form)
            if not self._unscaled:
                return Quantity(other._unscaled, other._exponent, form=form)
        mine = self._unscaled * _pow10(self._exponent - exponent)
        theirs = other._unscaled * _pow10(other._exponent - exponent)
        total = mine + theirs
        small = not (self._big or other._big) and all(-(2**63) <= n <= MAX_INT64 for n in (mine, theirs, total))
        return Quantity(total, exponent, big=not small, form=form)

    def _compare(self, other: Quantity) -> int:
        exponent = min(self._exponent, other._exponent)
        return self._unscaled * _pow10(self._exponent - exponent) - other._unscaled * _pow10(other._exponent - exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self._compare(other) >= 0

    def __hash__(self) -> int:
        mantissa, exponent = self._unscaled, self._exponent
        while mantissa and mantissa % 10 == 0:
            mantissa //= 10
            exponent += 1
        return hash((mantissa, exponent if mantissa else 0))

    def __repr__(self) -> str:
        return f"Quantity({self.canonical()!r})"


def of_units(amount: int, exponent: int = 0) -> Quantity:
    """The quantity `amount * 10**exponent`; `amount` fits int64."""
    return Quantity(amount, exponent)


def parse(text: str) -> Quantity:
    """Read a quantity, strictly. Raises QuantityError with the reference's message."""
    if text == "0":
        return Quantity(0, 0, text="0")
    match = _SPLIT.fullmatch(text)
    if match is None or not text:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = match.groups(default="")
    whole = whole.lstrip("0") or "0"
    if len(whole) + len(fraction) > _MAX_DIGITS:
        raise QuantityError(NUMBER_ERROR)
    digits = whole + fraction
    unscaled = int(digits)
    negative = sign == "-"

    power = _BINARY_SUFFIXES.get(suffix)
    if power is not None:
        if not fraction and len(whole) + power * 3 // 10 <= 14:
            # Already in canonical form unless a larger suffix could take over.
            kept = text if unscaled & 7 else ""
            return Quantity(_signed(unscaled << power, negative), 0, form="binary", text=kept)
        return _big_binary(unscaled << power, -len(fraction), negative)

    exponent = _DECIMAL_SUFFIXES.get(suffix)
    form = "SI"
    if exponent is None:
        exponent = _written_exponent(suffix)
        form = "exponent"
    exponent -= len(fraction)
    if len(digits) <= 18 and exponent >= _NANO:
        kept = text if exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000") else ""
        return Quantity(_signed(unscaled, negative), min(exponent, _MAX_EXPONENT), form=form, text=kept)
    return _rounded_to_nano(unscaled, exponent, negative, form)


def _written_exponent(suffix: str) -> int:
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(suffix) > 40:
        raise QuantityError(SUFFIX_ERROR)
    exponent = int(match[1])
    if not -(2**63) <= exponent <= MAX_INT64:
        raise QuantityError(SUFFIX_ERROR)
    return _wrap(exponent, 32)


def _big_binary(unscaled: int, exponent: int, negative: bool) -> Quantity:
    """A number with a binary suffix that is not small: capped at the highest int64."""
    if unscaled > MAX_INT64 * _pow10(-exponent):
        return Quantity(_signed(MAX_INT64, negative), 0, big=True, form="binary")
    return _rounded_to_nano(unscaled, exponent, negative, "SI" if unscaled < _pow10(-exponent) else "binary")


def _rounded_to_nano(unscaled: int, exponent: int, negative: bool, form: str) -> Quantity:
    """A big quantity, counted in units of nano; finer parts round away from zero."""
    if not unscaled:
        return Quantity(0, max(min(exponent, _MAX_EXPONENT), -_MAX_EXPONENT), big=True, form=form)
    shift = exponent - _NANO
    if shift >= 0:
        nanos = unscaled * _pow10(min(shift, _MAX_EXPONENT))
    elif -shift > _MAX_DIGITS:
        nanos = 1
    else:
        nanos = -(-unscaled // _pow10(-shift))
    return Quantity(_signed(nanos, negative), _NANO, big=True, form=form)


def _signed(number: int, negative: bool) -> int:
    return -number if negative else number


def _pow10(exponent: int) -> int:
    return int(10**exponent)


def _wrap(number: int, bits: int = 64) -> int:
    """The low bits as a signed integer, as Go converts."""
    half = 1 << (bits - 1)
    return ((number + half) & (2 * half - 1)) - half


# --- hot path: amounts as they stand in decoded objects ---------------------------------------------------------------


@lru_cache(maxsize=_CACHE)
def quantity(amount: QuantityText) -> Quantity:
    """The quantity of a field of a decoded object: a string (surrounding space allowed) or a bare JSON number."""
    return parse(amount.strip() if isinstance(amount, str) else repr(amount))


@lru_cache(maxsize=_CACHE)
def value(amount: QuantityText) -> int:
    """`Quantity.value` of a field of a decoded object. Raises QuantityError."""
    found = plain_value(amount)
    return quantity(amount).value() if found is None else found


@lru_cache(maxsize=_CACHE)
def milli_value(amount: QuantityText) -> int:
    """`Quantity.milli_value` of a field of a decoded object. Raises QuantityError."""
    found = plain_milli_value(amount)
    return quantity(amount).milli_value() if found is None else found


_SHIFTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30}


def plain_value(amount: QuantityText) -> int | None:
    """The value of a few digits, alone or with Ki, Mi or Gi, as nearly all amounts are written; None: look closer."""
    if isinstance(amount, str) and len(amount) <= 11 and amount.isascii():
        if amount.isdigit():
            return int(amount)
        shift = _SHIFTS.get(amount[-2:])
        if shift is not None and amount[:-2].isdigit():
            return int(amount[:-2]) << shift
    return None


def plain_milli_value(amount: QuantityText) -> int | None:
    """The same in thousandths, for digits alone or with m."""
    if isinstance(amount, str) and len(amount) <= 11 and amount.isascii():
        if amount.isdigit():
            return int(amount) * 1000
        if amount[-1:] == "m" and amount[:-1].isdigit():
            return int(amount[:-1])
    return None
