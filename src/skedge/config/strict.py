"""Strict decoding of plain data into structs: all problems at once, with field paths. Upstream: `sigs.k8s.io/json`.

Names match case-sensitively, unknown ones are refused, null means absent. Field types understood: `bool`, `str`,
`bytes` (base64), `int` with `Int32` or `Int64`, `float`, `Duration`, structs, lists, string-keyed dicts, their
optional forms, and `Raw` (any JSON, kept as it is). A `Shaped` field stays plain data, its structure is checked.
"""

import base64
import binascii
import types
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from skedge.config.durations import Duration
from skedge.config.fields import ConfigError, go_quote

Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
Raw = Annotated[Any, "raw"]

INTERNAL = "internal"
"""Marks a field that is set by the program only and has no name in files."""


class Shaped(msgspec.Struct, frozen=True):
    """Marks a field that keeps plain data whose structure must fit `shape`."""

    shape: type[msgspec.Struct]


class StrictError(ConfigError):
    """Unknown or repeated fields; `problems` in the order found."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("strict decoding error: " + ", ".join(problems))


_S = TypeVar("_S", bound=msgspec.Struct)
_BOUNDS = {"int32": 1 << 31, "int64": 1 << 63}


class Problems:
    """What a decoding found: unknown fields, and values of the wrong type (which weigh more)."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mismatches: list[str] = []

    def raise_mismatch(self) -> None:
        """Raise ConfigError if a value had the wrong type."""
        if self.mismatches:
            raise ConfigError(", ".join(dict.fromkeys(self.mismatches)))


def decode_struct(data: object, kind: type[_S], *, ignore: frozenset[str] = frozenset()) -> _S:
    """Decode plain data into a struct, or raise ConfigError (wrong types) or StrictError (unknown fields).

    `ignore` names top-level fields that are not the struct's but may be there (`kind`, `apiVersion`).
    """
    problems = Problems()
    result = walk(data, kind, problems, ignore=ignore)
    problems.raise_mismatch()
    if problems.unknown:
        raise StrictError(problems.unknown)
    return result


def walk(data: object, kind: type[_S], problems: Problems, *, ignore: frozenset[str] = frozenset()) -> _S:
    """As `decode_struct`, but adds to `problems` instead of raising."""
    if not isinstance(data, dict):
        what = "null" if data is None else _json_type(data)
        problems.mismatches.append(f"json: cannot unmarshal {what} into Go value of type v1.{go_name(kind)}")
        data = {}
    return _struct(data, kind, "", problems, ignore)


def go_name(kind: type) -> str:
    """The name of a struct in the reference."""
    return str(getattr(kind, "go_name", kind.__name__))


@cache
def wire_fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """Wire name → (attribute, type) of the fields that may appear in a file."""
    hints = get_type_hints(kind, include_extras=True)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return {wire: (name, hints[name]) for name, wire in names if INTERNAL not in _marks(hints[name])}


