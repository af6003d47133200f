"""The ways by which objects are written back keep every field that our types do not know."""

from __future__ import annotations

import copy
from typing import Any, cast

import msgspec
import pytest

from skedge.api.decode import KINDS
from skedge.api.whole import Json, set_annotation
from skedge.app.objects import WRITTEN, RestObjects
from skedge.client.informer import Informer
from skedge.client.leaselock import LeaseLock, Record
from skedge.client.rest import RestClient
from skedge.clock import VirtualClock

ODD: Json = {
    "text": 'é\u2028"\\',
    "big": 9223372036854775807,
    "huge": 18446744073709551615,
    "small": 1e-9,
    "none": None,
    "empty": [{}, [], ""],
    "deep": {"f:spec": {".": {}, 'k:{"name":"c"}': {"x": [1, 2.5, True, None]}}},
}


def full(kind: str, spec: Json, **more: Any) -> Json:
    """An object with odd things in every part of it."""
    metadata = {
        "name": "x",
        "uid": "u",
        "resourceVersion": "41",
        "annotations": {"a": "1"},
        "managedFields": [{"manager": "m", "fieldsV1": ODD["deep"]}],
        "futureMetadata": ODD,
    }
    if kind != "PersistentVolume":
        metadata["namespace"] = "ns"
    return {"metadata": metadata, "spec": {**spec, "futureSpec": ODD}, "futurePart": ODD, **more}


OBJECTS: dict[str, Json] = {
    "PersistentVolume": full(
        "PersistentVolume",
        {
            "capacity": {"storage": "1.50Gi", "futureResource": "1"},
            "nfs": {"server": "s", "path": "/", "futureSource": ODD},
            "claimRef": {"name": "c", "namespace": "ns", "futureRef": ODD},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"futureTerm": ODD}], "future": ODD}},
        },
        status={"phase": "Available", "futureStatus": ODD},
    ),
    "PersistentVolumeClaim": full(
        "PersistentVolumeClaim",
        {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}, "futureResources": ODD},
            "dataSourceRef": {"kind": "VolumeSnapshot", "name": "s", "future": ODD},
        },
        status={"phase": "Pending", "conditions": [{"type": "FutureCondition", "future": ODD}]},
    ),
}


class Server:
    """Takes down what is sent, and answers with it."""

    def __init__(self, lease: Json | None = None) -> None:
        self.lease = lease
        self.sent: list[Json] = []

    async def request(self, method: str, path: str, *, body: bytes) -> bytes:
        assert method == "PUT"
        self.sent.append(msgspec.json.decode(body))
        return body

    async def get(self, path: str) -> Json:
        return copy.deepcopy(cast(Json, self.lease))

    async def update(self, path: str, body: Json) -> Json:
        self.sent.append(copy.deepcopy(body))
        return body


def test_everything_that_is_written_is_tested() -> None:
    assert WRITTEN.keys() <= OBJECTS.keys()


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [*WRITTEN])
async def test_volumes_and_claims(kind: str) -> None:
    source = OBJECTS[kind]
    transform = WRITTEN[kind].transform
    assert transform is not None
    raw = msgspec.json.decode(msgspec.json.encode(source))  # as the informer decodes it
    key = "x" if kind == "PersistentVolume" else "ns/x"

    class One:
        store = {key: transform(raw)}

    server = Server()
    objects = RestObjects(cast(RestClient, server), {kind: cast(Informer[Any], One)}, VirtualClock())
    view = msgspec.convert(source, KINDS[kind].struct)
    await objects.update(kind, view, lambda obj: set_annotation(obj, "b", "2"))
    expected = copy.deepcopy(source)
    expected["metadata"]["annotations"]["b"] = "2"
    assert server.sent == [{"apiVersion": "v1", "kind": kind, **expected}]


@pytest.mark.asyncio
async def test_leases() -> None:
    spec = {"holderIdentity": "a", "leaseTransitions": 3, "strategy": "OldestEmulationVersion", "preferredHolder": "c"}
    source = full("Lease", spec)
    server = Server(source)
    lock = LeaseLock(cast(RestClient, server), "ns", "x", "b")
    read = await lock.get()
    assert (read.holder, read.transitions) == ("a", 3)
    await lock.update(Record("b", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:01.000000Z", 4))
    expected = copy.deepcopy(source)
    expected["spec"] |= {
        "holderIdentity": "b",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:01.000000Z",
        "leaseTransitions": 4,
    }
    assert server.sent == [{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", **expected}]
    assert "kind" not in source
