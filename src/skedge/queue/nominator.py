"""Pods that were promised room on a node. Upstream: `pkg/scheduler/backend/queue/nominator.go`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from skedge.api.core import Pod
from skedge.api.meta import ObjectMeta
from skedge.snapshot.changes import Aspect
from skedge.snapshot.crowd import Crowd
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo

Lister = Callable[[str], PodInfo | PlacedPod | None]
"""The informer's pod of a key `namespace/name`, or None."""


_CROWDS: Final = 8
"""So many priorities have their crowds kept; with more of them the oldest is made anew."""


class _KeptCrowd:
    """Pods of at least some priority, and the nodes about which it is not current."""

    __slots__ = ("crowd", "position", "stale", "table")

    def __init__(self, table: NodeTable, nodes: Iterable[str]) -> None:
        self.table = table
        self.crowd = Crowd(table)
        self.position = table.log.position
        self.stale = set(nodes)


class _Nomination:
    __slots__ = ("key", "name", "namespace", "placed", "source", "uid")

    def __init__(self, pod: PodInfo) -> None:
        self.key = pod.key
        self.namespace = pod.namespace
        self.name = pod.name
        self.uid = pod.uid
        self.source: PodInfo | None = None  # what `placed` was made of
        self.placed: PlacedPod | None = None


class PodNominator:
    """node → pods promised to it, and UID → node. An entry holds in flight too.

    False when nothing is nominated at all, which is what a cycle asks first.

    Args: `lister` looks into the informer, `queued` into the queue (pods in flight are not found there).
    """

    def __init__(self, lister: Lister, queued: Callable[[str], PodInfo | None]) -> None:
        self._lister = lister
        self._queued = queued
        self._nodes: dict[str, dict[str, _Nomination]] = {}
        self._node_of: dict[str, str] = {}
        self._crowds: dict[int, _KeptCrowd] = {}

    def add(self, pod: PodInfo, nominate: str | None = None) -> None:
        """Replace the pod's entry. `nominate`: the node, "" for none, None for what the pod's status says.

        Nothing is promised to a pod that the informer does not know or knows as bound. (Where the reference keeps an
        entry for the node "", there is none here; no question can tell the two apart.)
        """
        self.delete(pod)
        node = pod.nominated_node_name if nominate is None else nominate
        if not node:
            return
        known = self._lister(pod.key)
        if known is None or known.node_name:
            return
        self._node_of[pod.uid] = node
        self._nodes.setdefault(node, {})[pod.uid] = _Nomination(pod)
        self._touch(node)

    def delete(self, pod: PodInfo | PlacedPod) -> None:
        """Forget what was promised to this UID, if anything."""
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        pods = self._nodes[node]
        del pods[pod.uid]
        if not pods:
            del self._nodes[node]
        self._touch(node)

    def moved(self, uid: str) -> str:
        """The pod was popped, or put back: what was promised to it counts for less while it is in flight.

        Returns the node, or "".
        """
        node = self._node_of.get(uid, "")
        if node:
            self._touch(node)
        return node

    def _touch(self, node: str) -> None:
        for kept in self._crowds.values():
            kept.stale.add(node)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """The object changed: its nominated node wins, except that silence before and after leaves ours standing."""
        if not self._node_of and not new.nominated_node_name:
            return
        keep = None
        if not old.nominated_node_name and not new.nominated_node_name:
            keep = self._node_of.get(old.uid)
        self.delete(old)
        self.add(new, keep)

    def node_of(self, uid: str) -> str:
        """The node promised to this pod, or ""."""
        return self._node_of.get(uid, "")

    def nominated_nodes(self) -> Iterable[str]:
        return self._nodes.keys()

    def nominated_pods(self, node_name: str) -> list[PlacedPod]:
        """The pods promised to the node, as if they were on it, in order of nomination.

        One that is in flight is a bare name: priority 0, no requests, as in the reference.
        """
        return [self._as_placed(pod, node_name) for pod in self._nodes.get(node_name, {}).values()]

    def crowd(self, table: NodeTable, priority: int, uid: str) -> Crowd:
        """The pods of at least this priority by row of the table, without the one of this UID; not to be kept."""
        kept = self._crowds.get(priority)
        if kept is not None and (
            kept.table is not table
            or len(kept.crowd.count) != table.capacity
            or table.log.since(kept.position, Aspect.NODE) != set()  # rows may have changed hands
        ):
            kept = None
        if kept is None:
            self._crowds.pop(priority, None)
            if len(self._crowds) >= _CROWDS:
                del self._crowds[next(iter(self._crowds))]
            kept = self._crowds[priority] = _KeptCrowd(table, self._nodes)
        kept.position = table.log.position
        for node in kept.stale:
            row = table.row_of.get(node)
            if row is not None and table.exists[row]:
                kept.crowd.put(row, [pod for pod in self.nominated_pods(node) if pod.priority >= priority])
        kept.stale.clear()
        row = table.row_of.get(self._node_of.get(uid, ""))
        if row is not None and any(pod.uid == uid for pod in kept.crowd.get(row, ())):
            return kept.crowd.without(row, uid)
        return kept.crowd

    def _as_placed(self, nomination: _Nomination, node_name: str) -> PlacedPod:
        info = self._queued(nomination.key)
        placed = nomination.placed
        if placed is not None and info is nomination.source:
            return placed
        nomination.source = info
        if info is None:
            meta = ObjectMeta(name=nomination.name, namespace=nomination.namespace, uid=nomination.uid)
            info = PodInfo(Pod(metadata=meta))
        nomination.placed = placed = PlacedPod(info, node_name)
        return placed

    def __len__(self) -> int:
        """How many pods are nominated."""
        return len(self._node_of)

    def validate(self) -> None:
        """AssertionError when the two maps disagree."""
        listed = {uid: node for node, pods in self._nodes.items() for uid in pods}
        assert listed == self._node_of, f"by node: {listed}, by pod: {self._node_of}"
        assert all(self._nodes.values()), "a node without nominated pods was kept"
        for priority, kept in list(self._crowds.items()):
            crowd = self.crowd(kept.table, priority, "")
            self._crowds[priority] = _KeptCrowd(kept.table, self._nodes)
            fresh = self.crowd(kept.table, priority, "")
            assert {row: tuple(pods) for row, pods in crowd.items()} == dict(fresh), f"crowd of priority {priority}"
            assert crowd.rows.tolist() == fresh.rows.tolist(), f"rows of the crowd of priority {priority}"
