"""RFC 6902 and RFC 7386, as the server applies them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skedge.controlplane import fields
from skedge.controlplane.fields.errors import REJECTED

APPLIED: list[tuple[str, Any, list[dict[str, Any]], Any]] = [
    ("add member", {"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ("add replaces", {"a": 1}, [{"op": "add", "path": "/a", "value": [1]}], {"a": [1]}),
    ("add to array", {"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ("add at end index", {"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
    ("append", {"a": [1]}, [{"op": "add", "path": "/a/-", "value": [2]}], {"a": [1, [2]]}),
    ("add null", {}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
    ("add whole document", {"a": 1}, [{"op": "add", "path": "", "value": {"b": 1}}], {"b": 1}),
    ("escapes", {"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
    ("escape order", {"~1": 1}, [{"op": "test", "path": "/~01", "value": 1}], {"~1": 1}),
    ("empty key", {"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
    ("remove from array", {"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/1"}], {"a": [1, 3]}),
    ("negative index", {"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ("replace in array", {"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
    ("move", {"a": {"x": 1}, "b": {}}, [{"op": "move", "from": "/a/x", "path": "/b/y"}], {"a": {}, "b": {"y": 1}}),
    ("move in array", {"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
    ("copy", {"a": {"x": [1]}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": [1]}, "b": {"x": [1]}}),
    (
        "copy is apart",
        {"a": [1]},
        [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}],
        {"a": [1], "b": [1, 2]},
    ),
    ("test equal", {"a": {"x": 1.0}}, [{"op": "test", "path": "/a", "value": {"x": 1}}], {"a": {"x": 1.0}}),
    ("test absent is null", {}, [{"op": "test", "path": "/a", "value": None}], {}),
    ("extra members", {"a": 1}, [{"op": "remove", "path": "/a", "xyz": 1}], {}),
    ("no operations", {"a": 1}, [], {"a": 1}),
]
REFUSED: list[tuple[str, Any, list[dict[str, Any]]]] = [
    ("add below nothing", {}, [{"op": "add", "path": "/a/b", "value": 1}]),
    ("add past the end", {"a": [1]}, [{"op": "add", "path": "/a/3", "value": 1}]),
    ("add without value", {}, [{"op": "add", "path": "/a"}]),
    ("add below a scalar", {"a": 1}, [{"op": "add", "path": "/a/b", "value": 1}]),
    ("not an index", {"a": [1]}, [{"op": "add", "path": "/a/x", "value": 1}]),
    ("remove nothing", {}, [{"op": "remove", "path": "/a"}]),
    ("replace nothing", {}, [{"op": "replace", "path": "/a", "value": 1}]),
    ("move nothing", {}, [{"op": "move", "from": "/a", "path": "/b"}]),
    ("test other", {"a": 1}, [{"op": "test", "path": "/a", "value": 2}]),
    ("test true is not 1", {"a": 1}, [{"op": "test", "path": "/a", "value": True}]),
    ("test string is not number", {"a": "1"}, [{"op": "test", "path": "/a", "value": 1}]),
    ("unknown operation", {}, [{"op": "spam", "path": "/a"}]),
    ("no path", {}, [{"op": "add", "value": 1}]),
    ("no slash", {}, [{"op": "add", "path": "a", "value": 1}]),
]


@pytest.mark.parametrize(("original", "ops", "want"), [case[1:] for case in APPLIED], ids=[c[0] for c in APPLIED])
def test_applied(original: Any, ops: list[dict[str, Any]], want: Any) -> None:
    before = copy.deepcopy(original)
    assert fields.json_patch(original, ops) == want
    assert original == before


@pytest.mark.parametrize(("original", "ops"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(original: Any, ops: list[dict[str, Any]]) -> None:
    with pytest.raises(fields.PatchError) as caught:
        fields.json_patch(original, ops)
    assert (caught.value.code, caught.value.message) == (422, REJECTED)
    assert caught.value.detail != REJECTED


@pytest.mark.parametrize(
    ("ops", "code", "message"),
    [
        ({"op": "add"}, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (["x"], 400, "json: cannot unmarshal string into Go value of type jsonpatch.Operation"),
        (
            [{"op": "add", "path": "/a", "value": 1}] * 10_001,
            413,
            "Request entity is too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
    ],
)
def test_no_patch(ops: Any, code: int, message: str) -> None:
    with pytest.raises(fields.PatchError) as caught:
        fields.json_patch({}, ops)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("original", "patch", "want"),
    [  # the table of RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(original: Any, patch: Any, want: Any) -> None:
    before = copy.deepcopy(original)
    assert fields.json_merge(original, patch) == want
    assert original == before
