"""Which pods of a group wait, are assumed, have a node. Upstream: `backend/cache/podgroupstate.go`.

                 add (no node)                assume
       (unknown) ────────────▶ unscheduled ◀────────▶ assumed
           │                        │        forget      │
           │ add (a node)           └───▶ assigned ◀─────┘  add, update (a node)

Deleting leads out of every place. Kept only behind the gate GenericWorkload.
"""

from __future__ import annotations

from collections.abc import Iterator

from skedge.snapshot.pods import PlacedPod, PodInfo

AnyPod = PodInfo | PlacedPod


class PodGroupState:
    """The pods of one group by UID, each in one of three places."""

    __slots__ = ("_nodes", "assigned", "assumed", "unscheduled")

    def __init__(self) -> None:
        self.unscheduled: dict[str, PodInfo] = {}
        self.assumed: dict[str, PodInfo] = {}
        self._nodes: dict[str, str] = {}  # of those that are assumed
        self.assigned: dict[str, PlacedPod] = {}

    def __len__(self) -> int:
        """All pods of the group that are known."""
        return len(self.unscheduled) + len(self.assumed) + len(self.assigned)

    @property
    def scheduled(self) -> int:
        """Pods that have a node, or are about to."""
        return len(self.assumed) + len(self.assigned)

    def put(self, pod: AnyPod) -> None:
        """A pod came, or changed; one that is assumed stays so until it has a node."""
        uid = pod.uid
        if isinstance(pod, PlacedPod):
            self.drop(uid)
            self.assigned[uid] = pod
        elif uid in self.assumed:
            self.assumed[uid] = pod
        elif uid not in self.assigned:
            self.unscheduled[uid] = pod

    def drop(self, uid: str) -> None:
        self.unscheduled.pop(uid, None)
        self.assumed.pop(uid, None)
        self.assigned.pop(uid, None)
        self._nodes.pop(uid, None)

    def assume(self, pod: PodInfo, node_name: str) -> None:
        if pod.uid not in self.assigned:
            self.unscheduled.pop(pod.uid, None)
            self.assumed[pod.uid] = pod
            self._nodes[pod.uid] = node_name

    def forget(self, uid: str) -> None:
        pod = self.assumed.pop(uid, None)
        self._nodes.pop(uid, None)
        if pod is not None:
            self.unscheduled[uid] = pod

    def places(self) -> Iterator[tuple[str, str]]:
        """(key, node) of each pod that has a node, or is about to."""
        yield from ((pod.key, pod.node_name) for pod in self.assigned.values())
        yield from ((pod.key, self._nodes[uid]) for uid, pod in self.assumed.items())


class PodGroups:
    """The states of all groups, by namespace and name; a group without pods has none."""

    def __init__(self, *, gang: bool = False) -> None:
        self.gang = gang
        """Whether pods wait for others of their gang to appear."""
        self._states: dict[tuple[str, str], PodGroupState] = {}

    def get(self, namespace: str, name: str) -> PodGroupState | None:
        return self._states.get((namespace, name))

    def of(self, pod: AnyPod) -> PodGroupState | None:
        """The state of the pod's group; None also for a pod without one."""
        return None if pod.group is None else self._states.get((pod.namespace, pod.group))

    def put(self, pod: AnyPod) -> None:
        """A pod came or changed."""
        if pod.group is not None:
            self._state(pod, pod.group).put(pod)

    def drop(self, pod: AnyPod) -> None:
        """A pod is gone."""
        state = self.of(pod)
        if state is not None and pod.group is not None:
            state.drop(pod.uid)
            if not len(state):
                del self._states[pod.namespace, pod.group]

    def assume(self, pod: PodInfo, node_name: str) -> None:
        if pod.group is not None:
            self._state(pod, pod.group).assume(pod, node_name)

    def forget(self, pod: AnyPod) -> None:
        state = self.of(pod)
        if state is not None:
            state.forget(pod.uid)

    def _state(self, pod: AnyPod, name: str) -> PodGroupState:
        return self._states.setdefault((pod.namespace, name), PodGroupState())

    def __iter__(self) -> Iterator[tuple[tuple[str, str], PodGroupState]]:
        return iter(self._states.items())
