"""Unknown and duplicate fields, wrong types."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane import fields

POD = "v1/Pod"


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (b'{"spec": {"x": 1, "x": 2}}', ['duplicate field "spec.x"']),
        (b'{"a": 1, "a": 2, "a": 3}', ['duplicate field "a"']),
        (b'{"l": [{"a": 1}, {"a": 1, "a": 2}]}', ['duplicate field "l[1].a"']),
        (b'{"a": {"b": 1}, "b": {"a": 1}}', []),
        (b"[]", []),
    ],
)
def test_duplicates(raw: bytes, want: list[str]) -> None:
    assert fields.duplicate_fields(raw) == want


def test_duplicates_below_unknown_fields_do_not_count() -> None:
    raw = b'{"bogus": {"a": 1, "a": 2}, "spec": {"nodeName": "a", "nodeName": "b"}}'
    assert fields.duplicate_fields(raw, POD) == ['duplicate field "spec.nodeName"']
    assert fields.strict_errors(POD, raw) == ['unknown field "bogus"', 'duplicate field "spec.nodeName"']


def test_unknown_fields_of_free_form_and_maps() -> None:
    claim = {
        "metadata": {"labels": {"any": "x"}, "managedFields": [{"fieldsV1": {"f:any": {}}}]},
        "spec": {"devices": {"config": [{"opaque": {"parameters": {"any": 1}}, "Opaque": {}}]}},
    }
    assert fields.unknown_fields("resource.k8s.io/v1/ResourceClaim", claim) == [
        'unknown field "spec.devices.config[0].Opaque"'
    ]


def test_a_hundred_errors_are_enough() -> None:
    assert len(fields.unknown_fields(POD, {f"x{n}": 1 for n in range(200)})) == 100


CONTAINER = "Go struct field Container.spec.containers"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (
            {"spec": {"hostNetwork": "yes"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"spec": {"containers": [{"image": 1}]}},
            f"json: cannot unmarshal number into {CONTAINER}.image of type string",
        ),
        (
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"spec": {"priority": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"spec": {"priority": 1 << 31}},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"spec": {"priority": True}},
            "json: cannot unmarshal bool into Go struct field PodSpec.spec.priority of type int32",
        ),
        ({"spec": "x"}, "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"nodeSelector": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector.a of type string",
        ),
        (
            {"spec": {"nodeSelector": []}},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            {"spec": {"overhead": {"cpu": "1x"}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ({"spec": {"overhead": {"cpu": "1KM"}}}, "unable to parse quantity's suffix"),
        (
            {"spec": {"overhead": "x"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.overhead of type v1.ResourceList",
        ),
        (
            {"status": {"startTime": "today"}},
            'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"',
        ),
        ({"status": {"startTime": "2026-01-01T00:00:00Zx"}}, 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'),
        ({"status": {"startTime": 5}}, "json: cannot unmarshal number into Go value of type string"),
        ([], "json: cannot unmarshal array into Go value of type v1.Pod"),
    ],
)
def test_wrong_types(body: Any, want: str) -> None:
    assert fields.validate_types(POD, body) == [want]


@pytest.mark.parametrize(
    "body",
    [
        {"spec": None},
        {"spec": {"overhead": {"a": 1, "b": "1e3", "c": "1Ki", "d": "-.5", "e": "1E", "f": 0.5}}},
        {
            "spec": {
                "containers": [
                    {"livenessProbe": {"httpGet": {"port": 80}}},
                    {"livenessProbe": {"httpGet": {"port": "a"}}},
                ]
            }
        },
        {"status": {"startTime": "2026-01-01T00:00:00.5+02:00"}},
        {"bogus": {"x": 1}},
    ],
)
def test_right_types(body: Any) -> None:
    assert fields.validate_types(POD, body) == []


def test_other_scalars() -> None:
    assert fields.validate_types("v1/Secret", {"data": {"a": "YQ==", "b": "?"}}) == [
        "illegal base64 data at input byte 0"
    ]
    budget = {"spec": {"minAvailable": True}}
    assert fields.validate_types("policy/v1/PodDisruptionBudget", budget) == [
        "json: cannot unmarshal bool into Go value of type int32"
    ]
