"""What a real API server answered, case by case: ownership, patches, apply, strict decoding."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from skedge.controlplane import fields

DATA = Path(__file__).parents[3] / "data" / "fields" / "recorded.json.gz"
CASES: list[dict[str, Any]] = json.loads(gzip.decompress(DATA.read_bytes()))


def cases(*ops: str, failed: bool = False) -> Any:
    chosen = [case for case in CASES if case["op"] in ops and ("error" in case) == failed]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=[f"{case['op']}-{case['name']}" for case in chosen])


def comparable(obj: dict[str, Any], *, subresource: str = "") -> dict[str, Any]:
    """Without what the server sets after the patch, and what the endpoint resets."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "resourceVersion", "generation")}
    body = {key: value for key, value in obj.items() if key not in ("metadata", "spec" if subresource else "status")}
    return {**body, "metadata": meta}


def patched(case: dict[str, Any]) -> dict[str, Any]:
    match case["op"]:
        case "json":
            return fields.json_patch(case["old"], case["body"])
        case "merge":
            return fields.json_merge(case["old"], case["body"])
        case "strategic":
            return fields.strategic_merge(case["gvk"], case["old"], case["body"])
        case _:
            return case["body"]


@cases("create")
def test_create_is_tracked(case: dict[str, Any]) -> None:
    got = fields.track_update(case["gvk"], None, case["new"], case["manager"], case["now"], case["subresource"])
    assert got == case["managedFields"]


@cases("json", "merge", "strategic", "put")
def test_update_is_tracked(case: dict[str, Any]) -> None:
    brought = patched(case)["metadata"].get("managedFields")
    new = {**case["new"], "metadata": {**case["new"]["metadata"], "managedFields": brought}}
    got = fields.track_update(case["gvk"], case["old"], new, case["manager"], case["now"], case["subresource"])
    assert got == case["managedFields"]


@cases("json", "merge", "strategic")
def test_patch(case: dict[str, Any]) -> None:
    before = json.dumps(case["old"])
    got = comparable(patched(case), subresource=case["subresource"])
    assert got == comparable(case["new"], subresource=case["subresource"])
    assert json.dumps(case["old"]) == before


def with_defaults_of(got: Any, new: Any) -> Any:
    """What the server's defaulting adds after an apply, taken from its answer."""
    if isinstance(got, dict) and isinstance(new, dict):
        return {**new, **{key: with_defaults_of(value, new.get(key)) for key, value in got.items()}}
    if isinstance(got, list) and isinstance(new, list) and len(got) == len(new):
        return [with_defaults_of(a, b) for a, b in zip(got, new, strict=True)]
    return got


@cases("apply")
def test_apply(case: dict[str, Any]) -> None:
    got = fields.apply(
        case["gvk"], case["old"], case["body"], case["manager"], case["force"], case["now"], case["subresource"]
    )
    assert got["metadata"].get("managedFields", []) == case["managedFields"]
    assert with_defaults_of(comparable(got), comparable(case["new"])) == comparable(case["new"])
    gone = set(case["old"]["metadata"] if case["old"] else ()) - set(got["metadata"])
    assert gone == set(case["old"]["metadata"] if case["old"] else ()) - set(case["new"]["metadata"])


@cases("apply", failed=True)
def test_apply_conflict(case: dict[str, Any]) -> None:
    with pytest.raises(fields.ApplyConflict) as caught:
        fields.apply(case["gvk"], case["old"], case["body"], case["manager"], case["force"], "")
    error = case["error"]
    assert (caught.value.message, caught.value.code, caught.value.reason) == (
        error["message"],
        error["code"],
        error["reason"],
    )
    assert [cause._asdict() for cause in caught.value.causes] == error["details"]["causes"]


@cases("json", failed=True)
def test_json_patch_failure(case: dict[str, Any]) -> None:
    with pytest.raises(fields.PatchError) as caught:
        fields.json_patch(case["old"], case["body"])
    error = case["error"]
    assert (caught.value.message, caught.value.code, caught.value.reason) == (
        error["message"],
        error["code"],
        error["reason"],
    )


@cases("strict")
def test_unknown_fields(case: dict[str, Any]) -> None:
    assert ", ".join(fields.unknown_fields(case["gvk"], case["body"])) == case["errors"]


@cases("types")
def test_types(case: dict[str, Any]) -> None:
    assert fields.validate_types(case["gvk"], case["body"])[0] == case["errors"]


def test_recorded_objects_are_clean() -> None:
    """Whatever the server itself wrote has no unknown fields and no wrong types."""
    objects = [(case["gvk"], case["new"]) for case in CASES if "new" in case]
    assert [fields.unknown_fields(gvk, obj) + fields.validate_types(gvk, obj) for gvk, obj in objects] == [
        [] for _ in objects
    ]


def test_directive_in_an_atomic_list_is_a_field() -> None:
    node = {"metadata": {"name": "n1"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    got = fields.strategic_merge("v1/Node", node, {"spec": {"taints": [{"$patch": "replace"}]}})
    assert fields.unknown_fields("v1/Node", got) == ['unknown field "spec.taints[0].$patch"']
