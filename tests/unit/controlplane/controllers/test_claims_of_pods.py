"""What is made for single pods: claims of ephemeral volumes, resource claims from templates."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.kinds import CLAIM, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from unit.controlplane.controllers.support import lab

PODS = POD.path("default")
JSON = dict[str, Any]


@pytest.mark.asyncio
async def test_an_ephemeral_volume_has_a_claim_that_goes_with_the_pod() -> None:
    async with lab("1") as it:
        request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": request}}}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}}
        await it.client.create(PODS, pod)
        path = CLAIM.path("default", "p-scratch")

        async def made() -> bool:
            return not await it.gone(path)

        await it.until(made)
        await it.client.delete(f"{PODS}/p")
        await it.until(lambda: it.gone(path))


@pytest.mark.asyncio
async def test_the_claim_of_a_pod_that_has_ended_goes() -> None:
    async with lab("1") as it:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
        await it.client.create(RESOURCE_CLAIM_TEMPLATE.path("default"), template)
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        spec["resourceClaims"] = [{"name": "a", "resourceClaimTemplateName": "one"}]
        annotations = {"skedge.io/run-seconds": "5"}
        pod = await it.client.create(PODS, {"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
        path = RESOURCE_CLAIM.path("default")

        async def made() -> list[JSON]:
            return list((await it.client.list(path))["items"])

        (claim,) = await it.until(made)
        consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
        await it.client.patch(f"{path}/{claim['metadata']['name']}/status", {"status": {"reservedFor": [consumer]}})
        await it.until(lambda: it.gone(f"{path}/{claim['metadata']['name']}"))
        assert not await it.gone(f"{PODS}/p")


@pytest.mark.asyncio
async def test_a_resource_claim_is_made_noted_released_and_goes() -> None:
    async with lab("1") as it:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        template = {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
        entry = {"name": "accelerator", "resourceClaimTemplateName": "one-gpu"}
        containers = [{"name": "c", "image": "i"}]
        pod = {"metadata": {"name": "p"}, "spec": {"containers": containers, "resourceClaims": [entry]}}
        made_pod = await it.client.create(PODS, pod)
        await it.let_pass(2)
        await it.client.create(RESOURCE_CLAIM_TEMPLATE.path("default"), template)

        async def noted() -> str:
            statuses = (await it.client.get(f"{PODS}/p"))["status"].get("resourceClaimStatuses") or []
            return str(statuses[0]["resourceClaimName"]) if statuses else ""

        name = await it.until(noted)
        claims = (await it.client.list(RESOURCE_CLAIM.path("default")))["items"]
        assert [claim["metadata"]["name"] for claim in claims] == [name]
        path = RESOURCE_CLAIM.path("default", name)
        consumer = {"resource": "pods", "name": "p", "uid": made_pod["metadata"]["uid"]}
        other = {"resource": "pods", "name": "gone", "uid": "11111111-1111-1111-1111-111111111111"}
        reserved = {"status": {"allocation": {"devices": {}}, "reservedFor": [consumer, other]}}
        await it.client.patch(f"{path}/status", reserved)

        async def released() -> bool:
            return (await it.client.get(path))["status"].get("reservedFor") == [consumer]

        await it.until(released)
        await it.client.delete(f"{PODS}/p")
        await it.until(lambda: it.gone(path))
