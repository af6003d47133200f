"""The registry of kinds, and that every struct's fields are the API's."""

from __future__ import annotations

import gzip
import json
import types
import typing
from importlib import resources
from typing import Any

import msgspec
import pytest

from skedge.api.decode import KINDS, decoder, list_decoder


def schema() -> dict[str, Any]:
    packed = resources.files("skedge.controlplane.fields").joinpath("schema.json.gz").read_bytes()
    return typing.cast(dict[str, Any], json.loads(gzip.decompress(packed)))


SCHEMA = schema()
PRESENCE_ONLY = {"Pod.spec.volumes[].ephemeral.volumeClaimTemplate"}  # that it is there is all that is read
SCALARS = {"string": str, "boolean": bool, "integer": int}


def options(hint: Any) -> tuple[Any, ...]:
    """The types of a field without None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(each for each in typing.get_args(hint) if each is not type(None))
    return (hint,)


def differences(struct: type[msgspec.Struct], type_name: str, path: str) -> list[str]:
    """Where a struct and a type of the API disagree, all the way down."""
    written = SCHEMA["types"][type_name]["fields"]
    hints = typing.get_type_hints(struct)
    found: list[str] = []
    for info in msgspec.structs.fields(struct):
        where = f"{path}.{info.encode_name}"
        if info.encode_name not in written:
            if info.encode_name not in ("kind", "apiVersion"):
                found.append(f"{where}: no such field of {type_name}")
            continue
        found += mismatch(options(hints[info.name]), written[info.encode_name]["type"], where)
    return found


def mismatch(hints: tuple[Any, ...], written: Any, where: str) -> list[str]:
    if hints == (Any,) or where in PRESENCE_ONLY:
        return []
    wrong = [f"{where}: is {written}, read as {hints}"]
    if isinstance(written, dict):
        wanted = tuple if "list" in written else dict
        if len(hints) != 1 or typing.get_origin(hints[0]) is not wanted:
            return wrong
        inner = typing.get_args(hints[0])[0 if wanted is tuple else 1]
        return mismatch(options(inner), written["list" if wanted is tuple else "map"], f"{where}[]")
    if written.endswith(".Quantity"):
        return [] if set(hints) == {str, int, float} else wrong
    if written.endswith(("Time", "MicroTime")):
        return [] if hints == (str,) else wrong
    scalar = SCALARS.get(written.partition(":")[0])
    if scalar is not None:
        return [] if hints == (scalar,) else wrong
    if len(hints) != 1 or not issubclass(hints[0], msgspec.Struct):
        return wrong
    if "fields" not in SCHEMA["types"][written]:
        return []
    return differences(hints[0], written, where)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_those_of_the_api(kind: str) -> None:
    info = KINDS[kind]
    assert differences(info.struct, SCHEMA["kinds"][f"{info.api_version}/{kind}"], kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_decoders(kind: str) -> None:
    empty = decoder(kind).decode(b'{"kind":"x","metadata":{"name":"n","labels":null,"unknown":1}}')
    assert isinstance(empty, KINDS[kind].struct)
    assert empty.metadata.name == "n"
    listed = list_decoder(kind).decode(b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"n"}}]}')
    assert (listed.metadata.resource_version, [each.metadata.name for each in listed.items or ()]) == ("7", ["n"])
    assert list_decoder(kind).decode(b'{"metadata":{},"items":null}').items is None


def test_faults_name_the_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int \| null`, got `str` - at `\$.spec.priority`"):
        decoder("PodGroup").decode(b'{"spec":{"priority":"high"}}')


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "path"),
    [
        ("Pod", "", "", "/api/v1/pods"),
        ("Pod", "team-a", "p", "/api/v1/namespaces/team-a/pods/p"),
        ("Node", "", "n1", "/api/v1/nodes/n1"),
        ("CSINode", "ignored", "n1", "/apis/storage.k8s.io/v1/csinodes/n1"),
        ("PodGroup", "", "", "/apis/scheduling.k8s.io/v1alpha2/podgroups"),
        (
            "Lease",
            "kube-system",
            "kube-scheduler",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
        ),
    ],
)
def test_paths(kind: str, namespace: str, name: str, path: str) -> None:
    assert KINDS[kind].path(namespace, name) == path


def test_names_that_are_not_camel_case() -> None:
    node = decoder("CSINode").decode(b'{"spec":{"drivers":[{"name":"d","nodeID":"i","allocatable":{"count":3}}]}}')
    assert node.spec.drivers[0].node_id == "i"
    attribute = decoder("ResourceSlice").decode(
        b'{"spec":{"devices":[{"name":"d","attributes":{"a":{"bool":true},"b":{"version":"1.0.0"}}}]}}'
    )
    read = attribute.spec.devices[0].attributes
    assert (read["a"].bool_value, read["b"].version_value, read["a"].int_value) == (True, "1.0.0", None)
