"""Binding, provisioning and reclaiming against the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import CLAIM, STORAGE_CLASS, VOLUME
from unit.controlplane.controllers.support import Lab, lab

CLAIMS, VOLUMES, CLASSES = CLAIM.path("default"), VOLUME.path(), STORAGE_CLASS.path()
JSON = dict[str, Any]


def claim(name: str, size: str = "5Gi", **spec: Any) -> JSON:
    resources = {"requests": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


def volume(name: str, size: str, **spec: Any) -> JSON:
    source = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return {"metadata": {"name": name}, "spec": {**source, **spec}}


def storage_class(name: str, **fields: Any) -> JSON:
    return {"metadata": {"name": name}, "provisioner": "skedge.io/fake", **fields}


async def bound(it: Lab, name: str) -> str:
    """The volume of a claim once both are Bound."""
    found = await it.client.get(f"{CLAIMS}/{name}")
    to: str = found["spec"].get("volumeName", "")
    if found["status"]["phase"] != "Bound" or not to:
        return ""
    phase = (await it.client.get(f"{VOLUMES}/{to}"))["status"]["phase"]
    return to if phase == "Bound" else ""


@pytest.mark.asyncio
async def test_static_binding_takes_the_smallest_that_fits() -> None:
    async with lab("0") as it:
        for name, size in (("large", "50Gi"), ("small", "1Gi"), ("right", "10Gi")):
            await it.client.create(VOLUMES, volume(name, size, persistentVolumeReclaimPolicy="Retain"))
        await it.client.create(CLAIMS, claim("data"))
        assert await it.until(lambda: bound(it, "data")) == "right"
        found = await it.client.get(f"{CLAIMS}/data")
        assert found["status"]["capacity"] == {"storage": "10Gi"}
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        await it.client.create(CLAIMS, claim("more", volumeName="small", size="1Gi"))
        assert await it.until(lambda: bound(it, "more")) == "small"
        await it.client.create(CLAIMS, claim("huge", size="1Ti"))
        await it.let_pass(2)
        assert (await it.client.get(f"{CLAIMS}/huge"))["status"]["phase"] == "Pending"
        await it.client.create(VOLUMES, volume("new", "2Ti"))
        assert await it.until(lambda: bound(it, "huge")) == "new"
        await it.client.delete(f"{CLAIMS}/data")

        async def released() -> bool:
            return bool((await it.client.get(f"{VOLUMES}/right"))["status"]["phase"] == "Released")

        await it.until(released)


@pytest.mark.asyncio
async def test_immediate_provisioning_and_deletion() -> None:
    async with lab("0") as it:
        await it.client.create(CLASSES, storage_class("fast"))
        await it.client.create(CLAIMS, claim("data", storageClassName="fast"))
        name = await it.until(lambda: bound(it, "data"))
        made = await it.client.get(f"{VOLUMES}/{name}")
        assert made["spec"]["claimRef"]["name"] == "data"
        assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        await it.client.delete(f"{CLAIMS}/data")
        await it.until(lambda: it.gone(f"{VOLUMES}/{name}"))


@pytest.mark.asyncio
async def test_waiting_for_the_first_consumer() -> None:
    async with lab("3") as it:
        await it.client.create(CLASSES, storage_class("lazy", volumeBindingMode="WaitForFirstConsumer"))
        await it.client.create(CLAIMS, claim("data", storageClassName="lazy"))
        await it.let_pass(3)
        assert (await it.client.get(f"{CLAIMS}/data"))["status"]["phase"] == "Pending"
        patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}}
        await it.client.patch(f"{CLAIMS}/data", patch)
        name = await it.until(lambda: bound(it, "data"))
        terms = (await it.client.get(f"{VOLUMES}/{name}"))["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert terms[0]["matchExpressions"][0]["values"] == ["zone-b"]


@pytest.mark.asyncio
async def test_a_volume_the_scheduler_has_reserved() -> None:
    """Static volumes of a waiting class: the scheduler writes claimRef, the controller does the rest."""
    async with lab("0") as it:
        waits = storage_class("local", volumeBindingMode="WaitForFirstConsumer")
        await it.client.create(CLASSES, {**waits, "provisioner": "kubernetes.io/no-provisioner"})
        await it.client.create(VOLUMES, volume("disk", "10Gi", storageClassName="local"))
        made = await it.client.create(CLAIMS, claim("data", storageClassName="local"))
        await it.let_pass(2)
        assert (await it.client.get(f"{CLAIMS}/data"))["status"]["phase"] == "Pending"
        meta = made["metadata"]
        ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": meta["uid"]}
        await it.client.patch(f"{VOLUMES}/disk", {"spec": {"claimRef": ref}})
        assert await it.until(lambda: bound(it, "data")) == "disk"


@pytest.mark.asyncio
async def test_a_lost_volume_and_a_foreign_provisioner() -> None:
    async with lab("0") as it:
        await it.client.create(VOLUMES, volume("disk", "10Gi"))
        await it.client.create(CLAIMS, claim("data"))
        await it.until(lambda: bound(it, "data"))
        await it.client.delete(f"{VOLUMES}/disk")
        await it.client.patch(f"{VOLUMES}/disk", {"metadata": {"finalizers": None}})  # somebody forces it

        async def lost() -> bool:
            return bool((await it.client.get(f"{CLAIMS}/data"))["status"]["phase"] == "Lost")

        await it.until(lost)
        await it.client.create(CLASSES, {**storage_class("other"), "provisioner": "example.com/disk"})
        await it.client.create(CLAIMS, claim("theirs", storageClassName="other"))

        async def announced() -> bool:
            annotations = (await it.client.get(f"{CLAIMS}/theirs"))["metadata"].get("annotations") or {}
            return annotations.get("volume.kubernetes.io/storage-provisioner") == "example.com/disk"

        await it.until(announced)
