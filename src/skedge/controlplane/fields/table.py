"""The field table: every served kind as a graph of types, loaded once from the packaged schema.

A `Type` is a position in an object: a scalar, a struct with named fields, a map, a list, or `ANY` (free-form JSON).
`Field` adds what the parent says about it. Lists and maps carry how server-side apply sees them (`atomic`, or by
element); fields carry how strategic merge sees them. These differ in places, as upstream's do.
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
from enum import Enum
from typing import Any

import msgspec

from skedge.controlplane.fields.errors import UnknownKind

Obj = dict[str, Any]
"""A JSON object."""


FREE_FORM = frozenset({"runtime.RawExtension", "apis.meta.v1.FieldsV1"})
"""Types that hold any JSON. Other types without fields are empty structs."""


class Shape(Enum):
    """What JSON stands at a position."""

    SCALAR = "scalar"
    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    ANY = "any"


class Type:
    """One position of an object.

    `name` is the schema's type name ("core.v1.PodSpec") for named types, the JSON type and format ("integer:int32")
    for plain scalars, empty for lists and maps. `atomic`: owned and replaced as a whole by apply. `keys`: the key
    fields of a list whose items are found by them; a list that is neither atomic nor keyed is a set.
    """

    __slots__ = ("atomic", "elem", "fields", "keys", "name", "shape")

    def __init__(
        self,
        shape: Shape,
        name: str = "",
        *,
        atomic: bool = False,
        keys: tuple[str, ...] = (),
        elem: Type | None = None,
    ) -> None:
        self.shape = shape
        self.name = name
        self.atomic = atomic
        self.keys = keys
        self.elem: Type = elem if elem is not None else self
        self.fields: dict[str, Field] = {}

    def with_atomic(self, atomic: bool) -> Type:
        """The same type as a field that overrides its `mapType` sees it."""
        if atomic == self.atomic:
            return self
        clone = Type(self.shape, self.name, atomic=atomic, keys=self.keys, elem=self.elem)
        clone.fields = self.fields  # shared: filled in after the clone is made
        return clone

    def __repr__(self) -> str:
        return f"Type({self.shape.value}, {self.name or self.elem.name!r})"


class Field:
    """A named field of a struct; `set_key` is its name in a field set (`f:name`)."""

    __slots__ = ("merge_key", "name", "required", "set_key", "strategies", "type")

    def __init__(self, name: str, type: Type, required: bool, merge_key: str, strategies: frozenset[str]) -> None:
        self.name = name
        self.type = type
        self.required = required
        self.merge_key = merge_key
        self.strategies = strategies
        self.set_key = "f:" + name


class Table:
    """`types` by schema name, `kinds` by "group/version/Kind" ("v1/Pod" for the core group)."""

    def __init__(self, raw: Obj) -> None:
        self.raw: Obj = raw
        self.types: dict[str, Type] = {name: _declare(name, spec) for name, spec in raw["types"].items()}
        for name, spec in raw["types"].items():
            self.types[name].fields.update(
                (field, self._field(field, body)) for field, body in spec.get("fields", {}).items()
            )
        self.kinds: dict[str, Type] = {gvk: self.types[name] for gvk, name in raw["kinds"].items()}

    def kind(self, gvk: str) -> Type:
        """The type of a kind, or `UnknownKind`."""
        try:
            return self.kinds[gvk]
        except KeyError:
            raise UnknownKind(gvk) from None

    def _field(self, name: str, spec: Obj) -> Field:
        strategies = frozenset(s for s in spec.get("patchStrategy", "").split(",") if s)
        return Field(
            name, self._type(spec["type"], spec), spec.get("required", False), spec.get("patchMergeKey", ""), strategies
        )

    def _type(self, ref: str | Obj, spec: Obj) -> Type:
        if isinstance(ref, str):
            named = self.types.get(ref)
            if named is None:
                return Type(Shape.SCALAR, ref)
            return named.with_atomic(spec["mapType"] == "atomic") if "mapType" in spec else named
        if "map" in ref:
            return Type(Shape.MAP, atomic=spec.get("mapType") == "atomic", elem=self._type(ref["map"], {}))
        how = spec.get("listType", "atomic")
        keys = tuple(spec["listMapKeys"]) if how == "map" else ()
        return Type(Shape.LIST, atomic=how == "atomic", keys=keys, elem=self._type(ref["list"], {}))


def _declare(name: str, spec: Obj) -> Type:
    scalar = spec.get("scalar")
    if name in FREE_FORM:
        return Type(Shape.ANY, name, atomic=True)
    if scalar is not None and scalar != "object":
        return Type(Shape.SCALAR, name)
    return Type(Shape.STRUCT, name, atomic=spec.get("mapType") == "atomic")


@functools.cache
def table() -> Table:
    """The table of the served kinds; loaded at the first call."""
    packed = importlib.resources.files(__package__).joinpath("schema.json.gz").read_bytes()
    return Table(msgspec.json.decode(gzip.decompress(packed)))
