"""What a JSON object looks like after a trip through the server's typed structs.

Undeclared fields and nulls go, empty optional values go, quantities and times become canonical, fields that Go always
writes appear. Driven by the field table and the facts of `gotypes`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from skedge.controlplane import quantities
from skedge.controlplane.errors import bad_request
from skedge.controlplane.fields import validate_types
from skedge.controlplane.fields.table import Shape, Type, table
from skedge.controlplane.gotypes import plan

JSON = dict[str, Any]

_TIME, _MICRO_TIME = "apis.meta.v1.Time", "apis.meta.v1.MicroTime"
_LIMIT = 1 << 63
_QUANTITY = "api.resource.Quantity"
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


class _Mismatch(Exception):
    """A JSON value of the wrong type; `validate_types` finds the words."""


def normal(obj: JSON, gvk: str, kind: str, version: str) -> JSON:
    """A new object in the server's form. Raises 400 naming what cannot be read."""
    try:
        return _struct(obj, table().kind(gvk))
    except (_Mismatch, quantities.BadQuantity) as e:
        problem = next(iter(validate_types(gvk, obj)), str(e))
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}') from None


def normal_options(obj: JSON) -> JSON:
    """DeleteOptions in the server's form. Raises 400."""
    try:
        return _struct(obj, table().types["apis.meta.v1.DeleteOptions"])
    except _Mismatch:
        raise bad_request("unable to decode DeleteOptions: a field has the wrong type") from None


def zero(gvk: str) -> JSON:
    """The body of an object in which nothing is set (what a bookmark carries), without metadata."""
    result = _struct({}, table().kind(gvk))
    result.pop("metadata", None)
    return result


def _struct(value: JSON, type_: Type) -> JSON:
    result: JSON = {}
    get = value.get
    for name, child, mode, _ in plan(type_):
        item = get(name)
        if item is None:
            if mode == "v":
                result[name] = _zero(child)
            elif mode == "n":
                result[name] = None
            continue
        item = _scalar(item, child.name) if child.shape is Shape.SCALAR else _value(item, child)
        if item or mode != "e":
            result[name] = item
    return result


def _value(value: Any, type_: Type) -> Any:
    shape = type_.shape
    if shape is Shape.ANY:
        return value
    elem = type_.elem
    if shape is Shape.LIST:
        if not isinstance(value, list):
            raise _Mismatch
        if elem.shape is Shape.SCALAR:
            name = elem.name
            return [_zero(elem) if item is None else _scalar(item, name) for item in value]
        return [_value({} if item is None else item, elem) for item in value]
    if not isinstance(value, dict):
        raise _Mismatch
    if shape is Shape.STRUCT:
        return _struct(value, type_)
    if elem.shape is Shape.SCALAR:
        name = elem.name
        return {key: _zero(elem) if item is None else _scalar(item, name) for key, item in value.items()}
    return {key: _value(item, elem) for key, item in value.items() if item is not None}


def _zero(type_: Type) -> Any:
    if type_.shape is Shape.STRUCT:
        return _struct({}, type_)
    name = type_.name
    if type_.shape is not Shape.SCALAR or name in (_TIME, _MICRO_TIME):
        return None
    if name.startswith("integer") or name.endswith("IntOrString"):
        return 0
    if name == "boolean":
        return False
    return "0" if name == _QUANTITY else ""


def _scalar(value: Any, name: str) -> Any:
    if name == "string":
        if not isinstance(value, str):
            raise _Mismatch
        return value
    if name.startswith("integer"):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LIMIT <= value < _LIMIT:
            raise _Mismatch
        if value != int(value):
            raise _Mismatch
        return int(value)
    if name == "boolean":
        if not isinstance(value, bool):
            raise _Mismatch
        return value
    if name == _QUANTITY:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = repr(value)
        if not isinstance(value, str):
            raise _Mismatch
        return quantities.canonical(value)
    if name in (_TIME, _MICRO_TIME):
        return _time(value, name)
    if isinstance(value, (dict, list, bool)):
        raise _Mismatch
    return value


def _time(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise _Mismatch
    if value.endswith("Z") and len(value) == (20 if name == _TIME else 27):
        return value
    moment = datetime.fromisoformat(value.replace(",", ".")).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if name == _TIME else "%Y-%m-%dT%H:%M:%S.%fZ")
