"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386).

Upstream: `github.com/evanphx/json-patch` as the patch handler calls it (`apiserver/pkg/endpoints/handlers/patch.go`):
a patch that is not a list of operations is answered with 400, one that cannot be applied with a 422 that does not
say why (`PatchError.detail` does). Array indices may be negative; `test` of an absent member equals null.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from skedge.controlplane.fields.errors import REJECTED, PatchError

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 << 20
"""Bytes that the copy operations of one patch may add: each could double the document."""


def json_patch(original: Any, ops: Any) -> Any:
    """`original` with the operations applied in order; the original is left alone. `PatchError` otherwise."""
    if not isinstance(ops, list):
        raise PatchError(f"json: cannot unmarshal {_kind(ops)} into Go value of type jsonpatch.Patch")
    if len(ops) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}"
        raise PatchError(f"Request entity is too large: {text}", 413)
    for op in ops:
        if not isinstance(op, dict):
            raise PatchError(f"json: cannot unmarshal {_kind(op)} into Go value of type jsonpatch.Operation")
    doc = copy.deepcopy(original)
    room = MAX_COPIED
    for op in ops:
        try:
            if op.get("op") == "copy":
                room -= len(msgspec.json.encode(_get(doc, _pointer(op, "from"))))
                if room < 0:
                    raise _Failed(f"copies add more than {MAX_COPIED} bytes")
            doc = _apply(doc, op)
        except _Failed as err:
            raise PatchError(REJECTED, 422, str(err)) from None
    return doc


def json_merge(original: Any, patch: Any) -> Any:
    """`original` with the merge patch applied: null removes, objects merge, everything else replaces.

    Shares unchanged parts with the original, which is left alone.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = json_merge(merged.get(key), value)
    return merged


class _Failed(Exception):
    """An operation that cannot be applied; the text says which and why."""


_MISSING: Any = object()


def _apply(doc: Any, op: dict[str, Any]) -> Any:
    kind = op.get("op")
    path = _pointer(op, "path")
    if kind in ("add", "replace", "test"):
        value = op.get("value", _MISSING)
        if kind == "test":
            return _test(doc, path, None if value is _MISSING else value)
        if value is _MISSING:
            raise _Failed(f"{kind} operation for path {op['path']!r} has no value")
        value = copy.deepcopy(value)
        return _add(doc, path, value) if kind == "add" else _replace(doc, path, value)
    if kind == "remove":
        return _remove(doc, path)
    if kind == "move":
        source = _pointer(op, "from")
        value = _get(doc, source)
        return _add(_remove(doc, source), path, value)
    if kind == "copy":
        return _add(doc, path, copy.deepcopy(_get(doc, _pointer(op, "from"))))
    raise _Failed(f"unexpected kind: {kind}")


def _pointer(op: dict[str, Any], key: str) -> list[str]:
    text = op.get(key)
    if not isinstance(text, str):
        raise _Failed(f"operation {op.get('op')!r} has no {key!r}")
    if text == "":
        return []
    if not text.startswith("/"):
        raise _Failed(f"{key} {text!r} does not start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _step(node: Any, part: str, *, missing_ok: bool = False) -> Any:
    """The member of `node` that one reference token names."""
    if isinstance(node, dict) and part in node:
        return node[part]
    if isinstance(node, list):
        return node[_index(node, part)]
    if missing_ok and isinstance(node, dict):
        return _MISSING
    raise _Failed(f"no member {part!r}")


def _index(node: list[Any], part: str, *, end: int = 0) -> int:
    """An existing index of `node`, negative ones counted from the end; `end`: 1 where one past the last is meant."""
    digits = part[1:] if part.startswith("-") else part
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise _Failed(f"{part!r} is not an array index")
    index = int(part)
    if index < 0:
        index += len(node) + end
    if not 0 <= index < len(node) + end:
        raise _Failed(f"index {part} is out of bounds of an array of {len(node)}")
    return index


def _get(doc: Any, path: list[str]) -> Any:
    for part in path:
        doc = _step(doc, part)
    return doc


def _add(doc: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(doc, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else _index(parent, path[-1], end=1), value)
    else:
        raise _Failed(f"cannot add {path[-1]!r} to a {_kind(parent)}")
    return doc


def _replace(doc: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(doc, path[:-1])
    _step(parent, path[-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        parent[_index(parent, path[-1])] = value
    return doc


def _remove(doc: Any, path: list[str]) -> Any:
    if not path:
        raise _Failed("cannot remove the whole document")
    parent = _get(doc, path[:-1])
    _step(parent, path[-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[_index(parent, path[-1])]
    return doc


def _test(doc: Any, path: list[str], value: Any) -> Any:
    found = doc
    if path:
        found = _step(_get(doc, path[:-1]), path[-1], missing_ok=True)
        if found is _MISSING:
            found = None
    if not _same(found, value):
        raise _Failed(f"testing value /{'/'.join(path)} failed")
    return doc


def _same(a: Any, b: Any) -> bool:
    """JSON equality: true is not 1, 1.0 is 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _kind(value: Any) -> str:
    """What Go calls the JSON type."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"
