"""Strategic merge: lists by key, directives, refusals."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skedge.controlplane import fields
from skedge.controlplane.fields import strategic
from skedge.controlplane.fields.errors import REJECTED

POD = "v1/Pod"


def spec(**body: Any) -> dict[str, Any]:
    return {"spec": body}


def names(*items: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in items]


MERGED: list[tuple[str, str, Any, Any, Any]] = [
    (
        "list with merge key",
        POD,
        spec(containers=[{"name": "a", "image": "x", "tty": True}, {"name": "b"}]),
        spec(containers=[{"name": "a", "image": "y"}]),
        spec(containers=[{"name": "a", "image": "y", "tty": True}, {"name": "b"}]),
    ),
    (
        "atomic list",
        POD,
        spec(tolerations=[{"key": "a"}]),
        spec(tolerations=[{"key": "b"}]),
        spec(tolerations=[{"key": "b"}]),
    ),
    ("null deletes", POD, spec(nodeName="n", priority=1), spec(nodeName=None), spec(priority=1)),
    (
        "unmatched null disappears",
        POD,
        {},
        {"metadata": {"labels": {"a": None, "b": "1"}}},
        {"metadata": {"labels": {"b": "1"}}},
    ),
    (
        "labels merge",
        POD,
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"b": "2"}}},
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
    ),
    (
        "delete an item",
        POD,
        spec(containers=names("a", "b")),
        spec(containers=[{"$patch": "delete", "name": "a"}]),
        spec(containers=names("b")),
    ),
    (
        "replace a list",
        POD,
        spec(containers=names("a", "b", image="x")),
        spec(containers=[*names("c"), {"$patch": "replace"}]),
        spec(containers=names("c")),
    ),
    (
        "replace an object",
        POD,
        spec(nodeName="n", priority=1),
        spec(**{"$patch": "replace", "nodeName": "m"}),
        spec(nodeName="m"),
    ),
    ("delete an object", POD, spec(nodeName="n"), spec(**{"$patch": "delete"}), {"spec": {}}),
    (
        "set element order",
        POD,
        spec(containers=names("a", "b", "x")),
        spec(**{"$setElementOrder/containers": names("b", "c", "a"), "containers": names("c")}),
        spec(containers=names("b", "c", "a", "x")),
    ),
    (
        "order alone",
        POD,
        spec(containers=names("a", "b")),
        spec(**{"$setElementOrder/containers": names("b", "a")}),
        spec(containers=names("b", "a")),
    ),
    (
        "primitive list",
        POD,
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["c", "a", "b"]}},
    ),
    (
        "delete from a primitive list",
        POD,
        {"metadata": {"finalizers": ["a", "b", "c"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "z"], "$setElementOrder/finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["c", "a"]}},
    ),
    (
        "retain keys",
        "apps/v1/Deployment",
        spec(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        spec(strategy={"$retainKeys": ["type"], "type": "Recreate"}),
        spec(strategy={"type": "Recreate"}),
    ),
    (
        "retain keys in a list",
        POD,
        spec(volumes=[{"name": "v", "emptyDir": {}}]),
        spec(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]),
        spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
    ),
    (
        "replace strategy",
        "policy/v1/PodDisruptionBudget",
        spec(selector={"matchLabels": {"a": "1"}}),
        spec(selector={"matchLabels": {"b": "1"}}),
        spec(selector={"matchLabels": {"b": "1"}}),
    ),
    (
        "directives are dropped from what is new",
        POD,
        {},
        spec(containers=[{"name": "a", "$patch": "replace"}], **{"$retainKeys": []}),
        spec(containers=names("a")),
    ),
    (
        "conditions of a status",
        POD,
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}]}},
    ),
]
REFUSED: list[tuple[str, Any, Any, int, str]] = [
    ("no object", {}, [], 400, "invalid JSON document"),
    (
        "no merge key",
        spec(containers=names("a")),
        spec(containers=[{"image": "x"}]),
        500,
        "map: map[image:x] does not contain declared merge key: name",
    ),
    (
        "unknown directive",
        spec(nodeName="n"),
        spec(**{"$patch": "wat"}),
        500,
        "unknown patch type: wat in map: map[$patch:wat]",
    ),
    (
        "merge in a list",
        spec(containers=names("a")),
        spec(containers=[{"$patch": "merge", "name": "a"}]),
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    (
        "primitive list",
        {"metadata": {"finalizers": ["a"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        400,
        strategic.BAD_PRIMITIVE_LIST,
    ),
    ("order", spec(containers=names("a")), spec(**{"$setElementOrder/containers": "a"}), 400, strategic.BAD_SET_ORDER),
    ("retain keys", spec(nodeName="a"), spec(**{"$retainKeys": "a"}), 400, strategic.BAD_RETAIN_KEYS),
    ("retain keys mismatch", spec(nodeName="a"), spec(**{"$retainKeys": ["priority"], "nodeName": "b"}), 422, REJECTED),
]


@pytest.mark.parametrize(("gvk", "original", "patch", "want"), [c[1:] for c in MERGED], ids=[c[0] for c in MERGED])
def test_merged(gvk: str, original: Any, patch: Any, want: Any) -> None:
    before = copy.deepcopy((original, patch))
    assert fields.strategic_merge(gvk, original, patch) == want
    assert (original, patch) == before


@pytest.mark.parametrize(("original", "patch", "code", "text"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(original: Any, patch: Any, code: int, text: str) -> None:
    with pytest.raises(fields.PatchError) as caught:
        fields.strategic_merge(POD, original, patch)
    assert (caught.value.code, caught.value.message) == (code, text)


def test_order_of_patch_must_match_the_directive() -> None:
    patch = spec(**{"$setElementOrder/containers": names("a", "b"), "containers": names("b", "a")})
    with pytest.raises(fields.PatchError, match="doesn't match \\$setElementOrder list"):
        fields.strategic_merge(POD, spec(containers=names("a")), patch)


def test_diff_of_a_deployment() -> None:
    old = spec(
        replicas=3,
        template={"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]}},
    )
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 5
    new["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "300m"
    assert fields.two_way_strategic_diff("apps/v1/Deployment", old, new) == spec(
        replicas=5,
        template={
            "spec": {
                "$setElementOrder/containers": [{"name": "c"}],
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}],
            }
        },
    )


def test_long_lists_are_looked_up_not_searched() -> None:
    """Each item compared with each other takes minutes here."""
    count = 20_000
    many = [f"c{i}" for i in range(count)]
    had = {"metadata": {"finalizers": many}, **spec(containers=names(*many, image="x"))}
    changed = names(*many[: count // 2], image="y")
    gone = [{"name": name, "$patch": "delete"} for name in many[count // 2 :]]
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": many[1:]},
        **spec(containers=[*changed, *gone, {"name": "new"}]),
    }
    merged = fields.strategic_merge(POD, had, patch)
    assert merged == {"metadata": {"finalizers": ["c0"]}, **spec(containers=[*changed, {"name": "new"}])}
    order = {"$setElementOrder/containers": names(*reversed(many))}
    assert fields.strategic_merge(POD, had, spec(**order)) == {
        **had,
        **spec(containers=had["spec"]["containers"][::-1]),
    }


def test_unknown_kind() -> None:
    with pytest.raises(fields.UnknownKind, match="no kind 'v1/Nope' in the field table"):
        fields.strategic_merge("v1/Nope", {}, {})
