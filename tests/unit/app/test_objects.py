"""Volumes and claims written back whole."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.api.whole import Json, set_annotation
from skedge.app.objects import WRITTEN, ChangedMeanwhile, ClockSignal, RestObjects
from skedge.client.informer import Informer
from skedge.client.rest import RestClient
from skedge.clock import VirtualClock

CLAIM: Json = {
    "metadata": {
        "name": "claim",
        "namespace": "sw",
        "uid": "u",
        "resourceVersion": "342",
        "finalizers": ["kubernetes.io/pvc-protection"],
        "managedFields": [{"manager": "Python", "fieldsV1": {"f:spec": {"f:resources": {".": {}}}}}],
    },
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "wffc",
        "volumeMode": "Filesystem",
        "dataSource": {"kind": "VolumeSnapshot", "name": "s"},
    },
    "status": {"phase": "Pending"},
}


class Server:
    """Takes requests down and answers with the object at its next version."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Json]] = []

    async def request(self, method: str, path: str, *, body: bytes) -> bytes:
        sent = msgspec.json.decode(body)
        self.requests.append((method, path, sent))
        return msgspec.json.encode({**sent, "metadata": {**sent["metadata"], "resourceVersion": "343"}})


class Informers:
    """The informers of `WRITTEN`, as far as they are read."""

    def __init__(self, **objects: Json) -> None:
        self.store: dict[str, Any] = {}
        for kind, obj in objects.items():
            transform = WRITTEN[kind].transform
            assert transform is not None
            meta = obj["metadata"]
            self.store[f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]] = transform(obj)

    def __getitem__(self, kind: str) -> Informers:
        return self


def objects(server: Server, **known: Json) -> RestObjects:
    informers = cast(dict[str, Informer[Any]], Informers(**known))
    return RestObjects(cast(RestClient, server), informers, VirtualClock())


def select_node(raw: Json) -> None:
    set_annotation(raw, "volume.kubernetes.io/selected-node", "sw-big")


@pytest.mark.asyncio
async def test_what_is_sent_is_what_was_seen_and_the_change() -> None:
    server = Server()
    view = msgspec.convert(CLAIM, PersistentVolumeClaim)
    written = await objects(server, PersistentVolumeClaim=CLAIM).update("PersistentVolumeClaim", view, select_node)
    metadata = {**CLAIM["metadata"], "annotations": {"volume.kubernetes.io/selected-node": "sw-big"}}
    body = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **CLAIM, "metadata": metadata}
    assert server.requests == [("PUT", "/api/v1/namespaces/sw/persistentvolumeclaims/claim", body)]
    assert written.metadata.resource_version == "343"
    assert "annotations" not in CLAIM["metadata"]


VOLUME: Json = {"metadata": {"name": "v", "uid": "u", "resourceVersion": "7"}, "status": {"phase": "Available"}}


@pytest.mark.asyncio
async def test_cluster_scoped_objects() -> None:
    server = Server()
    view = msgspec.convert(VOLUME, PersistentVolume)
    await objects(server, PersistentVolume=VOLUME).update("PersistentVolume", view, lambda raw: None)
    assert server.requests == [
        ("PUT", "/api/v1/persistentvolumes/v", {"apiVersion": "v1", "kind": "PersistentVolume", **VOLUME})
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "known",
    [
        {},
        {"PersistentVolume": {**VOLUME, "metadata": {**VOLUME["metadata"], "resourceVersion": "8"}}},
        {"PersistentVolume": {**VOLUME, "status": {"phase": "Bound"}}},
    ],
    ids=["gone", "newer", "bound by now"],
)
async def test_a_version_that_is_not_there_any_more_is_not_written(known: dict[str, Json]) -> None:
    server = Server()
    view = msgspec.convert(VOLUME, PersistentVolume)
    with pytest.raises(
        ChangedMeanwhile, match='cannot be fulfilled on persistentvolumes "v": the object has been modified'
    ):
        await objects(server, **known).update("PersistentVolume", view, lambda raw: None)
    assert server.requests == []


@pytest.mark.asyncio
async def test_a_signal_wakes_or_time_does() -> None:
    clock = VirtualClock()
    signal = objects(Server()).signal()
    assert isinstance(signal, ClockSignal)
    signal = ClockSignal(clock)
    signal.set()
    await signal.wait(60.0)  # set before: at once
    waiting = asyncio.ensure_future(signal.wait(1.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(0.9)
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(0.2)
    await waiting
    waiting = asyncio.ensure_future(signal.wait(1.0))
    await asyncio.sleep(0)
    signal.set()
    await waiting
