"""How Go writes each type: the order of fields, which are left out when empty, and their protobuf numbers.

Facts about the struct definitions of `staging/src/k8s.io/{api,apimachinery}` (field order, `omitempty`, pointer or
value, `protobuf` tags), packaged as `data/gotypes.json.gz`: {type: {field: mode + numbers}}. Modes:

- `v` always written, as its zero value if need be (a struct by value, or no `omitempty`)
- `n` always written, null when absent (a pointer without `omitempty`)
- `e` left out when empty or zero (a value with `omitempty`)
- `p` left out only when absent (a pointer with `omitempty`)

Two numbers stand for a field of an inlined struct that is a message of its own in protobuf.
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
from typing import NamedTuple

import msgspec

from skedge.controlplane.fields.table import Type


class GoField(NamedTuple):
    """One field: its JSON name, type, mode, and protobuf number path (empty: not in protobuf)."""

    name: str
    type: Type
    mode: str
    numbers: tuple[int, ...]


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    packed = importlib.resources.files("skedge.controlplane").joinpath("data/gotypes.json.gz").read_bytes()
    table: dict[str, dict[str, str]] = msgspec.json.decode(gzip.decompress(packed))
    return table


_plans: dict[str, tuple[GoField, ...]] = {}


def plan(type_: Type) -> tuple[GoField, ...]:
    """The fields of a struct type in Go's order; `kind` and `apiVersion` of embedded objects come first."""
    found = _plans.get(type_.name)
    if found is None:
        found = _plans[type_.name] = _plan(type_)
    return found


def _plan(type_: Type) -> tuple[GoField, ...]:
    known = _table().get(type_.name, {})
    fields = [GoField(name, field.type, "e", ()) for name, field in type_.fields.items() if name not in known]
    for name, text in known.items():
        numbers = tuple(int(n) for n in text[1:].split(".") if n != "0")
        fields.append(GoField(name, type_.fields[name].type, text[0], numbers))
    return tuple(fields)
