"""Wrong JSON types, as decoding into the Go types words them.

Upstream: Go's `encoding/json` texts ("json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of
type bool") and the unmarshalers of Quantity, Time, MicroTime, IntOrString. The server reports the first error only and
puts "<Kind> in version ... cannot be handled as a <Kind>: " before it.

Named Go string types (v1.RestartPolicy) are not in the field table: they appear as `string`.
"""

from __future__ import annotations

import re
from typing import Any

from skedge.controlplane.fields.table import Shape, Type, table

QUANTITY_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
QUANTITY_SUFFIX = "unable to parse quantity's suffix"

_QUANTITY = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*)([-+]?[0-9]*)")
_SUFFIXES = frozenset(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_RANGES = {"integer:int32": 1 << 31, "integer:int64": 1 << 63}
_GO_SCALARS = {
    "integer:int32": "int32",
    "integer:int64": "int64",
    "boolean": "bool",
    "string": "string",
    "string:byte": "[]uint8",
}
# The layout 2006-01-02T15:04:05Z07:00 in steps: what matches, and what Go calls the step.
_TIME_STEPS = [
    (re.compile(pattern), name)
    for pattern, name in [
        (r"\d{4}", "2006"),
        ("-", "-"),
        (r"0[1-9]|1[0-2]", "01"),
        ("-", "-"),
        (r"\d{2}", "02"),
        ("T", "T"),
        (r"[01]\d|2[0-3]", "15"),
        (":", ":"),
        (r"[0-5]\d", "04"),
        (":", ":"),
        (r"[0-5]\d(?:[.,]\d+)?", "05"),
        (r"Z|[+-]\d\d:\d\d", "Z07:00"),
    ]
]
_LAYOUTS = {
    "apis.meta.v1.Time": "2006-01-02T15:04:05Z07:00",
    "apis.meta.v1.MicroTime": "2006-01-02T15:04:05.000000Z07:00",
}


def validate_types(gvk: str, obj: Any) -> list[str]:
    """Every place where `obj` has another JSON type than the kind, in document order; the server says only the first.

    Unknown fields are not looked into; `null` fits everywhere.
    """
    kind = table().kind(gvk)
    out: list[str] = []
    _check(obj, kind, "", "", out)
    return out


def _check(value: Any, type: Type, struct: str, path: str, out: list[str]) -> None:
    """`struct`: name of the innermost struct; `path`: field names from the root, without indices."""
    if value is None or type.shape is Shape.ANY:
        return
    if type.shape is Shape.SCALAR:
        error = _scalar(value, type, struct, path)
        if error:
            out.append(error)
    elif type.shape is Shape.LIST:
        if not isinstance(value, list):
            out.append(_mismatch(value, type, struct, path))
        else:
            for item in value:
                _check(item, type.elem, struct, path, out)
    elif not isinstance(value, dict):
        out.append(_mismatch(value, type, struct, path))
    elif type.shape is Shape.MAP:
        for key, item in value.items():
            _check(item, type.elem, struct, _join(path, key), out)
    else:
        inner = type.name.rpartition(".")[2]
        for key, item in value.items():
            field = type.fields.get(key)
            if field is not None:
                _check(item, field.type, inner, _join(path, key), out)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _scalar(value: Any, type: Type, struct: str, path: str) -> str:
    """The error of a scalar, or an empty string."""
    name = type.name
    if name in _RANGES:
        if isinstance(value, int) and not isinstance(value, bool):
            fits = -_RANGES[name] <= value < _RANGES[name]
            return "" if fits else _mismatch(value, type, struct, path, literal=True)
        return _mismatch(value, type, struct, path, literal=isinstance(value, float))
    if name == "boolean":
        return "" if isinstance(value, bool) else _mismatch(value, type, struct, path)
    if name == "api.resource.Quantity":
        return _quantity(value)
    if name == "util.intstr.IntOrString":
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return ""
        return f"json: cannot unmarshal {_json_type(value)} into Go value of type int32"
    if name in _LAYOUTS:
        if not isinstance(value, str):
            return f"json: cannot unmarshal {_json_type(value)} into Go value of type string"
        return _time(value, _LAYOUTS[name])
    if name == "string:byte" and isinstance(value, str):
        if _BASE64.fullmatch(value):
            return ""
        matched = _BASE64.match(value)
        return f"illegal base64 data at input byte {matched.end() if matched else 0}"
    return "" if isinstance(value, str) else _mismatch(value, type, struct, path)


def _quantity(value: Any) -> str:
    if isinstance(value, dict | list | bool):
        return QUANTITY_FORMAT
    text = str(value).strip()
    matched = _QUANTITY.fullmatch(text)
    if not text or matched is None:
        return QUANTITY_FORMAT
    suffix, exponent = matched.groups()
    if exponent:
        return "" if suffix in ("e", "E") else QUANTITY_SUFFIX
    return "" if suffix in _SUFFIXES else QUANTITY_SUFFIX


def _time(value: str, layout: str) -> str:
    """Go's `time.Parse` error for the first step of the layout that does not match."""
    rest = value
    for pattern, name in _TIME_STEPS:
        matched = pattern.match(rest)
        if matched is None:
            return f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{name}"'
        rest = rest[matched.end() :]
    return f'parsing time "{value}": extra text: "{rest}"' if rest else ""


def _mismatch(value: Any, type: Type, struct: str, path: str, literal: bool = False) -> str:
    what = f"number {value}" if literal else _json_type(value)
    where = f"Go struct field {struct}.{path}" if path else "Go value"
    return f"json: cannot unmarshal {what} into {where} of type {_go_type(type)}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _go_type(type: Type) -> str:
    if type.shape is Shape.LIST:
        return "[]" + _go_type(type.elem)
    if type.shape is Shape.MAP:
        if type.elem.name == "api.resource.Quantity":
            return "v1.ResourceList"
        return "map[string]" + _go_type(type.elem)
    return _GO_SCALARS.get(type.name, ".".join(type.name.split(".")[-2:]))
