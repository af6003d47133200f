"""Stories of several managers: apply, conflicts, takeover, tracking."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane import fields
from skedge.controlplane.fields.entries import decode

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
DEPLOYMENT = "apps/v1/Deployment"


def config(gvk: str = DEPLOYMENT, **body: Any) -> dict[str, Any]:
    version, _, kind = gvk.rpartition("/")
    meta = {"name": "web", "namespace": "default", **body.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **body}


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(items)}}}


def fields_of(obj: dict[str, Any], manager: str) -> Any:
    found = [entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ()) if entry["manager"] == manager]
    return found[0] if found else None


def test_two_appliers_share_a_list_by_key() -> None:
    one = fields.apply(DEPLOYMENT, None, config(spec=containers({"name": "a", "image": "x"})), "one", False, NOW)
    both = fields.apply(DEPLOYMENT, one, config(spec=containers({"name": "b", "image": "y"})), "two", False, LATER)
    assert [item["name"] for item in both["spec"]["template"]["spec"]["containers"]] == ["a", "b"]
    left = fields.apply(DEPLOYMENT, both, config(), "one", False, LATER)
    assert left["spec"]["template"]["spec"]["containers"] == [{"name": "b", "image": "y"}]
    assert fields_of(left, "one") is None


def test_a_shared_field_stays_until_nobody_applies_it() -> None:
    labels = config(metadata={"labels": {"x": "1"}})
    obj = fields.apply(DEPLOYMENT, None, labels, "one", False, NOW)
    obj = fields.apply(DEPLOYMENT, obj, labels, "two", False, LATER)
    obj = fields.apply(DEPLOYMENT, obj, config(), "one", False, LATER)
    assert obj["metadata"]["labels"] == {"x": "1"}
    obj = fields.apply(DEPLOYMENT, obj, config(), "two", False, LATER)
    assert "labels" not in obj["metadata"]


def test_defaults_below_what_is_still_applied_stay() -> None:
    """Only what was applied is taken back; what others or defaulting put beside it stays."""
    obj = fields.apply(
        DEPLOYMENT, None, config(spec=containers({"name": "a", "image": "x", "tty": True})), "me", False, NOW
    )
    obj["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    obj = fields.apply(DEPLOYMENT, obj, config(spec=containers({"name": "a", "image": "x"})), "me", False, LATER)
    assert obj["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "x", "imagePullPolicy": "Always"}]


def test_conflicts_are_listed_by_manager() -> None:
    obj = fields.apply(
        DEPLOYMENT, None, config(spec={"replicas": 1, **containers({"name": "a", "image": "x"})}), "me", False, NOW
    )
    obj["metadata"]["managedFields"] = fields.track_update(
        DEPLOYMENT, obj, {**obj, "spec": {**obj["spec"], "paused": True}}, "kubectl-edit", LATER
    )
    obj["spec"]["paused"] = True
    other = config(spec={"replicas": 2, "paused": False, **containers({"name": "a", "image": "y"})})
    with pytest.raises(fields.ApplyConflict) as caught:
        fields.apply(DEPLOYMENT, obj, other, "other", False, LATER)
    assert caught.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "kubectl-edit" using apps/v1:\n- .spec.paused\n'
        'conflicts with "me":\n- .spec.replicas\n- .spec.template.spec.containers[name="a"].image'
    )
    assert caught.value.causes[0] == fields.Cause(
        "FieldManagerConflict", 'conflict with "kubectl-edit" using apps/v1', ".spec.paused"
    )
    forced = fields.apply(DEPLOYMENT, obj, other, "other", True, LATER)
    assert forced["spec"]["replicas"] == 2
    assert fields_of(forced, "kubectl-edit") is None
    assert "f:replicas" not in fields_of(forced, "me")["f:spec"]


def test_same_value_is_no_conflict_and_no_change() -> None:
    applied = config(metadata={"labels": {"x": "1"}})
    obj = fields.apply(DEPLOYMENT, None, applied, "one", False, NOW)
    both = fields.apply(DEPLOYMENT, obj, applied, "two", False, LATER)
    entry = next(entry for entry in both["metadata"]["managedFields"] if entry["manager"] == "two")
    assert "time" not in entry


def test_apply_to_an_untracked_object_names_who_was_there() -> None:
    live = config(metadata={"labels": {"x": "1"}}, spec={"replicas": 1})
    obj = fields.apply(DEPLOYMENT, live, config(spec={"replicas": 1}), "me", False, NOW)
    assert fields_of(obj, "before-first-apply") == {
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        "f:spec": {"f:replicas": {}},
    }
    with pytest.raises(fields.ApplyConflict, match=r'with "before-first-apply" using apps/v1: \.spec\.replicas'):
        fields.apply(DEPLOYMENT, live, config(spec={"replicas": 2}), "me", False, NOW)


def test_atomic_and_set_lists() -> None:
    pod = config(
        "v1/Pod", metadata={"finalizers": ["a.b/c"]}, spec={"nodeSelector": {"x": "1"}, "tolerations": [{"key": "a"}]}
    )
    obj = fields.apply("v1/Pod", None, pod, "me", False, NOW)
    assert fields_of(obj, "me") == {
        "f:metadata": {"f:finalizers": {'v:"a.b/c"': {}}},
        "f:spec": {"f:nodeSelector": {}, "f:tolerations": {}},
    }
    with pytest.raises(fields.ApplyConflict) as caught:
        fields.apply("v1/Pod", obj, config("v1/Pod", spec={"tolerations": [{"key": "b"}]}), "you", False, LATER)
    assert [cause.field for cause in caught.value.causes] == [".spec.tolerations"]
    more = fields.apply("v1/Pod", obj, config("v1/Pod", metadata={"finalizers": ["d.e/f"]}), "you", False, LATER)
    assert more["metadata"]["finalizers"] == ["a.b/c", "d.e/f"]


def test_port_key_takes_the_default_protocol() -> None:
    pod = config("v1/Pod", spec={"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]})
    obj = fields.apply("v1/Pod", None, pod, "me", False, NOW)
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in str(obj["metadata"]["managedFields"])
    obj["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    assert fields.apply("v1/Pod", obj, pod, "me", False, LATER)["spec"] == obj["spec"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"spec": {"foo": 1}}, ".spec.foo: field not declared in schema"),
        ({"spec": {"replicas": "2"}}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"spec": {"paused": "no"}}, ".spec.paused: expected boolean, got &{no}"),
        (
            {"spec": containers({"name": "a", "env": [{"name": "N", "value": 1}]})},
            '.spec.template.spec.containers[name="a"].env[name="N"].value: '
            "expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            {"spec": containers({"name": "a"}, {"name": "a"})},
            '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
        ({"spec": 1, "x": 2}, "errors:\n  .spec: expected map, got &{1}\n  .x: field not declared in schema"),
        (
            {"spec": containers({"image": "a"})},
            ".spec.template.spec.containers: element 0: associative list with keys has an element that omits all key "
            'fields ["name"] (and doesn\'t have default values for any key fields)',
        ),
    ],
)
def test_configuration_that_does_not_fit(body: dict[str, Any], text: str) -> None:
    with pytest.raises(fields.TypedPatchError) as caught:
        fields.apply(DEPLOYMENT, None, config(**body), "me", False, NOW)
    prefix = "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
    assert (caught.value.message, caught.value.code) == (prefix + text, 500)


def test_managed_fields_may_not_be_applied() -> None:
    applied = config(metadata={"managedFields": [{"manager": "x"}]})
    with pytest.raises(fields.PatchError, match=r"metadata\.managedFields must be nil"):
        fields.apply(DEPLOYMENT, None, applied, "me", False, NOW)


def test_kubectl_takes_over_what_client_side_apply_set() -> None:
    last = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1}}'
    live = config(
        metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": last}},
        spec={"replicas": 1, "paused": True},
    )
    live["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, None, live, "kubectl-client-side-apply", NOW)
    obj = fields.apply(DEPLOYMENT, live, config(spec={"replicas": 2}), "kubectl", False, LATER)
    assert obj["spec"]["replicas"] == 2
    assert obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] == (
        '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},'
        '"spec":{"replicas":2}}\n'
    )
    with pytest.raises(fields.ApplyConflict, match=r"\.spec\.paused"):
        fields.apply(DEPLOYMENT, live, config(spec={"paused": False}), "kubectl", False, LATER)


def test_stored_object_with_an_item_without_key() -> None:
    live = config(spec=containers({"image": "x"}))
    with pytest.raises(fields.TypedPatchError, match="failed to create typed live object: associative list"):
        fields.apply(DEPLOYMENT, live, config(spec=containers({"name": "a"})), "me", False, NOW)


@pytest.mark.parametrize(
    ("live", "applied", "want"),
    [
        ("ab", "ba", "ba"),
        ("abx", "ba", "bxa"),
        ("xab", "ab", "xab"),
        ("axb", "ab", "axb"),
        ("ab", "acb", "acb"),
        ("abc", "xc", "abxc"),
        ("xyz", "ab", "xyzab"),
        ("", "ab", "ab"),
        ("dcba", "abcd", "abcd"),
    ],
)
def test_order_of_a_merged_list(live: str, applied: str, want: str) -> None:
    """Shared items in the applied order; the others keep what stood before them as far as that goes."""

    def pod(names: str) -> dict[str, Any]:
        return config("v1/Pod", spec={"containers": [{"name": name} for name in names]})

    got = fields.apply("v1/Pod", pod(live), pod(applied), "me", True, NOW)
    assert "".join(item["name"] for item in got["spec"]["containers"]) == want


def test_updates_move_ownership() -> None:
    old = config(spec={"replicas": 1, "paused": True})
    old["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, None, old, "a", NOW)
    new = config(spec={"replicas": 2, "minReadySeconds": 1})
    new["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, old, new, "b", LATER)
    assert fields_of(new, "a") is None
    assert fields_of(new, "b") == {"f:spec": {"f:minReadySeconds": {}, "f:replicas": {}}}
    same = fields.track_update(DEPLOYMENT, new, new, "c", LATER)
    assert same == new["metadata"]["managedFields"]


def test_status_and_scale_are_kept_apart() -> None:
    old = config(spec={"replicas": 1}, status={})
    old["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, None, old, "a", NOW)
    status = {**old, "spec": {"replicas": 9}, "status": {"replicas": 1}}
    entries = fields.track_update(DEPLOYMENT, old, status, "a", LATER, "status")
    assert [(e.get("subresource"), e["fieldsV1"]) for e in entries] == [
        (None, {"f:spec": {"f:replicas": {}}}),
        ("status", {"f:status": {"f:replicas": {}}}),
    ]
    scaled = {**old, "spec": {"replicas": 7}}
    assert fields.track_update(DEPLOYMENT, old, scaled, "kubectl", LATER, "scale") == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
            "subresource": "scale",
        }
    ]


def test_what_a_request_says_of_managed_fields() -> None:
    old = config(spec={"replicas": 1})
    old["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, None, old, "a", NOW)
    reset = config(metadata={"managedFields": [{}]}, spec={"replicas": 1})
    assert fields.track_update(DEPLOYMENT, old, reset, "b", LATER) == []
    broken = config(metadata={"managedFields": [{"manager": "x", "operation": "Nope"}]}, spec={"replicas": 1})
    assert fields.track_update(DEPLOYMENT, old, broken, "b", LATER) == old["metadata"]["managedFields"]
    assert fields.track_update(DEPLOYMENT, config(spec={}), reset, "b", LATER) == []


def test_only_ten_updaters_are_kept_apart() -> None:
    obj = config(metadata={"labels": {"n": "x"}})
    obj["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, None, obj, "m0", f"{NOW[:-3]}00Z")
    for n in range(1, 14):
        labels = {**obj["metadata"]["labels"], f"n{n}": "x"}
        new = {**obj, "metadata": {**obj["metadata"], "labels": labels}}
        new["metadata"]["managedFields"] = fields.track_update(DEPLOYMENT, obj, new, f"m{n}", f"{NOW[:-3]}{n:02}Z")
        obj = new
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", *(f"m{n}" for n in range(5, 14))]
    assert set(fields_of(obj, "ancient-changes")["f:metadata"]["f:labels"]) == {
        ".",
        "f:n",
        *(f"f:n{n}" for n in range(1, 5)),
    }


def test_same_but_times() -> None:
    obj = config(metadata={"managedFields": [{"manager": "a", "time": NOW}]})
    later = config(metadata={"managedFields": [{"manager": "a", "time": LATER}]})
    other = config(metadata={"managedFields": [{"manager": "b", "time": NOW}]})
    assert fields.same_but_times(obj, later)
    assert not fields.same_but_times(obj, other)
    assert not fields.same_but_times(obj, {**obj, "spec": {}})


@pytest.mark.parametrize(
    "entry",
    [
        "x",
        {"operation": "Apply", "fieldsType": "FieldsV1", "manager": 1},
        {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"k:{": {}}},
        {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"k:1": {}}},
        {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"i:x": {}}},
        {"operation": "Apply", "fieldsType": "V2"},
        {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}},
        {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": 1}},
    ],
)
def test_malformed_entries(entry: Any) -> None:
    assert decode([entry]) is None
