"""Properties over generated objects of every kind."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from skedge.controlplane import fields
from skedge.controlplane.fields import sets
from skedge.controlplane.fields.ownership import _changes
from skedge.controlplane.fields.structured import applied_paths
from skedge.controlplane.fields.table import Shape, Type, table

from .generate import kinds, make, mutate, seeds

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
many = settings(max_examples=100, deadline=None)


def twice(gvk: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = Random(seed)
    old = make(gvk, rng)
    return old, mutate(table().kind(gvk), old, rng)


def naive_patch(old: dict[str, Any], new: dict[str, Any], type: Type) -> dict[str, Any]:
    """The slow and simple patch: nested structs one by one, all else deleted or replaced whole."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, now in new.items():
        was = old.get(key)
        if was == now:
            continue
        field = type.fields[key]
        if key in old and field.type.shape is Shape.STRUCT and "replace" not in field.strategies:
            patch[key] = naive_patch(was, now, field.type)
        elif key in old and isinstance(now, dict) and "replace" not in field.strategies:
            patch[key] = {"$patch": "replace", **now}
        elif key in old and "merge" in field.strategies and field.merge_key:
            patch[key] = [*now, {"$patch": "replace", field.merge_key: ""}]
        elif key in old and "merge" in field.strategies:
            patch[f"$deleteFromPrimitiveList/{key}"] = [item for item in was if item not in now]
            patch[f"$setElementOrder/{key}"] = now
            patch[key] = now
        else:
            patch[key] = now
    return patch


@many
@given(kinds, seeds)
def test_strategic_merge_of_a_naive_patch(gvk: str, seed: int) -> None:
    old, new = twice(gvk, seed)
    before = copy.deepcopy(old)
    assert fields.strategic_merge(gvk, old, naive_patch(old, new, table().kind(gvk))) == new
    assert old == before


@many
@given(kinds, seeds)
def test_strategic_merge_of_a_two_way_diff(gvk: str, seed: int) -> None:
    old, new = twice(gvk, seed)
    patch = fields.two_way_strategic_diff(gvk, old, new)
    assert fields.strategic_merge(gvk, old, patch) == new
    assert (patch == {}) == (old == new)


@many
@given(kinds, seeds)
def test_unknown_fields_finds_what_was_injected(gvk: str, seed: int) -> None:
    rng = Random(seed)
    obj = make(gvk, rng)
    assert fields.unknown_fields(gvk, obj) == []
    assert fields.validate_types(gvk, obj) == []
    found: set[str] = set()

    def inject(value: Any, type: Type, path: str) -> None:
        if type.shape is Shape.LIST:
            for i, item in enumerate(value):
                inject(item, type.elem, f"{path}[{i}]")
        elif type.shape in (Shape.STRUCT, Shape.MAP):
            for key in list(value):
                child = type.fields[key].type if type.shape is Shape.STRUCT else type.elem
                inject(value[key], child, f"{path}.{key}" if path else key)
            if type.shape is Shape.STRUCT and rng.random() < 0.3:
                value["bogus"] = rng.choice((1, {"x": 1}, []))
                found.add(f'unknown field "{path}.bogus"' if path else 'unknown field "bogus"')

    inject(obj, table().kind(gvk), "")
    got = fields.unknown_fields(gvk, obj)
    assert set(got) == found if len(found) <= 100 else len(got) == 100
    assert len(got) == len(set(got))


def owned(obj: dict[str, Any], manager: str) -> dict[str, Any]:
    entries = obj["metadata"].get("managedFields", [])
    return next((entry["fieldsV1"] for entry in entries if entry["manager"] == manager), {})


def dense(value: Any) -> Any:
    """Without managedFields and empty containers: one that is emptied and one that is not there are the same in Go."""
    if isinstance(value, dict):
        out = {key: dense(item) for key, item in value.items() if key != "managedFields"}
        return {key: item for key, item in out.items() if item not in ({}, [])}
    return [dense(item) for item in value] if isinstance(value, list) else value


@many
@given(kinds, seeds)
def test_apply_twice_is_no_change(gvk: str, seed: int) -> None:
    obj = make(gvk, Random(seed))
    once = fields.apply(gvk, None, obj, "me", False, NOW)
    if "managedFields" in once["metadata"]:  # else it owns nothing, and the object counts as made by somebody else
        assert fields.apply(gvk, once, obj, "me", False, LATER) == once


