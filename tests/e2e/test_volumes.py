"""Claims of every kind on a whole local cluster: our scheduler and its volume controller agree over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skedge.app.process import SchedulerProcess
from skedge.client.rest import RestClient
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.controlplane.controllers.provisioning import PROVISIONER
from skedge.controlplane.local import LocalCluster

Json = dict[str, Any]
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""
CORE = "/api/v1/namespaces/default"
HOST = "kubernetes.io/hostname"


@asynccontextmanager
async def cluster(nodes: str) -> AsyncIterator[RestClient]:
    """A client of a cluster in which pods are scheduled."""
    async with LocalCluster(nodes=nodes) as local, RestClient.connect(local.config, user_agent="t", qps=-1) as client:
        process = SchedulerProcess(decode(CONFIG, args_types=PLUGIN_ARGS), local.config)
        task = asyncio.create_task(process.run())
        try:
            for name, provisioner in (("late", PROVISIONER), ("static", "kubernetes.io/no-provisioner")):
                mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
                await client.create("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, **mode})
            yield client
        finally:
            process.stop()
            await task


async def create_claim(client: RestClient, name: str, storage_class: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": name}, "spec": {**spec, "storageClassName": storage_class}}
    await client.create(f"{CORE}/persistentvolumeclaims", body)


async def create_pod(client: RestClient, name: str, *claims: str) -> None:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    await client.create(f"{CORE}/pods", {"metadata": {"name": name}, "spec": spec})


async def node_of(client: RestClient, name: str) -> str:
    """Waits until the pod has a node."""
    async with asyncio.timeout(15):
        while True:
            pod = await client.get(f"{CORE}/pods/{name}")
            if pod["spec"].get("nodeName"):
                return str(pod["spec"]["nodeName"])
            await asyncio.sleep(0.02)


def local_volume(name: str, node: str) -> Json:
    where = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "static",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": where}},
        },
    }


@pytest.mark.asyncio
async def test_volumes_made_and_volumes_found() -> None:
    async with cluster("3") as client:
        nodes = [node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"]]
        for i, node in enumerate(nodes[:2]):
            await client.create("/api/v1/persistentvolumes", local_volume(f"local-{i}", node))
        for i in range(4):
            await create_claim(client, f"late-{i}", "late")
            await create_pod(client, f"late-{i}", f"late-{i}")
        for i in range(2):
            await create_claim(client, f"static-{i}", "static")
            await create_pod(client, f"static-{i}", f"static-{i}")
        placed = {name: await node_of(client, name) for name in [f"late-{i}" for i in range(4)]}
        for name, node in placed.items():
            claim = await client.get(f"{CORE}/persistentvolumeclaims/{name}")
            assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
            assert claim["status"]["phase"] == "Bound"
        statics = [await node_of(client, f"static-{i}") for i in range(2)]
        assert sorted(statics) == sorted(nodes[:2])
        for i, node in enumerate(statics):
            claim = await client.get(f"{CORE}/persistentvolumeclaims/static-{i}")
            volume = await client.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
            assert volume["spec"]["nodeAffinity"] == local_volume("", node)["spec"]["nodeAffinity"]
            assert volume["spec"]["local"] == {"path": "/mnt"}  # written back whole
            assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"


@pytest.mark.asyncio
async def test_nothing_free_then_something() -> None:
    async with cluster("2") as client:
        nodes = [node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"]]
        await create_pod(client, "p", "c")
        await create_claim(client, "c", "static")
        async with asyncio.timeout(15):
            while True:
                conditions = (await client.get(f"{CORE}/pods/p"))["status"].get("conditions", [])
                if "didn't find available persistent volumes" in str(conditions):
                    break
                await asyncio.sleep(0.02)
        await client.create("/api/v1/persistentvolumes", local_volume("v", nodes[1]))
        assert await node_of(client, "p") == nodes[1]
