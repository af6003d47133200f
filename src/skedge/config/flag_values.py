"""Kinds of flag values: how they are read, shown in `--help`, and printed by `/flagz`. Upstream: `spf13/pflag`."""

import csv
import io
import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from skedge.api import quantity
from skedge.config.durations import Duration
from skedge.config.fields import go_quote
from skedge.config.gates import parse_bool

_INTEGER = re.compile(r"[-+]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)", re.ASCII)
_DECIMAL = re.compile(r"[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(inf|infinity|nan)", re.ASCII | re.I)


class SNIPair(msgspec.Struct, frozen=True):
    """A certificate, its key, and the names it is for (none: those in the certificate)."""

    cert: str
    key: str
    names: tuple[str, ...] = ()


class Kind(msgspec.Struct, frozen=True):
    """A kind of value. `parse` raises ValueError with the reference's message; a `many` kind's values add up.

    `bare` is the text that a flag without a value stands for; without it the flag needs one.
    """

    label: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str
    bare: str = ""
    many: bool = False


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
        digits = text.replace("_", "")
        bare = digits.lstrip("+-")
        is_octal = len(bare) > 1 and bare[0] == "0" and bare[1].isdigit()
        value = int(digits, 8 if is_octal else 0) if len(digits) < 80 else 1 << bits
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
        return value

    return parse


def _level(text: str) -> int:
    if not _DECIMAL.fullmatch(text.removeprefix("+")):
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    if len(text) > 11 or int(text) >= 1 << 31:
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return int(text)


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"strconv.ParseFloat: parsing {go_quote(text)}: invalid syntax")
    value = float(text)
    if "inf" not in text.lower() and abs(value) > 3.4028235677973366e38:
        raise ValueError(f"strconv.ParseFloat: parsing {go_quote(text)}: value out of range")
    return value


def _ip(text: str) -> str:
    try:
        if "%" in text:
            raise ValueError
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f"failed to parse IP: {go_quote(text)}") from None


def split_csv(text: str) -> list[str]:
    """A comma-separated list with CSV quoting; raises ValueError."""
    if not text:
        return []
    try:
        return next(csv.reader(io.StringIO(text), strict=True), [])
    except csv.Error as error:
        raise ValueError(f"parse error: {error}") from None


def _int32s(text: str) -> list[int]:
    return [_integer(32)(part) for part in text.split(",")]


def _sni(text: str) -> list[SNIPair]:
    files, colon, patterns = text.partition(":")
    parts = files.split(",")
    if len(parts) != 2:
        raise ValueError("expected comma separated certificate and key file paths")
    cert, key = (part.strip() for part in parts)
    if not cert or not key:
        raise ValueError("expected comma separated certificate and key file paths")
    if not colon:
        return [SNIPair(cert, key)]
    found = tuple(part.strip() for part in patterns.split(",") if part.strip())
    if not found:
        raise ValueError("empty names list is not allowed")
    return [SNIPair(cert, key, found)]


def _show_sni(pairs: list[SNIPair]) -> str:
    shown = [f"{p.cert},{p.key}" + (f":{','.join(p.names)}" if p.names else "") for p in pairs]
    return f"[{';'.join(shown)}]"


def _string_map(text: str) -> dict[str, str]:
    if "=" not in text:
        raise ValueError(f"{text} must be formatted as key=value")
    parts = [text.strip('"')] if text.count("=") == 1 else split_csv(text)
    result: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part} must be formatted as key=value")
        result[key] = value
    return result


def _vmodule(text: str) -> dict[str, int]:
    result: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        pattern, equals, level = item.partition("=")
        if not pattern or not level or "=" in level or not equals:
            raise ValueError(f"{go_quote(item)} does not have the pattern=N format")
        if not _DECIMAL.fullmatch(level) or len(level) > 10 or int(level) >= 1 << 31:
            why = "value out of range" if _DECIMAL.fullmatch(level) else "invalid syntax"
            text = f"parsing verbosity in {go_quote(item)}: strconv.ParseUint: parsing {go_quote(level)}: {why}"
            raise ValueError(text)
        result[pattern] = int(level)
    return result


def _quantity(text: str) -> int:
    try:
        return quantity.value(text)
    except quantity.QuantityError as error:
        raise ValueError(str(error)) from None


def _version(text: str) -> str:
    if text in ("", "raw") or text.startswith("v"):
        return text
    return "true" if parse_bool(text) else "false"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _list(values: list[Any]) -> str:
    return f"[{','.join(map(str, values))}]"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


STRING: Final = Kind("string", str)
BOOL: Final = Kind("", parse_bool, _bool, bare="true")
INT: Final = Kind("int", _integer(64))
INT32: Final = Kind("int32", _integer(32))
FLOAT32: Final = Kind("float32", _float, _number)
DURATION: Final = Kind("duration", Duration.parse)
IP: Final = Kind("ip", _ip)
STRINGS: Final = Kind("strings", split_csv, _list, many=True)
INT32S: Final = Kind("int32Slice", _int32s, _list, many=True)
SNI: Final = Kind("namedCertKey", _sni, _show_sni, many=True)
STRING_MAP: Final = Kind(
    "stringToString", _string_map, lambda m: f"[{','.join(f'{k}={v}' for k, v in sorted(m.items()))}]", many=True
)
GATES: Final = Kind("colonSeparatedMultimapStringString", lambda text: [text], ",".join, many=True)
LEVEL: Final = Kind("Level", _level)
VMODULE: Final = Kind(
    "pattern=N,...", _vmodule, lambda levels: ",".join(f"{k}={v}" for k, v in levels.items()), many=True
)
QUANTITY: Final = Kind("quantity", _quantity)
VERSION: Final = Kind("version[=true]", _version, lambda value: value, bare="true")
