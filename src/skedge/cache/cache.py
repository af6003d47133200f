"""The live cluster: nodes, pods on them, pods assumed to be. The only writer of the columns.

Upstream: `pkg/scheduler/backend/cache/cache.go`.

              assume                      add (the watch confirms)
    initial ──────────▶ assumed ─────────────────────────────────▶ added ◀── update
       │                 │  ▲                                        │
       │ add             │  └ (an update of an assumed pod is refused) │ remove
       └────────────▶ added │ forget, remove                          ▼
                            └──────────────────────────────────▶ (gone)

Assumed pods never expire: they are confirmed, forgotten, or removed. Where the reference ends its process (a pod that
changes its node under our eyes), the pod is taken off its old node and put on the new one, and `repairs` is counted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from skedge.api.core import Node, Pod
from skedge.cache.pod_groups import PodGroups
from skedge.snapshot.affinity_terms import PodTerms
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo


class CacheError(Exception):
    """An operation that the state of the pod or node does not allow. Nothing was changed."""


class Cache:
    """See the module's docstring. Pods are known by UID."""

    def __init__(self, table: NodeTable | None = None) -> None:
        self.table = table or NodeTable()
        self._pods: dict[str, PlacedPod] = {}
        self._assumed: set[str] = set()
        self.repairs = 0
        self.groups: PodGroups | None = None
        """What is known of pod groups; None where the gate is off."""

    # --- pods ---------------------------------------------------------------------------------------------------------

    def assume_pod(self, info: PodInfo, node_name: str) -> PlacedPod:
        """Counts a pod on a node before the API server says so."""
        uid = self._uid(info)
        if uid in self._pods:
            raise CacheError(f"pod {uid}({info.key}) is in the cache, so can't be assumed")
        placed = PlacedPod(info, node_name)
        self._pods[uid] = placed
        self._assumed.add(uid)
        self.table.add_pod(placed)
        if self.groups is not None:
            self.groups.assume(info, node_name)
        return placed

    def forget_pod(self, info: PodInfo | PlacedPod, node_name: str) -> None:
        """Takes back an assumption; nothing happens if there is none."""
        placed = self._pods.get(info.uid)
        if placed is None:
            return
        if placed.node_name != node_name:
            raise CacheError(
                f"pod {info.uid}({info.key}) was assumed on {node_name} but assigned to {placed.node_name}"
            )
        if info.uid not in self._assumed:
            raise CacheError(f"pod {info.uid}({info.key}) wasn't assumed so cannot be forgotten")
        self._drop(placed)
        if self.groups is not None:
            self.groups.forget(placed)

    def add_pod(self, pod: PlacedPod) -> None:
        """A pod with a node came from the watch; confirms an assumption."""
        uid = self._uid(pod)
        old = self._pods.get(uid)
        if self.groups is not None:
            self.groups.put(pod)
        if old is None:
            self._pods[uid] = pod
            self.table.add_pod(pod)
            return
        if uid not in self._assumed:
            raise CacheError(f"pod {uid}({pod.key}) was already in added state")
        self._assumed.discard(uid)
        self._exchange(old, pod)

    def update_pod(self, pod: PlacedPod) -> None:
        old = self._pods.get(pod.uid)
        if old is None:
            raise CacheError(f"pod {pod.uid}({pod.key}) is not added to scheduler cache, so cannot be updated")
        if pod.uid in self._assumed:
            raise CacheError(f"assumed pod {pod.uid}({pod.key}) should not be updated")
        if old.node_name != pod.node_name:
            self.repairs += 1
        if self.groups is not None:
            self.groups.put(pod)
        self._exchange(old, pod)

    def remove_pod(self, pod: PlacedPod | PodInfo) -> PlacedPod:
        """Removes a pod, assumed or not; returns the record that was cached."""
        old = self._pods.get(pod.uid)
        if old is None:
            raise CacheError(f"pod {pod.uid}({pod.key}) is not found in scheduler cache, so cannot be removed from it")
        if pod.node_name and pod.node_name != old.node_name:
            self.repairs += 1
        self._drop(old)
        if self.groups is not None:
            self.groups.drop(old)
        return old

    def get_pod(self, pod: PodInfo | PlacedPod) -> PlacedPod:
        found = self._pods.get(pod.uid)
        if found is None:
            raise CacheError(f"pod {pod.uid}({pod.key}) does not exist in scheduler cache")
        return found

    def find_pod(self, uid: str) -> PlacedPod | None:
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def take_off(self, pods: Iterable[PlacedPod]) -> None:
        """Pods of this cache leave their nodes for the time of a trial; `put_back` ends it."""
        for pod in pods:
            self.table.remove_pod(pod)

    def put_back(self, pods: Iterable[PlacedPod]) -> None:
        """Pods that were taken off are on their nodes again, in the order they had there."""
        for pod in pods:
            self.table.restore_pod(pod)

    def show_terms(self, uid: str, terms: PodTerms) -> None:
        """Has an assumed pod appear with these affinity terms, until it is forgotten or confirmed."""
        old = self._pods[uid]
        new = copy.copy(old)
        new.affinity_terms = terms
        self._exchange(old, new)

    def _exchange(self, old: PlacedPod, new: PlacedPod) -> None:
        self._pods[new.uid] = new
        if old.node_name == new.node_name:
            self.table.replace_pod(old, new)
        else:
            self.table.remove_pod(old)
            self.table.add_pod(new)

    def _drop(self, placed: PlacedPod) -> None:
        del self._pods[placed.uid]
        self._assumed.discard(placed.uid)
        self.table.remove_pod(placed)

    @staticmethod
    def _uid(pod: PodInfo | PlacedPod) -> str:
        if not pod.uid:
            raise CacheError("cannot get cache key for pod with empty UID")
        return pod.uid

    # --- nodes --------------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        self.table.set_node(node)

    update_node = add_node

    def remove_node(self, node: Node) -> None:
        """Drops the Node object; pods of it stay until they go themselves."""
        if not self.table.remove_node(node.metadata.name):
            raise CacheError(f"node {node.metadata.name} is not found")

    def hold_row(self, name: str) -> int:
        """A row for a name that may be no node's (see `NodeTable.hold_row`)."""
        return self.table.hold_row(name)

    def release_row(self, row: int) -> None:
        self.table.release_row(row)

    # --- looking ------------------------------------------------------------------------------------------------------

    def pods(self) -> Iterator[PlacedPod]:
        return iter(self._pods.values())

    def statistics(self) -> dict[str, int]:
        """Sizes under the labels of the metric `cache_size`."""
        return {"assumed_pods": len(self._assumed), "pods": len(self._pods), "nodes": len(self.table.row_of)}

    def wrong_sums(self, node_name: str) -> str:
        """What of a node's columns is not the sum over its pods; "" when all is well."""
        table, row = self.table, self.table.row_of[node_name]
        pods = table.pods[row].values()
        if table.names[row] != node_name:
            return f"its row belongs to {table.names[row]!r}"
        for pod in pods:
            if self._pods.get(pod.uid) is not pod or pod.row != row or pod.node_name != node_name:
                return f"{pod.key} is on its row and should not be"
        if table.pod_count[row] != len(pods):
            return f"counts {table.pod_count[row]} pods, has {len(pods)}"
        if bool(table.exists[row]) != (table.nodes[row] is not None):
            return "exists and has no Node object, or the other way round"
        if table.wide:
            return ""  # columns wrap as int64 does
        requested: dict[str, int] = {}
        cpu = memory = 0
        for pod in pods:
            for resource, amount in pod.node_requests:
                requested[resource] = requested.get(resource, 0) + amount
            cpu, memory = cpu + pod.nonzero[0], memory + pod.nonzero[1]
        for resource, column in table.requested.items():
            if column[row] != requested.get(resource, 0):
                return f"requested {resource} is {column[row]}, its pods sum up to {requested.get(resource, 0)}"
        if (table.nonzero_cpu[row], table.nonzero_memory[row]) != (cpu, memory):
            return f"cpu and memory for scores are not {cpu} and {memory}"
        return ""

    def recount(self, node_name: str) -> None:
        """Makes a node's columns anew from the cached pods of its name."""
        mine = {uid: pod for uid, pod in self._pods.items() if pod.node_name == node_name}
        self.table.recount(self.table.row_of[node_name], mine)

    def validate(self) -> None:
        """Raises AssertionError when columns and pods disagree: every sum is made again and compared."""
        table = self.table
        for pod in self._pods.values():
            assert table.names[pod.row] == pod.node_name, f"{pod} is on row {pod.row}"
            assert table.pods[pod.row].get(pod.uid) is pod, f"{pod} is not on its row"
        for name in table.row_of:
            wrong = self.wrong_sums(name)
            assert not wrong, f"{name}: {wrong}"
        assert self._assumed <= self._pods.keys()
        for key, state in self.groups or ():
            assert len(state), f"group {key} has no pods"
            assert state.assumed.keys() <= self._assumed, f"assumed pods of group {key}"
            assert state.assigned.keys() <= self._pods.keys() - self._assumed, f"pods of group {key} with a node"
        assert table.count == int(table.exists.sum())


def placed(pod: Pod) -> PlacedPod:
    """A decoded pod that has a node, as the cache keeps it (the transform of the pod informer)."""
    info = PodInfo(pod)
    return PlacedPod(info, pod.spec.node_name)
