"""What is wrong with an applied configuration, in the words of the typed conversion, and values as Go prints them.

Upstream: `sigs.k8s.io/structured-merge-diff/typed/validate.go`. The server puts "failed to create typed patch object
(<namespace>/<name>; <group/version>, Kind=<kind>): " before it and answers 500.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from skedge.controlplane.fields.sets import element_text
from skedge.controlplane.fields.structured import child_type, element
from skedge.controlplane.fields.table import Shape, Type

_encode = msgspec.json.Encoder().encode


def schema_errors(value: Any, type: Type) -> list[str]:
    """Why `value` is no configuration of this type: `.spec.foo: field not declared in schema`, wrong types, twins."""
    return list(_errors(value, type, ""))


def _errors(value: Any, type: Type, path: str) -> Iterator[str]:
    if value is None or type.shape is Shape.ANY:
        return
    said: Callable[[str], str] = lambda text: f"{path}: {text}" if path else text  # noqa: E731
    if type.shape is Shape.SCALAR:
        wrong = _scalar_error(value, type.name)
        if wrong:
            yield said(wrong)
    elif type.shape is Shape.LIST:
        if not isinstance(value, list):
            yield said(f"expected list, got {_go_value(value)}")
            return
        yield from _list_errors(value, type, path, said)
    elif not isinstance(value, dict):
        yield said(f"expected map, got {_go_value(value)}")
    else:
        for name, item in value.items():
            child = child_type(type, name)
            if child is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _errors(item, child, f"{path}.{name}")


def _list_errors(value: list[Any], type: Type, path: str, said: Callable[[str], str]) -> Iterator[str]:
    seen: set[str] = set()
    for i, item in enumerate(value):
        key = f"i:{i}"
        if not type.atomic:
            try:
                key = element(item, type)
            except ValueError as err:
                yield said(f"element {i}: {err}")
                return
            if key in seen:
                yield said(f"duplicate entries for key {element_text(key)}")
            seen.add(key)
        yield from _errors(item, type.elem, path + element_text(key))


def _scalar_error(value: Any, name: str) -> str:
    if name.startswith("integer"):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ""
        kind = {bool: "bool", str: "string", list: "[]interface {}"}.get(value.__class__, "map[string]interface {}")
        return f"expected numeric (int or float), got {kind}"
    if name == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_go_value(value)}"
    if name.startswith("string"):
        return "" if isinstance(value, str) else f"expected string, got {_go_value(value, 'value.valueUnstructured')}"
    return f"expected any scalar, got {_go_value(value)}" if isinstance(value, dict | list) else ""


def _go_value(value: Any, struct: str = "") -> str:
    """How Go prints the wrapped value, with `%#v` where `struct` is given and `%v` otherwise."""
    if struct:
        return f"&{struct}{{Value:{go_text(value, quote=True)}}}"
    return f"&{{{go_text(value)}}}"


def go_text(value: Any, quote: bool = False) -> str:
    """A JSON value as Go's `%v` (with `quote`: `%#v`) prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "interface {}(nil)" if quote else "<nil>"
    if isinstance(value, dict):
        if quote:
            body = ", ".join(f'"{key}":{go_text(value[key], True)}' for key in sorted(value))
            return f"map[string]interface {{}}{{{body}}}"
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        if quote:
            return "[]interface {}{" + ", ".join(go_text(item, True) for item in value) + "}"
        return "[" + " ".join(map(go_text, value)) + "]"
    return _encode(value).decode() if quote and isinstance(value, str) else str(value)
