"""Pods nobody looks after: on nodes that are gone, deleted before they had a node, or finished and too many.

Upstream: `pkg/controller/podgc/gc_controller.go`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from skedge.client.errors import NotFound
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import NODE_NAME, Context, Controller, Loop
from skedge.controlplane.controllers.kinds import NODE, NODES, POD
from skedge.controlplane.controllers.objects import Pod, epoch
from skedge.controlplane.controllers.owning import together

JSON = dict[str, Any]

PERIOD = 20.0
QUARANTINE = 40.0
"""Seconds a node has to be absent before its pods go: it may be on its way back."""
FINISHED_LIMIT = 12_500
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_AT_ONCE = 32
_SLICE = 5_000
"""Pods looked at without letting other tasks run."""


class PodGC(Controller):
    """Works in rounds, without keys."""

    name = "pod-garbage"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods, self.nodes = context.pods, context.informer(NODES)
        self._absent: dict[str, float] = {}

    def loops(self) -> list[Loop]:
        return [self.rounds]

    async def rounds(self) -> None:
        """Look for pods to delete, again and again."""
        await self.every(PERIOD, self.look)

    async def look(self) -> None:
        """One round."""
        lost = await self._lost_nodes()
        finished: list[Pod] = []
        doomed: list[tuple[Pod, str]] = []
        pods = self.pods.store.list()
        for start in range(0, len(pods), _SLICE):
            for pod in pods[start : start + _SLICE]:
                node = pod.spec.node_name
                if node in lost:
                    doomed.append((pod, "PodGC: node no longer exists"))
                elif pod.is_finished:
                    finished.append(pod)
                elif pod.metadata.deletion_timestamp is not None and (not node or self._is_out_of_service(node)):
                    doomed.append((pod, ""))
            await asyncio.sleep(0)
        surplus = len(finished) - FINISHED_LIMIT
        if surplus > 0:
            finished.sort(key=lambda pod: epoch(pod.metadata.creation_timestamp))
            doomed += [(pod, "") for pod in finished[:surplus]]
        for start in range(0, len(doomed), _AT_ONCE):
            await together(self._delete(pod, why) for pod, why in doomed[start : start + _AT_ONCE])

    async def _lost_nodes(self) -> set[str]:
        """Names of nodes that pods are on and that have been absent for long enough; the server is asked, too."""
        now = self.clock.monotonic()
        absent = [name for name in self.pods.store.index_values(NODE_NAME) if name not in self.nodes.store]
        self._absent = {name: self._absent.get(name, now) for name in absent}
        lost = set()
        for name, since in self._absent.items():
            if now - since >= QUARANTINE:
                try:
                    await self.client.request("GET", NODE.path(name=name))
                except NotFound:
                    lost.add(name)
        return lost

    def _is_out_of_service(self, name: str) -> bool:
        """Whether somebody has said that the node will not come back by itself."""
        node = self.nodes.store.get(name)
        if node is None:
            return False
        ready = node.condition("Ready")
        marked = any(taint.key == _OUT_OF_SERVICE for taint in node.spec.taints or ())
        return marked and (ready is None or ready.status != "True")

    async def _delete(self, pod: Pod, why: str) -> None:
        meta = pod.metadata
        path = POD.path(meta.namespace, meta.name)
        try:
            if not pod.is_finished:
                status: JSON = {"phase": "Failed"}
                if why:
                    now = self.context.timestamp()
                    condition = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": now}
                    status["conditions"] = [{**condition, "reason": "DeletionByPodGC", "message": why}]
                body = {"metadata": {"uid": meta.uid}, "status": status}
                await self.client.request("PATCH", f"{path}/status", body=body, content_type=STRATEGIC_MERGE_PATCH)
            options: JSON = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            await self.client.request("DELETE", path, body={**options, "preconditions": {"uid": meta.uid}})
        except NotFound:
            pass
