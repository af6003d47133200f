"""Quantities, normal form, protobuf bodies, YAML."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.errors import ApiError
from skedge.controlplane.negotiate import accept, dump_yaml, read_object
from skedge.controlplane.normal import normal, zero
from skedge.controlplane.protobuf import BadProtobuf, decode
from skedge.controlplane.quantities import BadQuantity, canonical


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", "0"),
        ("0.5Gi", "512Mi"),
        ("1024Ki", "1Mi"),
        ("1.5Ki", "1536"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1500m", "1500m"),
        ("5000000", "5M"),
        ("1e3", "1e3"),
        ("12e2", "1200"),
        ("+2", "+2"),
        ("-1", "-1"),
        ("0.0000000001", "1n"),
        (".5", "500m"),
        ("1Ei", "1Ei"),
    ],
)
def test_canonical_quantities(text: str, wanted: str) -> None:
    assert canonical(text) == wanted


@pytest.mark.parametrize("text", ["", "1Qi", "a", "1 ", "1.2.3", "--1"])
def test_bad_quantities(text: str) -> None:
    with pytest.raises(BadQuantity):
        canonical(text)


def test_normal_form() -> None:
    pod = {
        "metadata": {"name": "p", "labels": {}, "creationTimestamp": None},
        "spec": {
            "nodeName": "",
            "hostNetwork": False,
            "enableServiceLinks": False,
            "unknown": 1,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1, "memory": "1024Ki"}}}],
        },
    }
    found = normal(pod, "v1/Pod", "Pod", "v1")
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}
    assert found == {
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "enableServiceLinks": False},
        "status": {},
    }


def test_times_are_brought_to_seconds_and_microseconds() -> None:
    lease = {"metadata": {}, "spec": {"renewTime": "2026-01-01T01:00:00.5+01:00"}}
    found = normal(lease, "coordination.k8s.io/v1/Lease", "Lease", "v1")
    assert found["spec"]["renewTime"] == "2026-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        ({"spec": {"priority": "x"}}, "cannot unmarshal string"),
        ({"spec": []}, "cannot unmarshal array"),
        ({"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}, "quantities must match"),
        ({"metadata": {"labels": {"a": 1}}}, "cannot unmarshal number"),
        ({"metadata": {"deletionTimestamp": "yesterday"}}, "yesterday"),
    ],
)
def test_wrong_types_are_named(pod: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as e:
        normal(pod, "v1/Pod", "Pod", "v1")
    assert e.value.code == 400
    assert e.value.message.startswith('Pod in version "v1" cannot be handled as a Pod: ')
    assert message in e.value.message


def test_what_go_always_writes() -> None:
    assert zero("v1/Pod") == {"spec": {"containers": None}, "status": {}}
    assert zero("v1/Node")["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


def _field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def _number(number: int, value: int) -> bytes:
    return bytes([number << 3, value])


def _envelope(version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\0" + _field(1, _field(1, version) + _field(2, kind)) + _field(2, raw)


def test_protobuf() -> None:
    meta = _field(1, b"web") + _field(11, _field(1, b"a") + _field(2, b"b")) + _field(8, b"")
    port = _field(1, _number(1, 0) + _number(2, 80) + _field(3, b""))
    spec = port + _field(2, _field(1, _field(1, b"app") + _field(2, b"web")))
    budget = _field(1, meta) + _field(2, spec)
    found = decode(_envelope(b"policy/v1", b"PodDisruptionBudget", budget))
    assert found["metadata"] == {"name": "web", "creationTimestamp": None, "labels": {"a": "b"}}
    assert found["spec"] == {"minAvailable": 80, "selector": {"matchLabels": {"app": "web"}}}
    sent = read_object(
        _envelope(b"v1", b"DeleteOptions", _number(1, 5)), "application/vnd.kubernetes.protobuf", "DeleteOptions"
    )
    assert sent["gracePeriodSeconds"] == 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"k8s\0\xff",
        b"k8s\0" + b"\x0a\x7f",
        _envelope(b"v1", b"Nonsense", b""),
        _envelope(b"v1", b"Pod", b"\x0a\x10"),
        _envelope(b"v1", b"Pod", b"\x0b"),
    ],
)
def test_garbage_is_no_protobuf(data: bytes) -> None:
    with pytest.raises(BadProtobuf):
        decode(data)


@pytest.mark.parametrize(
    ("header", "yaml", "as_"),
    [
        ("", False, ""),
        ("application/vnd.kubernetes.protobuf,application/json", False, ""),
        ("application/yaml", True, ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", False, "Table"),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", False, "PartialObjectMetadata"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", False, ""),
    ],
)
def test_accept(header: str, yaml: bool, as_: str) -> None:
    shape = accept(header)
    assert (shape.yaml, shape.as_) == (yaml, as_)


def test_not_acceptable() -> None:
    for header in ("text/html", "application/vnd.kubernetes.protobuf"):
        with pytest.raises(ApiError) as e:
            accept(header)
        assert e.value.code == 406


def test_yaml_out() -> None:
    obj = {"b": "1", "a": ["x", {"y": None}], "c": "true", "d": "2026-01-01T00:00:00Z", "e": "", "f": "a\nb\n"}
    text = 'a:\n- x\n- "y": null\nb: "1"\nc: "true"\nd: "2026-01-01T00:00:00Z"\ne: ""\nf: |\n  a\n  b\n'
    assert dump_yaml(obj).decode() == text


def test_yaml_in() -> None:
    data = b"kind: Node\nmetadata: {name: n, labels: {date: 2026-01-01}}\n"
    assert read_object(data, "application/yaml", "Node")["metadata"]["labels"] == {"date": "2026-01-01"}
    with pytest.raises(ApiError, match="must be of type Node"):
        read_object(b"a: [", "application/yaml", "Node")
