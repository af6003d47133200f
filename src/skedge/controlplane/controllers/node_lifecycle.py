"""Nodes that fall silent: Ready becomes Unknown, taints say why, pods that do not tolerate them are deleted.

    Lease or Ready condition renewed ──▶ heard of now       every 5 s: silent longer than GRACE ──▶ conditions Unknown
    conditions, spec.unschedulable ──▶ NoSchedule taints    Ready not True ──zones.py──▶ NoExecute taint, see
                                                                                         taint_eviction.py

Upstream: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from skedge.client.errors import NotFound
from skedge.client.rest import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import NODE_NAME, Context, Controller, Loop, last
from skedge.controlplane.controllers.kinds import LEASES, NODE, NODE_LEASES, NODES, POD
from skedge.controlplane.controllers.objects import Lease, Node, Pod, Taint
from skedge.controlplane.controllers.owning import together
from skedge.controlplane.controllers.zones import Zones

JSON = dict[str, Any]

PERIOD = 5.0
GRACE = 50.0
"""Seconds of silence after which a node counts as lost; 1.25 times the duration of its lease, if that is more."""

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_BY_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS = {*_BY_CONDITION.values(), UNSCHEDULABLE}
_WATCHED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class _Seen:
    """When a node was last heard of, on the clock's monotonic scale, and by what."""

    __slots__ = ("at", "lease", "status", "uid")

    def __init__(self, uid: str, at: float) -> None:
        self.uid, self.at = uid, at
        self.lease: str | None = None
        self.status: str | None = None


