"""`FakeNodes`: kubelets for every node of the API server, in one place.

A node with the annotation `skedge.io/fake-node: stopped` behaves like one whose machine was switched off: no
heartbeats, its pods are left alone; `unmanaged` is left to somebody else from the start.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from typing import Any

from skedge import KUBERNETES_VERSION
from skedge.client import aio
from skedge.client.errors import NotFound
from skedge.client.informer import InformerFactory
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.client.timefmt import rfc3339
from skedge.controlplane.controllers.base import NODE_NAME, Context, last
from skedge.controlplane.controllers.kinds import NODE, NODES, POD
from skedge.controlplane.controllers.objects import Node, Pod
from skedge.controlplane.nodes.heartbeats import Heartbeats
from skedge.controlplane.nodes.images import Images
from skedge.controlplane.nodes.player import Player
from skedge.controlplane.nodes.stages import Stage, Stages, load_stages
from skedge.controlplane.nodes.templates import NODE_VALUES, POD_VALUES, NodeScene, PodScene, fill, node_address

JSON = dict[str, Any]

ANNOTATION = "skedge.io/fake-node"
_POD_NETWORK = ipaddress.IPv4Network("10.128.0.0/9")
_NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


class FakeNodes:
    """Construct before the factory of `context` is started; `run` as a task."""

    def __init__(self, context: Context, stages: Stages | None = None, *, rng: random.Random | None = None) -> None:
        self._client, self._clock = context.client, context.clock
        self._factory: InformerFactory = context.factory
        rng = rng or context.rng
        stages = stages or load_stages()
        self._pods = context.pods
        self._nodes = context.informer(NODES)
        self.heartbeats = Heartbeats(self._client, rng, self._nodes.store.get)
        self._images = Images(self._client, self._nodes.store.get)
        self._addresses: dict[str, str] = {}
        self._next_ip = 0
        self._pod_player: Player[Pod] = Player(
            stages.pods, self._pods.store.get, self._act_on_pod, clock=self._clock, rng=rng
        )
        self._node_player: Player[Node] = Player(
            stages.nodes, self._nodes.store.get, self._act_on_node, clock=self._clock, rng=rng
        )
        self._nodes.add_handler(
            on_add=lambda node, _: self._node_changed(node),
            on_update=lambda _, node: self._node_changed(node),
            on_delete=lambda node: self._node_gone(last(node)),
        )
        self._pods.add_handler(
            on_add=self._pod_added,
            on_update=lambda _, pod: self._pod_changed(pod),
            on_delete=lambda pod: self._pod_gone(last(pod)),
        )

    async def run(self) -> None:
        """Work until cancelled."""
        await self._factory.wait_for_sync()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.heartbeats.run(), name="heartbeats")
            group.create_task(self._pod_player.run(), name="fake pods")
            group.create_task(self._node_player.run(), name="fake nodes")
            group.create_task(self._report_images(), name="fake images")

    # --- changes

    def _node_changed(self, node: Node) -> None:
        meta = node.metadata
        if (meta.annotations or {}).get(ANNOTATION) in ("stopped", "unmanaged"):
            self._node_gone(node)
            return
        known = meta.name in self._addresses
        addresses = node.status.addresses or ()
        internal = next((each.address for each in addresses if each.type == "InternalIP"), "")
        self._addresses[meta.name] = internal or node_address(meta.name)
        self.heartbeats.add(meta.name, meta.uid)
        self._node_player.consider(meta.name, node)
        if not known:
            for pod in self._pods.store.by_index(NODE_NAME, meta.name):
                self._pod_changed(pod)

    def _node_gone(self, node: Node) -> None:
        name = node.metadata.name
        self._addresses.pop(name, None)
        self.heartbeats.remove(name)
        self._node_player.forget(name)
        self._images.forget(name)

    def _pod_added(self, pod: Pod, initial: bool) -> None:
        if initial and pod.status.pod_ip:
            self._next_ip = max(self._next_ip, _number_of(pod.status.pod_ip))
        self._pod_changed(pod)

    def _pod_changed(self, pod: Pod) -> None:
        if pod.spec.node_name in self._addresses:
            self._pod_player.consider(pod.key, pod)

    def _pod_gone(self, pod: Pod) -> None:
        self._pod_player.forget(pod.key)

    # --- stages

    async def _act_on_pod(self, stage: Stage[Pod], pod: Pod) -> None:
        meta = pod.metadata
        address = self._addresses.get(pod.spec.node_name)
        if address is None:
            return  # the node has stopped meanwhile
        if stage.status is None:
            body = {**_NOW, "preconditions": {"uid": meta.uid}}
            await self._client.request("DELETE", POD.path(meta.namespace, meta.name), body=body)
            return
        scene = PodScene(pod, rfc3339(self._clock.now()), address, pod.status.pod_ip or self._new_ip())
        status = fill(stage.status, POD_VALUES, scene)
        body = {"metadata": {"uid": meta.uid}, "status": status}
        path = POD.path(meta.namespace, meta.name, "status")
        await self._client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        if status.get("phase") == "Running":
            self._images.used(pod.spec.node_name, pod)

    async def _act_on_node(self, stage: Stage[Node], node: Node) -> None:
        name = node.metadata.name
        if stage.status is None:
            await self._client.request("DELETE", NODE.path(name=name))
            return
        scene = NodeScene(node, rfc3339(self._clock.now()), node_address(name), KUBERNETES_VERSION)
        body = {"status": fill(stage.status, NODE_VALUES, scene)}
        path = NODE.path(name=name, subresource="status")
        await self._client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)

    async def _report_images(self) -> None:
        while True:
            await aio.sleep(self._clock, 1.0)
            try:
                await self._images.report()
            except NotFound:
                pass

    def _new_ip(self) -> str:
        """The next address of 10.128.0.0/9."""
        self._next_ip = self._next_ip % 0x7FFFFE + 1
        return str(_POD_NETWORK[self._next_ip])


def _number_of(address: str) -> int:
    """The place of an address among those given to pods; 0 if it is none of them."""
    try:
        number = int(ipaddress.IPv4Address(address)) - int(_POD_NETWORK.network_address)
    except ValueError:
        return 0
    return number if 0 < number <= 0x7FFFFE else 0
