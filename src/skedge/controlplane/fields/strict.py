"""Unknown and duplicate fields, as strict decoding words them.

Upstream: `sigs.k8s.io/json` (strict errors), whose texts the server joins after "strict decoding error: " or sends one
by one as warnings. Keys are case-sensitive; nothing is reported below free-form JSON or below an unknown field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from skedge.controlplane.fields.table import Shape, Type, table

MAX_ERRORS = 100
"""Strict decoding stops collecting after this many."""


def unknown_fields(gvk: str, obj: Any) -> list[str]:
    """`unknown field "spec.foo"` for every field of `obj` that the kind does not have, in document order."""
    kind = table().kind(gvk)
    return [] if _all_known(obj, kind) else _collect(obj, kind, duplicates=False)


def duplicate_fields(raw: bytes, gvk: str = "") -> list[str]:
    """`duplicate field "spec.x"` for every key that stands twice in a JSON object of `raw`, in document order.

    With `gvk`, keys below unknown fields and free-form JSON do not count, as in the server. `raw` must be valid JSON
    (ValueError otherwise).
    """
    obj, found = _load(raw)
    return _collect(obj, table().kind(gvk) if gvk else None, unknown=False) if found else []


def strict_errors(gvk: str, raw: bytes) -> list[str]:
    """Unknown and duplicate fields of `raw` together, in the order in which the server lists them."""
    return _collect(_load(raw)[0], table().kind(gvk))


def _all_known(value: Any, type: Type) -> bool:
    """Whether nothing is unknown, which is nearly always so, found out without keeping track of paths."""
    shape = type.shape
    if value.__class__ is list:
        elem = type.elem
        return shape is not Shape.LIST or all(
            _all_known(item, elem) for item in value if item.__class__ is dict or item.__class__ is list
        )
    if value.__class__ is not dict:
        return True
    if shape is Shape.STRUCT:
        fields = type.fields
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                return False
            if (item.__class__ is dict or item.__class__ is list) and not _all_known(item, field.type):
                return False
        return True
    return shape is not Shape.MAP or all(_all_known(item, type.elem) for item in value.values())


class _Twice(dict[str, Any]):
    """A JSON object with a repeated key; `pairs` has all of them."""

    pairs: list[tuple[str, Any]]


def _load(raw: bytes) -> tuple[Any, bool]:
    found = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        obj = dict(items)
        if len(obj) == len(items):
            return obj
        found = True
        twice = _Twice(obj)
        twice.pairs = items
        return twice

    return json.loads(raw, object_pairs_hook=pairs), found


def _collect(obj: Any, type: Type | None, *, unknown: bool = True, duplicates: bool = True) -> list[str]:
    out: dict[str, None] = {}

    def report(what: str, path: str) -> None:
        if len(out) < MAX_ERRORS:
            out[f'{what} field "{path}"'] = None

    def walk(value: Any, type: Type | None, path: str) -> None:
        if value.__class__ is list:
            if type is not None and type.shape is not Shape.LIST:
                return
            elem = None if type is None else type.elem
            for i, item in enumerate(value):
                if item.__class__ is not str:
                    walk(item, elem, f"{path}[{i}]")
        elif isinstance(value, dict):
            walk_object(value, type, path + "." if path else "")

    def walk_object(value: dict[str, Any], type: Type | None, prefix: str) -> None:
        pairs: Iterable[tuple[str, Any]] = value.items()
        seen: set[str] | None = None
        if isinstance(value, _Twice):
            pairs, seen = value.pairs, set()
        if type is not None and type.shape is not Shape.STRUCT and type.shape is not Shape.MAP:
            return
        fields = type.fields if type is not None and type.shape is Shape.STRUCT else None
        for key, item in pairs:
            if seen is not None:
                if key in seen and duplicates:
                    report("duplicate", prefix + key)
                seen.add(key)
            if fields is not None:
                field = fields.get(key)
                if field is None:
                    if unknown:
                        report("unknown", prefix + key)
                elif isinstance(item, dict | list):
                    walk(item, field.type, prefix + key)
            elif isinstance(item, dict | list):
                walk(item, None if type is None else type.elem, prefix + key)

    walk(obj, type, "")
    return list(out)
