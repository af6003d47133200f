"""Objects seen through the field table: which fields an object has, what changed, merge of an applied configuration.

Upstream: `sigs.k8s.io/structured-merge-diff/typed` (compare, merge, tofieldset, remove). An item of a list is
identified by its key fields (`k:`) or, in sets, by its value (`v:`); atomic lists and maps are leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from skedge.controlplane.fields.sets import SELF
from skedge.controlplane.fields.table import Obj, Shape, Type

KEY_DEFAULTS: Obj = {"protocol": "TCP"}
"""Defaults of list key fields (container and service ports): items are found before defaults are filled in."""

_encode = msgspec.json.Encoder(order="sorted").encode
_NONE: Any = object()


def element(item: Any, list_type: Type) -> str:
    """The path element of a list item; ValueError with upstream's text where it has none."""
    if not list_type.keys:
        return "v:" + _encode(item).decode()
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise ValueError(f"associative list with keys may not have {what}")
    keys = {key: item.get(key, KEY_DEFAULTS.get(key)) for key in list_type.keys if key in item or key in KEY_DEFAULTS}
    if not keys:
        names = " ".join(f'"{key}"' for key in list_type.keys)
        text = f"omits all key fields [{names}] (and doesn't have default values for any key fields)"
        raise ValueError(f"associative list with keys has an element that {text}")
    return "k:" + _encode(keys).decode()


def _children(value: Any, type: Type) -> Iterator[tuple[str, Any, Type]]:
    """Path element, value and type of each child. Fields that the struct does not have and odd items are left out."""
    shape = type.shape
    if shape is Shape.LIST:
        for item in value:
            try:
                yield element(item, type), item, type.elem
            except ValueError:
                continue
    elif shape is Shape.STRUCT:
        fields = type.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is not None:
                yield field.set_key, item, field.type
    else:
        for name, item in value.items():
            yield "f:" + name, item, type.elem


def is_leaf(value: Any, type: Type) -> bool:
    """Whether apply sees the value as one: scalars, atomic types, and anything empty."""
    if type.atomic or type.shape is Shape.SCALAR or not value:
        return True
    return value.__class__ is not (list if type.shape is Shape.LIST else dict)


def all_paths(value: Any, type: Type) -> Obj:
    """The node of a value that is wholly new: every path in it, containers included."""
    if is_leaf(value, type):
        return {}
    out: Obj = {SELF: {}}
    if type.shape is Shape.STRUCT:  # the common case, spelled out: this is the hot path of a create
        fields = type.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is not None:
                child = field.type
                out[field.set_key] = {} if child.shape is Shape.SCALAR else all_paths(item, child)
        return out
    for key, item, child in _children(value, type):
        out[key] = {} if child.shape is Shape.SCALAR else all_paths(item, child)
    return out


def applied_paths(value: Any, type: Type) -> Obj:
    """The set of an applied configuration: leaves, list items, map keys; not the structs and maps on the way."""
    out: Obj = {}
    shape = type.shape
    for key, item, child in _children(value, type):
        if is_leaf(item, child):
            if not (child.shape is Shape.LIST and item == [] and not child.atomic):
                out[key] = {}
            continue
        node = applied_paths(item, child)
        if shape is not Shape.STRUCT:
            out[key] = {SELF: {}, **node} if node else {}
        elif node:
            out[key] = node
    return out


def compare(old: Any, new: Any, type: Type, zero: Obj | None = None) -> tuple[Obj, Obj]:
    """(added or modified, removed) between two values of one type; both must be containers of that type.

    `zero`: what the server writes even when it is not set (`zero.py`), taken as present on both sides.
    """
    changed: Obj = {}
    removed: Obj = {}
    if zero:
        old, new = {**zero, **old}, {**zero, **new}
    if type.shape is not Shape.LIST:
        _compare_maps(old, new, type, zero, changed, removed)
        return changed, removed
    before, after = _by_element(old, type), _by_element(new, type)
    for key, items in after.items():
        was = before.get(key)
        if was is None:
            changed[key] = all_paths(items[0], type.elem)
        elif len(was) > 1 or len(items) > 1:
            if was != items:
                changed[key] = {}
        else:
            _compare_child(key, was[0], items[0], type.elem, None, changed, removed)
    for key, items in before.items():
        if key not in after:
            removed[key] = all_paths(items[0], type.elem)
    return changed, removed


