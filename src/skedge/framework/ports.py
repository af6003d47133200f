"""What the core asks of the outside, as protocols: the only way out of it. Tests and simulations give their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from skedge.api.scheduling import PodGroup
from skedge.snapshot.pods import PlacedPod, PodInfo


class PodGone(Exception):
    """The API server does not have the pod any more."""


class Binder(Protocol):
    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Posts the Binding of the pod (by UID). Raises what went wrong, with a message for users."""


class PodPatcher(Protocol):
    async def patch_status(self, pod: PodInfo | PlacedPod, patch: Mapping[str, Any]) -> None:
        """Sends a strategic merge patch to the pod's status subresource. Raises PodGone, or what went wrong."""


class PodGroupPatcher(Protocol):
    async def patch_group_status(self, group: PodGroup, patch: Mapping[str, Any]) -> None:
        """Sends a strategic merge patch to the group's status subresource. Raises PodGone, or what went wrong."""


class Evictor(Protocol):
    async def delete(self, pod: PlacedPod) -> bool:
        """Deletes a pod with its own grace period. False when it was gone already."""


class EventRecorder(Protocol):
    def event(
        self,
        regarding: PodInfo | PlacedPod,
        related: PodInfo | PlacedPod | PodGroup | None,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        controller: str,
    ) -> None:
        """Notes an event; never waits. `controller` is the profile's name."""


class Preemptor(Protocol):
    """Carries out what preemption decided; not a port of the outside, but the side of the scheduler that may wait."""

    def start(self, pod: PodInfo, node_name: str, victims: Sequence[PlacedPod], plugin: str) -> None:
        """Makes the victims go, in the name of `plugin`, so that the pod can have the node; never waits."""

    def running(self, pod: PodInfo) -> bool:
        """Whether victims of the pod are still to be told to go."""

    def running_for(self, uid: str) -> bool:
        """The same for whoever has this UID: a pod, or a pod group."""


class Signal(Protocol):
    """Wakes one waiter."""

    def set(self) -> None: ...

    async def wait(self, seconds: float) -> None:
        """Returns when `set` was called since the last wait, at the latest after so many seconds."""


class ObjectWriter(Protocol):
    """Writes volumes and claims back whole."""

    async def update(self, kind: str, obj: Any, change: Callable[[dict[str, Any]], None]) -> Any:
        """Sends the object as the server last showed it, all its fields, with a change made on its JSON.

        The server refuses when its version is another than that of `obj`. Returns the object as written; raises what
        went wrong, with a message for users.
        """

    def signal(self) -> Signal: ...


class ExtenderError(Exception):
    """An extender did not answer, or not as it should; the message is for users."""


class ExtenderFiltered(NamedTuple):
    """What an extender's filter said of the nodes it was asked about."""

    nodes: Sequence[str]  # those that are left, in its order; some may be no nodes we know
    failed: Mapping[str, str]  # node -> reason
    unresolvable: Mapping[str, str]
    as_objects: bool  # it sent whole nodes back, not names


class ExtenderVictims(NamedTuple):
    """What an extender's preempt verb leaves of a candidate: UIDs of pods that must go."""

    uids: Sequence[str]
    num_pdb_violations: int


class Extender(Protocol):
    """A server that has its say about nodes. Calls raise ExtenderError. Upstream: `kube-scheduler/extender`."""

    name: str
    """Its URL, which messages call it by."""
    weight: int
    ignorable: bool
    """Its failures do no harm to the pod."""
    managed_resources: frozenset[str]
    """It is asked about pods only that ask for one of these; none: about all."""
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool

    async def filter(self, pod: PodInfo, nodes: Sequence[str]) -> ExtenderFiltered: ...

    async def prioritize(self, pod: PodInfo, nodes: Sequence[str]) -> Mapping[str, int]:
        """Scores of nodes, 0..10 if it keeps to the rules."""

    async def preempt(
        self, pod: PodInfo, candidates: Mapping[str, tuple[Sequence[PlacedPod], int]]
    ) -> Mapping[str, ExtenderVictims]:
        """`candidates`: node -> (victims, how many of them a disruption budget protects)."""

    async def bind(self, pod: PodInfo, node_name: str) -> None: ...


class Inbox(Protocol):
    """Where changes of state wait while a cycle that owns the state has to wait itself."""

    def submit(self, call: Callable[[], None]) -> None:
        """Makes the call now; while the state is held, in the order of submission once it is free again."""

    def held(self) -> AbstractContextManager[None]:
        """Inside, no call is made."""


class Ports:
    """The ports of one scheduler, filled in by whoever assembles it."""

    __slots__ = ("binder", "events", "evictor", "objects", "patcher", "pod_groups")

    def __init__(
        self,
        binder: Binder,
        patcher: PodPatcher,
        evictor: Evictor,
        events: EventRecorder,
        objects: ObjectWriter | None = None,
        pod_groups: PodGroupPatcher | None = None,
    ) -> None:
        self.binder = binder
        self.patcher = patcher
        self.evictor = evictor
        self.events = events
        self.objects = objects
        self.pod_groups = pod_groups
