"""The strategic merge patch that leads from one object to another, as kubectl makes it.

Upstream: `strategicpatch.CreateTwoWayMergePatch`. Its property: `strategic_merge(gvk, old, patch) == new`, for objects
whose merge lists have no two items with the same merge key. A null stands for absence: a member that is null in `new`
is deleted.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.fields.strategic import DELETE_FROM, DIRECTIVE, RETAIN_KEYS, SET_ORDER
from skedge.controlplane.fields.structured import child_type
from skedge.controlplane.fields.table import Field, Obj, Shape, Type, table


def two_way_strategic_diff(gvk: str, old: Obj, new: Obj) -> Obj:
    """The patch from `old` to `new`; empty where they are equal."""
    return _objects(old, new, table().kind(gvk))


def _objects(old: Obj, new: Obj, type: Type | None) -> Obj:
    patch: Obj = {}
    for key, was in old.items():
        now = new.get(key)
        if was == now:
            continue
        if now is None:
            patch[key] = None
            continue
        field = type.fields.get(key) if type is not None and type.shape is Shape.STRUCT else None
        if isinstance(was, dict) and isinstance(now, dict):
            if field is not None and "replace" in field.strategies:
                patch[key] = now
                continue
            below = _objects(was, now, child_type(type, key) if type is not None else None)
            if field is not None and "retainKeys" in field.strategies and below:
                below[RETAIN_KEYS] = sorted(name for name, value in now.items() if value is not None)
            patch[key] = below
        elif isinstance(was, list) and isinstance(now, list) and field is not None and "merge" in field.strategies:
            _lists(was, now, field, patch)
        else:
            patch[key] = now
    patch.update((key, now) for key, now in new.items() if now is not None and key not in old)
    return patch


def _lists(old: list[Any], new: list[Any], field: Field, patch: Obj) -> None:
    """Put the change of a merge list into `patch`: items, deletions, order."""
    key = field.name
    if not field.merge_key:
        added = [item for item in new if item not in old]
        gone = [item for item in old if item not in new]
        if added:
            patch[key] = added
        if gone:
            patch[DELETE_FROM + key] = gone
        patch[SET_ORDER + key] = new
        return
    merge_key = field.merge_key
    before = {item[merge_key]: item for item in old}
    after = {item[merge_key]: item for item in new}
    retain = "retainKeys" in field.strategies
    items: list[Obj] = []
    for name, item in after.items():
        was = before.get(name)
        change = item if was is None else _objects(was, item, field.type.elem)
        if change and was is not None:
            change = {**change, merge_key: name}
            if retain:
                change[RETAIN_KEYS] = sorted(key for key, value in item.items() if value is not None)
        if change:
            items.append(change)
    items += [{DIRECTIVE: "delete", merge_key: name} for name in before if name not in after]
    if items:
        patch[key] = items
    patch[SET_ORDER + key] = [{merge_key: name} for name in after]