def _compare_maps(old: Obj, new: Obj, type: Type, zero: Obj | None, changed: Obj, removed: Obj) -> None:
    fields = type.fields if type.shape is Shape.STRUCT else None
    for name, item in new.items():
        was = old.get(name, _NONE)
        if was is item:
            continue
        if fields is None:
            key, child = "f:" + name, type.elem
        elif (field := fields.get(name)) is not None:
            key, child = field.set_key, field.type
        else:
            continue
        if was is _NONE:
            changed[key] = all_paths(item, child)
        else:
            _compare_child(key, was, item, child, zero, changed, removed, name)
    for name, was in old.items():
        if name not in new:
            if fields is None:
                removed["f:" + name] = all_paths(was, type.elem)
            elif (field := fields.get(name)) is not None:
                removed[field.set_key] = all_paths(was, field.type)


def _compare_child(
    key: str, was: Any, now: Any, type: Type, zero: Obj | None, changed: Obj, removed: Obj, name: str = ""
) -> None:
    if was == now:
        return
    if type.atomic or type.shape is Shape.SCALAR:
        changed[key] = {}
        return
    kind = list if type.shape is Shape.LIST else dict
    before = was if was.__class__ is kind else kind()
    after = now if now.__class__ is kind else kind()
    below = zero.get(name) if zero else None
    if not before and not after and not below:
        changed[key] = {}
        return
    changed_below, removed_below = compare(before, after, type, below if isinstance(below, dict) else None)
    if changed_below:
        changed[key] = changed_below
    if removed_below:
        removed[key] = removed_below


def _by_element(items: list[Any], type: Type) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for key, item, _ in _children(items, type):
        out.setdefault(key, []).append(item)
    return out


def merge(live: Any, applied: Any, type: Type) -> Any:
    """`live` with the applied configuration merged in; shares unchanged parts, changes neither."""
    if type.atomic or type.shape is Shape.SCALAR:
        return applied
    if not applied:
        return live if live else applied
    if is_leaf(live, type):
        return applied
    if type.shape is Shape.LIST:
        return _merge_lists(live, applied, type)
    out = dict(live)
    for name, item in applied.items():
        child = child_type(type, name)
        was = out.get(name, _NONE)
        out[name] = item if was is _NONE or child is None else merge(was, item, child)
    return out


def child_type(type: Type, name: str) -> Type | None:
    """The type of a member of a struct (None: it has no such field) or map."""
    if type.shape is not Shape.STRUCT:
        return type.elem
    field = type.fields.get(name)
    return field.type if field is not None else None


def _merge_lists(live: list[Any], applied: list[Any], type: Type) -> list[Any]:
    """Shared items stand in the applied order, items of `live` alone near the items they followed."""
    live_keys = [element(item, type) for item in live]
    applied_keys = [element(item, type) for item in applied]
    live_items = dict(zip(live_keys, live, strict=True))
    applied_items = dict(zip(applied_keys, applied, strict=True))
    shared = iter([key for key in applied_keys if key in live_items])
    expected = next(shared, None)
    out: list[Any] = []
    done: set[str] = set()
    at, taken = 0, 0
    while at < len(live) or taken < len(applied):
        if at < len(live):
            key = live_keys[at]
            if key not in applied_items:
                out.append(live[at])
                at += 1
                continue
            early = taken < len(applied) and expected is not None and key not in (expected, applied_keys[taken])
            if early or key in done:  # placed where the applied order has it
                at += 1
                continue
        if taken < len(applied):
            key = applied_keys[taken]
            if at < len(live) and live_keys[at] == key:
                at += 1
            item = applied_items[key]
            out.append(merge(live_items[key], item, type.elem) if key in live_items else item)
            done.add(key)
            taken += 1
            if key == expected:
                expected = next(shared, None)
    return out


def remove(value: Any, paths: Obj, type: Type) -> Any:
    """`value` without the members of `paths`, and without what becomes empty by that. Shares unchanged parts."""
    if is_leaf(value, type):
        return value

    def left(key: str, item: Any, child: Type) -> Any:
        node = paths.get(key, _NONE)
        if node is _NONE:
            return item
        if not node or SELF in node:
            return _NONE
        kept = remove(item, node, child)
        return _NONE if kept in ({}, []) and item else kept

    if type.shape is Shape.LIST:
        return [kept for item in value if (kept := left(_element_or_empty(item, type), item, type.elem)) is not _NONE]
    out: Obj = {}
    for name, item in value.items():
        child = child_type(type, name)
        kept = item if child is None else left("f:" + name, item, child)
        if kept is not _NONE:
            out[name] = kept
    return out


def _element_or_empty(item: Any, type: Type) -> str:
    try:
        return element(item, type)
    except ValueError:
        return ""