class NodeLifecycle(Controller):
    name = "node"
    workers = 16

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.pods
        self.nodes = context.informer(NODES)
        self.leases = context.informer(LEASES)
        self._zones = Zones(self.clock)
        self._seen: dict[str, _Seen] = {}
        self.nodes.add_handler(
            on_add=lambda node, _: self._heard(node),
            on_update=lambda _, node: self._heard(node),
            on_delete=lambda node: self._gone(last(node)),
        )
        self.leases.add_handler(
            on_add=lambda lease, _: self._renewed(lease), on_update=lambda _, lease: self._renewed(lease)
        )

    def loops(self) -> list[Loop]:
        return [self.monitor]

    async def monitor(self) -> None:
        """Look for silent nodes, again and again."""
        await self.every(PERIOD, self.look)

    async def look(self) -> None:
        """Enqueue the nodes that have been silent for too long, and all where everything is down or no longer so."""
        now = self.clock.monotonic()
        if self._zones.assess(self.nodes.store):
            for name in self._seen:
                self.enqueue(name)
        for name, seen in self._seen.items():
            if now - seen.at > self._grace(name):
                node = self.nodes.store.get(name)
                if node is not None and any(self._status(node, type) != "Unknown" for type in _WATCHED):
                    self.enqueue(name)

    async def reconcile(self, key: str) -> float | None:
        node, seen = self.nodes.store.get(key), self._seen.get(key)
        if node is None or seen is None:
            self.forget(key)
            return None
        if self.clock.monotonic() - seen.at > self._grace(key):
            return await self._declare_lost(node)  # the changed conditions bring us back
        again = await self._taint(node)
        if self._status(node, "Ready") != "True":
            await self._mark_pods(node)
        return again

    async def _declare_lost(self, node: Node) -> float | None:
        now = self.context.timestamp()
        conditions = []
        for type in _WATCHED:
            old = node.condition(type)
            if old is not None and old.status == "Unknown":
                continue
            condition = {"type": type, "status": "Unknown", "lastTransitionTime": now}
            if old is None:
                condition["reason"] = "NodeStatusNeverUpdated"
                condition["message"] = "Kubelet never posted node status."
            else:
                condition["reason"] = "NodeStatusUnknown"
                condition["message"] = "Kubelet stopped posting node status."
            conditions.append(condition)
        if conditions:
            path = NODE.path(name=node.metadata.name, subresource="status")
            body = {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}}
            await self.client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        return await self._taint(node)

    async def _taint(self, node: Node) -> float | None:
        """Make the taints that are ours to set what the conditions ask for; when to look again if pods must wait."""
        present, again = node.spec.taints or (), None
        wanted: dict[tuple[str, str], Taint] = {}
        for each in node.status.conditions or ():
            key = _BY_CONDITION.get((each.type, each.status))
            if key is not None:
                wanted[key, "NoSchedule"] = Taint(key=key, effect="NoSchedule")
                if key in (NOT_READY, UNREACHABLE) and not self._zones.all_down:
                    again = self._pods_wait(node)
                    if again is None:
                        added = self.context.timestamp()
                        wanted[key, "NoExecute"] = Taint(key=key, effect="NoExecute", time_added=added)
        if node.condition("Ready") is None:
            wanted[NOT_READY, "NoSchedule"] = Taint(key=NOT_READY, effect="NoSchedule")
        if node.spec.unschedulable:
            added = self.context.timestamp()
            wanted[UNSCHEDULABLE, "NoSchedule"] = Taint(key=UNSCHEDULABLE, effect="NoSchedule", time_added=added)
        kept = []
        for taint in present:
            if taint.key not in _OURS or taint.effect not in ("NoSchedule", "NoExecute"):
                kept.append(taint)
            elif wanted.pop((taint.key, taint.effect), None) is not None:
                kept.append(taint)  # with the time it was added
        taints = (*kept, *wanted.values())
        if taints == tuple(present):
            return again
        body = {
            "metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version},
            "spec": {"taints": msgspec.to_builtins(taints) or None},
        }
        path = NODE.path(name=node.metadata.name)
        await self.client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        return again

    def _pods_wait(self, node: Node) -> float | None:
        """Seconds until it is asked again whether the pods of a node must go; None: they must, or have been told."""
        if any(each.key in (NOT_READY, UNREACHABLE) and each.effect == "NoExecute" for each in node.spec.taints or ()):
            return None
        wait = self._zones.wait(node)
        return PERIOD if wait is None else wait or None

    async def _mark_pods(self, node: Node) -> None:
        """Pods of a node that is not ready are not ready either (`MarkPodsNotReady`)."""
        now = self.context.timestamp()
        patch = {"type": "Ready", "status": "False", "lastTransitionTime": now, "reason": "NodeNotReady"}

        async def mark(pod: Pod) -> None:
            path = POD.path(pod.metadata.namespace, pod.metadata.name, "status")
            body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [patch]}}
            try:
                await self.client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
            except NotFound:
                pass

        pods = self.pods.store.by_index(NODE_NAME, node.metadata.name)
        await together(mark(pod) for pod in pods if pod.is_ready)

    def _heard(self, node: Node) -> None:
        meta = node.metadata
        seen = self._seen.get(meta.name)
        if seen is None or seen.uid != meta.uid:
            seen = self._seen[meta.name] = _Seen(meta.uid, self.clock.monotonic())
        ready = node.condition("Ready")
        beat = None if ready is None or ready.status == "Unknown" else ready.last_heartbeat_time
        if beat is not None and beat != seen.status:
            seen.status, seen.at = beat, self.clock.monotonic()
        self.enqueue(meta.name)

    def _renewed(self, lease: Lease) -> None:
        if lease.metadata.namespace != NODE_LEASES:
            return
        seen = self._seen.get(lease.metadata.name)
        if seen is not None and lease.spec.renew_time != seen.lease:
            seen.lease, seen.at = lease.spec.renew_time, self.clock.monotonic()

    def _gone(self, node: Node) -> None:
        self._seen.pop(node.metadata.name, None)
        self.enqueue(node.metadata.name)

    def _grace(self, name: str) -> float:
        lease = self.leases.store.get(f"{NODE_LEASES}/{name}")
        duration = lease.spec.lease_duration_seconds if lease is not None else None
        return max(GRACE, 1.25 * (duration or 0))

    def _status(self, node: Node, type: str) -> str:
        condition = node.condition(type)
        return condition.status if condition is not None else ""
