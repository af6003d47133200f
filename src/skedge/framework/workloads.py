"""Pod groups as plugins see them: their state, placements, and the two extension points about these.

Upstream: `kube-scheduler/framework/interface.go` (PlacementGeneratePlugin, PlacementScorePlugin), `listers.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from skedge.api.scheduling import PodGroup
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod, PodInfo

POD_GROUP_CYCLE = "pod-group-cycle"
"""Key of the cycle state of a pod that is tried together with its group."""


class PodGroupState(Protocol):
    """The pods of one group that are known, by UID."""

    @property
    def unscheduled(self) -> Mapping[str, PodInfo]: ...

    @property
    def assumed(self) -> Mapping[str, PodInfo]: ...

    @property
    def scheduled(self) -> int:
        """Pods that have a node, or are about to."""

    def __len__(self) -> int: ...

    def places(self) -> Iterable[tuple[str, str]]:
        """(key, node) of each pod that has a node, or is about to."""


class PodGroupStates(Protocol):
    def of(self, pod: PodInfo | PlacedPod) -> PodGroupState | None:
        """The state of a pod's group, if it belongs to one."""

    def get(self, namespace: str, name: str) -> PodGroupState | None: ...


class WaitingPods(Protocol):
    """Pods that Permit plugins hold back."""

    def allow(self, uid: str, plugin: str) -> None:
        """The plugin lets a pod go, if it holds it."""


class Placement(NamedTuple):
    """Nodes that a group may be placed on."""

    name: str
    rows: Ints


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    name: str

    def placement_generate(self, group: PodGroup, parent: Placement) -> Sequence[Placement]:
        """Parts of the parent that the group is tried on, one by one. Raises PluginError."""


@runtime_checkable
class PlacementScorePlugin(Protocol):
    name: str

    def placement_score(self, group: PodGroup, placement: Placement, proposed: Sequence[PodInfo]) -> int:
        """How good a placement is for the group with these pods on it. Raises PluginError."""


@runtime_checkable
class PlacementNormalizer(Protocol):
    """What a PlacementScore plugin may have besides."""

    name: str

    def placement_normalize(self, scores: Sequence[int]) -> list[int]:
        """Scores of all placements scaled to 0..100. Raises PluginError."""
