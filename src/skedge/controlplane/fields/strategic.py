"""Strategic merge patch: merge lists by key, with the `$` directives.

Upstream: `apimachinery/pkg/util/strategicpatch/patch.go`. Which lists merge, and by which key, is in the field table
(patchStrategy, patchMergeKey). Directives: `$patch: delete|replace|merge` in an object or list item,
`$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`, `$retainKeys`. An unmatched null in a patch disappears.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from skedge.controlplane.fields.applied import go_text
from skedge.controlplane.fields.errors import REJECTED, PatchError
from skedge.controlplane.fields.structured import child_type
from skedge.controlplane.fields.table import Field, Obj, Shape, Type, table

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
SET_ORDER = "$setElementOrder/"

BAD_PRIMITIVE_LIST = "invalid patch format of primitive list"
BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
BAD_SET_ORDER = "invalid patch format of setElementOrder list"
RETAIN_KEYS_MISMATCH = "patch content doesn't match retainKeys list"
LISTS_OF_LISTS = "lists of lists are not supported"

_NONE: Any = object()


def strategic_merge(gvk: str, original: Obj, patch: Any) -> Obj:
    """`original` with the patch merged in; changes neither, shares unchanged parts. `PatchError` for a bad patch."""
    if not isinstance(patch, dict):
        raise PatchError("invalid JSON document")
    return _merge_objects(original, patch, table().kind(gvk))


def _merge_objects(original: Obj, patch: Obj, type: Type | None) -> Obj:
    if DIRECTIVE in patch:
        return _whole_object(patch)
    out = dict(original)
    patch = dict(patch)
    _retain_keys(out, patch)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        _merge_ordered(out, patch, key, type)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            _delete_from_list(out, key.removeprefix(DELETE_FROM), value)
        elif value is None:
            out.pop(key, None)
        else:
            out[key] = _merge_member(out.get(key), value, type, key)
    return out


def _merge_member(was: Any, value: Any, type: Type | None, key: str) -> Any:
    """The new value of a member; `was` is None where the original has none."""
    field = type.fields.get(key) if type is not None and type.shape is Shape.STRUCT else None
    if isinstance(was, dict) and isinstance(value, dict):
        if field is not None and "replace" in field.strategies:
            return value
        return _merge_objects(was, value, child_type(type, key) if type is not None else None)
    if isinstance(was, list) and isinstance(value, list):
        if field is None or "merge" not in field.strategies:
            return value
        return _merge_lists(was, value, field)
    return _clean(value)


def _whole_object(patch: Obj) -> Obj:
    """`$patch: replace` and `delete` in an object."""
    what = patch[DIRECTIVE]
    rest = {key: value for key, value in patch.items() if key != DIRECTIVE}
    if what == "replace":
        return rest
    if what == "delete":
        return {}
    raise _bad_directive(what, patch)


def _bad_directive(what: Any, patch: Obj) -> PatchError:
    return PatchError(f"unknown patch type: {go_text(what)} in map: {go_text(patch)}", 500)


def _retain_keys(out: Obj, patch: Obj) -> None:
    """Drop from `out` all keys that `$retainKeys` does not name."""
    keys = patch.pop(RETAIN_KEYS, _NONE)
    if keys is _NONE:
        return
    if not isinstance(keys, list):
        raise PatchError(BAD_RETAIN_KEYS)
    directives = (DELETE_FROM, SET_ORDER)
    kept = set(map(_hashed, keys))
    if any(value is not None and key not in kept and not key.startswith(directives) for key, value in patch.items()):
        raise PatchError(REJECTED, 422, RETAIN_KEYS_MISMATCH)
    for key in [key for key in out if key not in kept]:
        del out[key]


def _delete_from_list(out: Obj, key: str, values: Any) -> None:
    if not isinstance(values, list):
        raise PatchError(BAD_PRIMITIVE_LIST)
    if isinstance(out.get(key), list):
        gone = set(map(_hashed, values))
        out[key] = [item for item in out[key] if _hashed(item) not in gone]


def _clean(value: Any) -> Any:
    """A patch value that meets nothing in the original: without nulls and directives."""
    if isinstance(value, dict):
        return {
            key: _clean(item)
            for key, item in value.items()
            if item is not None and key not in (DIRECTIVE, RETAIN_KEYS) and not key.startswith((SET_ORDER, DELETE_FROM))
        }
    if isinstance(value, list):
        return [_clean(item) for item in value if not (isinstance(item, dict) and item.get(DIRECTIVE) == "delete")]
    return value


def _merge_lists(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    merged = _merge_items(original, patch, field)
    return _in_order(merged, patch, original, _identity(merged, patch, field))


def _merge_items(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    """Items of both, those with the same key merged, not yet in order."""
    if not original and not patch:
        return original
    sample = (original or patch)[0]
    if isinstance(sample, list):
        raise PatchError(REJECTED, 422, LISTS_OF_LISTS)
    if not isinstance(sample, dict):
        return _unique(original + patch)
    if not field.merge_key:
        raise PatchError(f"cannot merge lists without merge key for {field.type.elem.name}", 500)
    return _merge_objects_by_key(original, patch, field.merge_key, field.type.elem)


def _unique(items: list[Any]) -> list[Any]:
    return list({_hashed(item): item for item in reversed(items)}.values())[::-1]


def _hashed(value: Any) -> Hashable:
    """What may stand for a value in sets: patches of tens of thousands of items are compared with lists as long."""
    return msgspec.json.encode(value, order="sorted") if isinstance(value, dict | list) else value


def _merge_objects_by_key(original: list[Any], patch: list[Any], merge_key: str, type: Type) -> list[Any]:
    plain: list[Obj] = []
    gone: set[Hashable] = set()
    replace = False
    for item in patch:
        if not isinstance(item, dict):
            raise PatchError("list element types are not identical", 500)
        what = item.get(DIRECTIVE, _NONE)
        if what is _NONE:
            plain.append(item)
        elif what == "delete":
            gone.add(_hashed(_key_of(item, merge_key)))
        elif what == "replace":
            replace = True
        elif what == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch", 500)
        else:
            raise _bad_directive(what, item)
    if replace:
        return [_clean(item) for item in plain]
    out = [have for have in original if _hashed(_key_of(have, merge_key)) not in gone] if gone else list(original)
    places: dict[Hashable, int] = {}
    for i, have in enumerate(out if plain else ()):
        places.setdefault(_hashed(_key_of(have, merge_key)), i)
    for item in plain:
        at = places.setdefault(_hashed(_key_of(item, merge_key)), len(out))
        if at == len(out):
            out.append(_clean(item))
        else:
            out[at] = _merge_objects(out[at], item, type)
    return out


def _key_of(item: Any, merge_key: str) -> Any:
    if not isinstance(item, dict) or merge_key not in item:
        raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}", 500)
    return item[merge_key]


def _merge_ordered(out: Obj, patch: Obj, directive: str, type: Type | None) -> None:
    """Merge a list together with its `$setElementOrder` and take both off the patch."""
    order = patch.pop(directive)
    key = directive.removeprefix(SET_ORDER)
    if not isinstance(order, list):
        raise PatchError(BAD_SET_ORDER)
    was, value = out.get(key), patch.get(key)
    if not isinstance(was, list) and not isinstance(value, list):
        return
    field = type.fields.get(key) if type is not None else None
    if field is None or field.type.shape is not Shape.LIST:
        raise PatchError(f"unable to find api field in struct for the json field {key!r}", 500)
    for items in (was, value):
        if items is not None and not isinstance(items, list):
            raise PatchError(BAD_SET_ORDER)
    patch.pop(key, None)
    if isinstance(value, list):
        _check_order(value, order, field)
    if not isinstance(was, list):
        merged = _clean(value)
    elif not isinstance(value, list):
        merged = was
    elif "merge" not in field.strategies:
        merged = value
    else:
        merged = _merge_items(was, value, field)
    deleted = patch.pop(DELETE_FROM + key, None)
    if deleted is not None:
        rest = {key: merged}
        _delete_from_list(rest, key, deleted)
        merged = rest[key]
    out[key] = _in_order(merged, order, was or [], _identity(merged, order, field))


def _identity(merged: list[Any], order: list[Any], field: Field) -> Callable[[Any], Any]:
    """What makes two items the same: the merge key of objects, the value of anything else."""
    if any(isinstance(item, dict) for item in (*merged, *order)) and field.merge_key:
        merge_key = field.merge_key
        return lambda item: item.get(merge_key, item) if isinstance(item, dict) else item
    return lambda item: item


def _check_order(patch: list[Any], order: list[Any], field: Field) -> None:
    """Items of the patch must stand in the order that the directive gives."""
    identity = _identity(patch, order, field)
    kept = [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    names = [identity(item) for item in order]
    at = 0
    for item in kept:
        name = identity(item)
        while at < len(names) and names[at] != name:
            at += 1
        if at == len(names):
            what = (
                f"The order in patch list:\n{go_text(patch)}\n doesn't match {SET_ORDER[:-1]} list:\n{go_text(order)}\n"
            )
            raise PatchError(what, 500)
        at += 1


def _in_order(merged: list[Any], order: list[Any], original: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """Items that `order` names in its order, the others in the original's, woven together along the original's."""
    wanted, before = _places(order, identity), _places(original, identity)
    end = len(original)

    def place(item: Any) -> int:
        return before.get(_hashed(identity(item)), end)

    named = [(wanted[name], item) for item in merged if (name := _hashed(identity(item))) in wanted]
    named.sort(key=lambda pair: pair[0])
    others = deque(sorted((item for item in merged if _hashed(identity(item)) not in wanted), key=place))
    out: list[Any] = []
    for _, item in named:
        here = place(item)
        while others and here < end and place(others[0]) < here:
            out.append(others.popleft())
        out.append(item)
    return [*out, *others]


def _places(items: list[Any], identity: Callable[[Any], Any]) -> dict[Hashable, int]:
    """Where each item stands first."""
    places: dict[Hashable, int] = {}
    for i, item in enumerate(items):
        places.setdefault(_hashed(identity(item)), i)
    return places