def _marks(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _struct(data: dict[str, Any], kind: type[_S], path: str, problems: Problems, ignore: frozenset[str]) -> _S:
    fields = wire_fields(kind)
    values: dict[str, object] = {}
    for key, value in data.items():
        here = f"{path}.{key}" if path else key
        if key not in fields:
            if key not in ignore:
                problems.unknown.append(f"unknown field {go_quote(here)}")
        elif value is not None:
            name, hint = fields[key]
            decoded = _value(value, hint, here, kind, problems)
            if decoded is not _FAILED:
                values[name] = decoded
    return kind(**values)


class _Failed:
    pass


_FAILED = _Failed()


def _value(value: Any, hint: Any, path: str, owner: type, problems: Problems) -> object:
    origin = get_origin(hint)
    if origin is Union or origin is types.UnionType:
        hint = next(arg for arg in get_args(hint) if arg is not types.NoneType)
        return _value(value, hint, path, owner, problems)
    if origin is Annotated:
        mark = get_args(hint)[1]
        if mark == "raw":
            return value
        if isinstance(mark, Shaped):
            if isinstance(value, dict):
                _struct(value, mark.shape, path, problems, frozenset())
                return value
            return _mismatch(value, f"v1.{go_name(mark.shape)}", path, owner, problems)
        if mark in _BOUNDS:
            return _integer(value, mark, path, owner, problems)
        return _value(value, get_args(hint)[0], path, owner, problems)
    if origin is list:
        return _list(value, get_args(hint)[0], path, owner, problems)
    if origin is dict:
        if not isinstance(value, dict):
            return _mismatch(value, _go_type(hint), path, owner, problems)
        items = {k: _value(v, get_args(hint)[1], f"{path}.{k}", owner, problems) for k, v in value.items()}
        return {k: v for k, v in items.items() if v is not _FAILED}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if not isinstance(value, dict):
            return _mismatch(value, _go_type(hint), path, owner, problems)
        return _struct(value, hint, path, problems, frozenset())
    return _scalar(value, hint, path, owner, problems)


def _list(value: Any, item: Any, path: str, owner: type, problems: Problems) -> object:
    if not isinstance(value, list):
        return _mismatch(value, f"[]{_go_type(item)}", path, owner, problems)
    result = []
    for index, one in enumerate(value):
        here = f"{path}[{index}]"
        decoded = _zero(item) if one is None else _value(one, item, here, owner, problems)
        if decoded is not _FAILED:
            result.append(decoded)
    return result


def _scalar(value: Any, hint: Any, path: str, owner: type, problems: Problems) -> object:
    if hint is Duration:
        if not isinstance(value, str):
            what = _json_type(value).split()[0]
            problems.mismatches.append(f"{path}: json: cannot unmarshal {what} into Go value of type string")
            return _FAILED
        return _guard(lambda: Duration.parse(value), path, problems)
    if hint is bytes:
        if not isinstance(value, str):
            return _mismatch(value, "[]uint8", path, owner, problems)
        return _guard(lambda: base64.b64decode(value, validate=True), path, problems)
    if hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if abs(value) < 1e308 else _mismatch(value, "float32", path, owner, problems)
        return _mismatch(value, "float32", path, owner, problems)
    if isinstance(value, hint):
        return value
    return _mismatch(value, _go_type(hint), path, owner, problems)


def _guard(parse: Callable[[], object], path: str, problems: Problems) -> object:
    try:
        return parse()
    except binascii.Error:
        problems.mismatches.append(f"{path}: illegal base64 data")
    except ValueError as error:
        problems.mismatches.append(f"{path}: {error}")
    return _FAILED


def _integer(value: Any, kind: str, path: str, owner: type, problems: Problems) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        # The YAML reader writes 1e3 as the integer 1000 before decoding.
        value = int(value)
    bound = _BOUNDS[kind]
    if isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound:
        return value
    return _mismatch(value, kind, path, owner, problems)


def _mismatch(value: Any, expected: str, path: str, owner: type, problems: Problems) -> _Failed:
    what = _json_type(value)
    if what.startswith("number") and not expected.startswith(("int", "float")):
        what = "number"
    where = f"{go_name(owner)}.{path}"
    problems.mismatches.append(f"json: cannot unmarshal {what} into Go struct field {where} of type {expected}")
    return _FAILED


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}"[:64]
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _go_type(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated:
        mark = get_args(hint)[1]
        return str(mark) if mark in _BOUNDS else _go_type(get_args(hint)[0])
    if origin is Union or origin is types.UnionType:
        return _go_type(next(arg for arg in get_args(hint) if arg is not types.NoneType))
    if origin is list:
        return f"[]{_go_type(get_args(hint)[0])}"
    if origin is dict:
        return f"map[string]{_go_type(get_args(hint)[1])}"
    simple: dict[object, str] = {
        bool: "bool",
        str: "string",
        float: "float32",
        bytes: "[]uint8",
        Duration: "v1.Duration",
    }
    return simple.get(hint) or f"v1.{go_name(hint)}"


def _zero(hint: Any) -> object:
    origin = get_origin(hint)
    if origin is Annotated:
        return _zero(get_args(hint)[0])
    return hint() if isinstance(hint, type) and hint is not Any else None
