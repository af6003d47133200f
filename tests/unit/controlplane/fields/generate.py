"""Objects of real kinds, drawn from the field table."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import strategies as st

from skedge.controlplane.fields.table import Shape, Type, table

KINDS = sorted(gvk for gvk in table().kinds if "metadata" in table().kind(gvk).fields)
NAMES = ("a", "b", "c", "d")
FIXED = ("apiVersion", "kind", "name")
SERVER_SET = (
    "managedFields",
    "selfLink",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
)


def scalar(type: Type, rng: Random) -> Any:
    if type.name.startswith("integer"):
        return rng.choice((0, 1, 2, 80))
    if type.name == "boolean":
        return rng.choice((True, False))
    if type.name == "string:byte":
        return rng.choice(("YQ==", "YWI="))
    if type.name in ("apis.meta.v1.Time", "apis.meta.v1.MicroTime"):
        return rng.choice(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.000000Z"))
    if type.name == "api.resource.Quantity":
        return rng.choice(("1", "250m", "1Gi"))
    return rng.choice(NAMES)


def value(type: Type, rng: Random, depth: int) -> Any:
    """A value without nulls; items of lists differ in their keys, merge keys included."""
    match type.shape:
        case Shape.SCALAR:
            return scalar(type, rng)
        case Shape.ANY:
            return rng.choice(({}, {"x": 1}, {"x": {"y": [1, 2]}}))
        case Shape.MAP:
            return {name: value(type.elem, rng, depth - 1) for name in rng.sample(NAMES, rng.randint(0, 2))}
        case Shape.LIST:
            return items(type, "", rng, depth)
        case Shape.STRUCT:
            return struct(type, rng, depth)


def items(type: Type, merge_key: str, rng: Random, depth: int) -> list[Any]:
    out: list[Any] = []
    keys = set(type.keys) | ({merge_key} if merge_key else set())
    for n in rng.sample(range(4), rng.randint(0, 3)):
        item = value(type.elem, rng, depth - 1)
        for key in keys:
            field = type.elem.fields[key]
            item[key] = 8000 + n if field.type.name.startswith("integer") else NAMES[n]
        if type.elem.shape is Shape.SCALAR and item in out:
            continue
        out.append(item)
    return out


def struct(type: Type, rng: Random, depth: int) -> dict[str, Any]:
    names = [name for name in type.fields if name not in SERVER_SET or type.name != "apis.meta.v1.ObjectMeta"]
    if depth <= 0:
        names = [name for name in names if type.fields[name].type.shape is Shape.SCALAR]
    out: dict[str, Any] = {}
    for name in rng.sample(names, min(len(names), rng.randint(0, 4))):
        field = type.fields[name]
        if field.type.shape is Shape.LIST:
            out[name] = items(field.type, field.merge_key, rng, depth - 1)
        else:
            out[name] = value(field.type, rng, depth - 1)
    return out


def make(gvk: str, rng: Random) -> dict[str, Any]:
    out = struct(table().kind(gvk), rng, 7)
    for name in ("spec", "status", "template", "metadata"):
        if name in table().kind(gvk).fields and rng.random() < 0.8:
            out[name] = struct(table().kind(gvk).fields[name].type, rng, 7)
    version, _, kind = gvk.rpartition("/")
    return {**out, "apiVersion": version, "kind": kind, "metadata": {**out.get("metadata", {}), "name": "x"}}


def mutate(type: Type, was: Any, rng: Random, merge_key: str = "") -> Any:
    """Another value of the type that has most of `was`."""
    if type.shape is Shape.STRUCT:
        out = {}
        for name, item in was.items():
            field = type.fields[name]
            if rng.random() < 0.85 or name in (merge_key, *FIXED, "metadata"):
                keep = name in (merge_key, *FIXED) or rng.random() < 0.3
                out[name] = item if keep else mutate(field.type, item, rng, field.merge_key)
        for name, item in struct(type, rng, 3).items():
            out.setdefault(name, item)
        return out
    if type.shape is Shape.MAP:
        out = {name: mutate(type.elem, item, rng) for name, item in was.items() if rng.random() < 0.8}
        return {**value(type, rng, 3), **out}
    if type.shape is Shape.LIST:
        protected = merge_key or (type.keys[0] if type.keys else "")
        kept = [mutate(type.elem, item, rng, protected) for item in was if rng.random() < 0.8]
        if type.elem.shape is Shape.STRUCT and protected:
            have = {item[protected] for item in kept}
            kept += [i for i in items(type, merge_key, rng, 3) if i[protected] not in have]
        elif type.elem.shape is Shape.SCALAR:
            kept = list(dict.fromkeys(kept + items(type, "", rng, 3)))
        rng.shuffle(kept)
        return kept
    return scalar(type, rng) if type.shape is Shape.SCALAR else copy.deepcopy(was)


kinds = st.sampled_from(KINDS)
seeds = st.integers(0, 2**32)
