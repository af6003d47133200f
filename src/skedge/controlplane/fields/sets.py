"""Sets of field paths, in the form in which they are stored: the JSON of a `FieldsV1`.

A set is a dict from path element to node. An element is `f:<field or map key>`, `k:<JSON of list keys>` or
`v:<JSON of a set item>`; `.` in a node says that the node's own path is a member, and so does an empty node. No node is
just `{".": {}}`. Sets are values: no function here changes one.

Upstream: `sigs.k8s.io/structured-merge-diff/fieldpath`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from skedge.controlplane.fields.table import Obj, Shape, Type

SELF = "."

_encode = msgspec.json.Encoder().encode
_ELEMENT_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


def union(a: Obj, b: Obj) -> Obj:
    """Members of either."""
    out = dict(a)
    for element, node in b.items():
        mine = out.get(element)
        if mine is None:
            out[element] = node
        elif mine is not node:
            out[element] = _union_node(mine, node)
    return out


def _union_node(a: Obj, b: Obj) -> Obj:
    if not a:
        return b if not b or SELF in b else {SELF: {}, **b}
    if not b:
        return a if SELF in a else {SELF: {}, **a}
    return union(a, b)


def difference(a: Obj, b: Obj) -> Obj:
    """Members of `a` that are not members of `b`. Paths below a member count for themselves."""
    if not b:
        return a
    out: Obj = {}
    for element, node in a.items():
        other = b.get(element)
        if other is None:
            out[element] = node
        elif element != SELF:
            left = _node(difference(node, other), _is_member(node) and not _is_member(other))
            if left is not None:
                out[element] = left
    return out


def intersection(a: Obj, b: Obj) -> Obj:
    """Members of both."""
    out: Obj = {}
    for element, node in a.items():
        other = b.get(element)
        if other is not None and element != SELF:
            left = _node(intersection(node, other), _is_member(node) and _is_member(other))
            if left is not None:
                out[element] = left
    return out


def _is_member(node: Obj) -> bool:
    return not node or SELF in node


def _node(children: Obj, member: bool) -> Obj | None:
    """A node of the given children (a `.` among them does not count), or None where nothing is left."""
    if SELF in children:
        children = {element: node for element, node in children.items() if element != SELF}
    if not member:
        return children or None
    return {SELF: {}, **children} if children else {}


def without(a: Obj, path: tuple[str, ...]) -> Obj:
    """`a` less the path and everything below it."""
    head, rest = path[0], path[1:]
    node = a.get(head)
    if node is None or (rest and not node):
        return a
    out = {element: child for element, child in a.items() if element != head}
    if rest:
        left = without(node, rest)
        if left:
            out[head] = left if len(left) > 1 or SELF not in left else {}
    return out


def with_named_fields(a: Obj, type: Type) -> Obj:
    """`a` and the struct fields on the way to its members; map keys and list items on the way are not added.

    Upstream's `EnsureNamedFieldsAreMembers`: a struct field goes when all that an applier had in it goes.
    """
    out: Obj = {}
    struct = type.shape is Shape.STRUCT
    for element, node in a.items():
        if not node:
            out[element] = node
            continue
        field = type.fields.get(element[2:]) if struct else None
        child = with_named_fields(node, field.type if field is not None else type.elem)
        out[element] = {SELF: {}, **child} if field is not None else child
    return out


def ordered(a: Obj) -> Obj:
    """The same set with elements in the order in which the server writes them."""
    return {element: ordered(a[element]) if a[element] else {} for element in sorted(a)}


def is_field_set(value: object) -> bool:
    """Whether `value` has the form of a set (entries of a request may not)."""
    return isinstance(value, dict) and all(_is_element(key) and is_field_set(node) for key, node in value.items())


def _is_element(text: str) -> bool:
    kind, body = text[:2], text[2:]
    if kind == "f:" or text == SELF:
        return True
    if kind == "i:":
        return body.isascii() and body.isdigit()
    if kind not in ("k:", "v:"):
        return False
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return False
    return kind == "v:" or isinstance(decoded, dict)


def paths(a: Obj, prefix: str = "") -> Iterator[str]:
    """The members as the server prints them, `.spec.containers[name="c"].image`, members of a level before deeper."""
    elements = sorted((e for e in a if e != SELF), key=lambda e: (_ELEMENT_ORDER[e[0]], e))
    for element in elements:
        if _is_member(a[element]):
            yield prefix + element_text(element)
    for element in elements:
        if a[element]:
            yield from paths(a[element], prefix + element_text(element))


def element_text(element: str) -> str:
    """`.name`, `[name="c"]`, `[="v"]` or `[0]`."""
    kind, body = element[:2], element[2:]
    if kind == "f:":
        return "." + body
    if kind == "k:":
        keys = msgspec.json.decode(body)
        return "[" + ",".join(f"{name}={_encode(keys[name]).decode()}" for name in sorted(keys)) + "]"
    return f"[={body}]" if kind == "v:" else f"[{body}]"
