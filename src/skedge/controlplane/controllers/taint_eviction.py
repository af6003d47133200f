"""NoExecute taints: pods that do not tolerate them go at once, those that do for some seconds go after these.

Upstream: `pkg/controller/tainteviction/taint_eviction.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.api.taints import NO_EXECUTE, tolerates
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import NODE_NAME, Context, Controller
from skedge.controlplane.controllers.kinds import NODES, POD
from skedge.controlplane.controllers.objects import Node, Pod, Taint, epoch
from skedge.controlplane.controllers.owning import delete_pod

JSON = dict[str, Any]


class TaintEviction(Controller):
    """Keys are pods."""

    name = "taint-eviction"
    workers = 16

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods, self.nodes = context.pods, context.informer(NODES)
        self.nodes.add_handler(on_add=lambda node, _: self._node(node), on_update=lambda _, node: self._node(node))
        self.pods.add_handler(on_add=lambda pod, _: self._pod(pod), on_update=self._moved)

    async def reconcile(self, key: str) -> float | None:
        pod = self.pods.store.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            self.forget(key)
            return None
        node = self.nodes.store.get(pod.spec.node_name)
        when = None if node is None else self._end(pod, _taints(node))
        if when is None:
            self.forget(key)
            return None
        left = when - self.clock.now()
        if left > 0:
            return left
        await self._evict(pod)
        return None

    def _end(self, pod: Pod, taints: list[Taint]) -> float | None:
        """When the pod has to go, in epoch seconds; None: it may stay."""
        ends: list[float] = []
        for taint in taints:
            used = [each for each in pod.spec.tolerations or () if tolerates(each, taint)]
            if not used:
                return 0.0
            limits = [each.toleration_seconds for each in used if each.toleration_seconds is not None]
            if limits:
                since = epoch(taint.time_added) or self.clock.now()
                ends.append(since + max(0, min(limits)))
        return min(ends, default=None)

    async def _evict(self, pod: Pod) -> None:
        meta = pod.metadata
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": self.context.timestamp(),
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        path = POD.path(meta.namespace, meta.name, "status")
        await self.client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        ref: JSON = {"metadata": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}}
        self.event(ref, POD, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
        await delete_pod(self, pod)

    def _node(self, node: Node) -> None:
        if _taints(node):
            for pod in self.pods.store.by_index(NODE_NAME, node.metadata.name):
                self.enqueue(pod.key)

    def _moved(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name or old.spec.tolerations != new.spec.tolerations:
            self._pod(new)

    def _pod(self, pod: Pod) -> None:
        node = self.nodes.store.get(pod.spec.node_name) if pod.spec.node_name else None
        if node is not None and _taints(node):
            self.enqueue(pod.key)


def _taints(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE]
