"""What is used is not deleted: claims by pods on nodes, volumes by claims, attributes classes by both."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import ATTRIBUTES_CLASS, CLAIM, POD, STORAGE_CLASS, VOLUME
from unit.controlplane.controllers.support import Lab, lab
from unit.controlplane.controllers.test_persistent_volumes import bound, claim, storage_class, volume

CLAIMS, VOLUMES, PODS = CLAIM.path("default"), VOLUME.path(), POD.path("default")
JSON = dict[str, Any]


def user(name: str, *volumes: JSON) -> JSON:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}


USES_DATA = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}


async def stays(it: Lab, path: str) -> None:
    await it.client.delete(path)
    await it.let_pass(3)
    assert "deletionTimestamp" in (await it.client.get(path))["metadata"]


@pytest.mark.asyncio
async def test_a_claim_outlives_its_pod_and_a_volume_its_claim() -> None:
    async with lab("1") as it:
        await it.client.create(VOLUMES, volume("disk", "10Gi"))
        made = await it.client.create(CLAIMS, claim("data"))
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        await it.until(lambda: bound(it, "data"))
        await it.client.create(PODS, user("user", USES_DATA))
        await it.until(lambda: it.running(1))
        await stays(it, f"{CLAIMS}/data")
        await stays(it, f"{VOLUMES}/disk")
        assert "Terminating" in await it.kubectl("get", "pvc,pv")
        await it.client.delete(f"{PODS}/user")
        await it.until(lambda: it.gone(f"{CLAIMS}/data"))
        await it.until(lambda: it.gone(f"{VOLUMES}/disk"))


@pytest.mark.asyncio
async def test_a_pod_without_a_node_holds_nothing() -> None:
    async with lab("0") as it:
        await it.client.create(CLAIMS, claim("data"))
        await it.client.create(PODS, user("pending", USES_DATA))
        await it.let_pass(1)
        await it.client.delete(f"{CLAIMS}/data")
        await it.until(lambda: it.gone(f"{CLAIMS}/data"))


@pytest.mark.asyncio
async def test_the_claim_of_an_ephemeral_volume_goes_with_its_pod() -> None:
    async with lab("1") as it:
        await it.client.create(STORAGE_CLASS.path(), storage_class("fast"))
        template = {"spec": claim("", storageClassName="fast")["spec"]}
        await it.client.create(PODS, user("user", {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}))
        name = await it.until(lambda: bound(it, "user-v"), within=5) if await it.until(lambda: it.running(1)) else ""
        await stays(it, f"{CLAIMS}/user-v")
        await it.client.delete(f"{PODS}/user")
        await it.until(lambda: it.gone(f"{CLAIMS}/user-v"))
        await it.until(lambda: it.gone(f"{VOLUMES}/{name}"))


@pytest.mark.asyncio
async def test_an_attributes_class_stays_while_a_claim_names_it() -> None:
    async with lab("0") as it:
        gold = {"metadata": {"name": "gold"}, "driverName": "d", "parameters": {"iops": "100"}}
        await it.client.create(ATTRIBUTES_CLASS.path(), gold)
        await it.client.create(CLAIMS, claim("data", volumeAttributesClassName="gold"))
        await it.let_pass(1)
        await stays(it, ATTRIBUTES_CLASS.path(name="gold"))
        await it.client.delete(f"{CLAIMS}/data")
        await it.until(lambda: it.gone(ATTRIBUTES_CLASS.path(name="gold")))
