"""Objects written back whole lose nothing they carried."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.api.shared import ObjectReference
from skedge.api.whole import Whole, add_finalizer, as_json, child, remove_finalizer, set_annotation, whole

VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {
        "name": "pv",
        "resourceVersion": "41",
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {".": {}}}}],
        "annotations": {"a": "1"},
        "futureField": [1, 2.5, None, {"x": "é"}],
    },
    "spec": {
        "capacity": {"storage": "1.50Gi"},
        "nfs": {"server": "s", "path": "/"},
        "mountOptions": ["ro"],
        "accessModes": ["ReadWriteOnce"],
        "big": 9223372036854775807,
        "small": -0.125,
        "claimRef": None,
    },
    "status": {"phase": "Available", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"},
}


def test_unknown_fields_survive_a_change() -> None:
    before: Whole[Any] = whole("PersistentVolume", json.dumps(VOLUME).encode())
    claim = ObjectReference(kind="PersistentVolumeClaim", namespace="ns", name="c", uid="u")

    def bind(raw: dict[str, Any]) -> None:
        raw["spec"]["claimRef"] = as_json(claim)
        set_annotation(raw, "pv.kubernetes.io/bound-by-controller", "yes")

    after = before.changed(bind)
    expected = json.loads(json.dumps(VOLUME))
    expected["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c", "uid": "u"}
    expected["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] = "yes"
    assert json.loads(after.encode()) == expected
    assert after.view.spec.claim_ref == claim
    assert after.metadata["resourceVersion"] == "41"
    assert json.loads(before.encode()) == VOLUME
    assert before.view.spec.claim_ref is None


def test_items_of_lists_get_their_kind_back() -> None:
    claim: Whole[Any] = whole("ResourceClaim", {"metadata": {"name": "c"}})
    assert json.loads(claim.encode()) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
    }


def test_source_is_not_shared() -> None:
    source: dict[str, Any] = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    lease: Whole[Any] = whole("Lease", source)
    source["spec"]["holderIdentity"] = "b"
    assert lease.raw["spec"]["holderIdentity"] == "a"


def test_faults_are_reported_where_they_are() -> None:
    lease: Whole[Any] = whole("Lease", {"spec": {}})
    with pytest.raises(msgspec.ValidationError, match=r"\$.spec.leaseTransitions"):
        lease.changed(lambda raw: child(raw, "spec").update(leaseTransitions="many"))


def test_changes_cope_with_null_parents() -> None:
    raw: dict[str, Any] = {"metadata": {"annotations": None, "finalizers": None}}
    set_annotation(raw, "a", "b")
    add_finalizer(raw, "f")
    add_finalizer(raw, "f")
    assert raw == {"metadata": {"annotations": {"a": "b"}, "finalizers": ["f"]}}
    remove_finalizer(raw, "other")
    assert raw["metadata"]["finalizers"] == ["f"]
    remove_finalizer(raw, "f")
    assert "finalizers" not in raw["metadata"]
    child(raw, "status", "devices")
    assert raw["status"] == {"devices": {}}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", ["PersistentVolume", "PersistentVolumeClaim", "Lease", "ResourceClaim"])
@given(unknown=JSON)
def test_any_unknown_field_makes_the_round_trip(kind: str, unknown: Any) -> None:
    source = {"metadata": {"name": "n", "x-unknown": unknown}, "spec": {"x-unknown": unknown}, "x-unknown": unknown}
    read: Whole[Any] = whole(kind, json.dumps(source).encode())
    written = json.loads(read.changed(lambda raw: set_annotation(raw, "a", "b")).encode())
    for each in (written, written["metadata"], written["spec"]):
        assert each["x-unknown"] == unknown