@many
@given(kinds, seeds)
def test_apply_of_a_change_leads_there(gvk: str, seed: int) -> None:
    """Sole applier: after the second apply, the applier's fields are those of the second configuration."""
    old, new = twice(gvk, seed)
    once = fields.apply(gvk, None, old, "me", False, NOW)
    then = fields.apply(gvk, once, new, "me", False, LATER)
    fresh = fields.apply(gvk, None, new, "me", False, LATER)
    assert owned(then, "me") == owned(fresh, "me")
    if not owned(once, "me"):  # what it did not own, it cannot take away
        return
    changed, removed = _changes(gvk, dense(fresh), dense(then), "")
    assert changed == {}, "something stayed that was applied before and is not now"
    assert not sets.intersection(removed, owned(fresh, "me"))


@many
@given(kinds, seeds)
def test_disjoint_appliers_do_not_conflict(gvk: str, seed: int) -> None:
    rng = Random(seed)
    obj = make(gvk, rng)
    fixed = {key: obj[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": "x"}}
    halves: list[dict[str, Any]] = [copy.deepcopy(fixed), copy.deepcopy(fixed)]
    for key in obj:
        if isinstance(obj[key], dict) and table().kind(gvk).fields[key].type.shape is Shape.STRUCT:
            for name, item in obj[key].items():
                atomic = table().kind(gvk).fields[key].type.atomic
                halves[0 if atomic else rng.randrange(2)].setdefault(key, {})[name] = item
        elif key not in fixed:
            halves[rng.randrange(2)][key] = obj[key]
    one = fields.apply(gvk, None, halves[0], "one", False, NOW)
    both = fields.apply(gvk, one, halves[1], "two", False, LATER)
    assert owned(both, "one") == owned(one, "one")
    alone = fields.apply(gvk, both, fixed, "one", False, LATER)
    assert owned(alone, "one") == {}
    assert owned(alone, "two") == owned(both, "two")


@many
@given(kinds, seeds)
def test_apply_over_another(gvk: str, seed: int) -> None:
    old, new = twice(gvk, seed)
    once = fields.apply(gvk, None, old, "me", False, NOW)
    forced = fields.apply(gvk, once, new, "you", True, LATER)
    mine = owned(forced, "you")
    assert not sets.difference(mine, applied_paths(new, table().kind(gvk)))
    taken = sets.difference(owned(once, "me"), owned(forced, "me"))
    if taken:
        with pytest.raises(fields.ApplyConflict) as caught:
            fields.apply(gvk, once, new, "you", False, LATER)
        assert {cause.field for cause in caught.value.causes} <= set(sets.paths(taken))
    else:
        assert fields.apply(gvk, once, new, "you", False, LATER) == forced


@many
@given(kinds, seeds)
def test_update_owns_what_it_changed(gvk: str, seed: int) -> None:
    old, new = twice(gvk, seed)
    old["metadata"]["managedFields"] = fields.track_update(gvk, None, old, "creator", NOW)
    new["metadata"].pop("managedFields", None)
    entries = fields.track_update(gvk, old, new, "updater", LATER)
    new["metadata"]["managedFields"] = entries
    if not old["metadata"]["managedFields"]:
        assert entries == []
        return
    changed, removed = _changes(gvk, old, new, "")
    for entry in entries:
        assert not sets.intersection(entry["fieldsV1"], removed)
        if entry["manager"] == "creator":
            assert not sets.intersection(entry["fieldsV1"], changed)
    assert fields.track_update(gvk, new, new, "third", LATER) == entries


@many
@given(kinds, seeds)
def test_set_algebra(gvk: str, seed: int) -> None:
    old, new = twice(gvk, seed)
    kind = table().kind(gvk)
    a, b = applied_paths(old, kind), applied_paths(new, kind)
    pa, pb = set(sets.paths(a)), set(sets.paths(b))
    assert set(sets.paths(sets.union(a, b))) == pa | pb
    assert set(sets.paths(sets.intersection(a, b))) == pa & pb
    assert set(sets.paths(sets.difference(a, b))) == pa - pb
    assert sets.ordered(sets.union(sets.difference(a, b), sets.intersection(a, b))) == sets.ordered(a)
