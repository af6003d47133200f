"""Pods that were promised room on a node. Upstream: `pkg/scheduler/backend/queue/nominator.go`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skedge.api.core import Pod
from skedge.api.meta import ObjectMeta
from skedge.snapshot.pods import PlacedPod, PodInfo

Lister = Callable[[str], PodInfo | PlacedPod | None]
"""The informer's pod of a key `namespace/name`, or None."""


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

    def delete(self, pod: PodInfo | PlacedPod) -> None:
        """Forget what was promised to this UID, if anything."""
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        pods = self._nodes[node]
        del pods[pod.uid]
        if not pods:
            del self._nodes[node]

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
