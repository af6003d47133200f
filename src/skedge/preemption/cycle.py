"""What preemption asks of the cycle that found no node. `profiles` implements it; nothing here knows how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from skedge.framework.state import CycleState
from skedge.framework.status import Status
from skedge.snapshot.arith import Ints
from skedge.snapshot.crowd import Crowd
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView


class PluginCodes(Protocol):
    """One filter plugin's codes for the rows of a view, in their order."""

    @property
    def plugin(self) -> Any: ...

    @property
    def codes(self) -> Ints: ...


class Trials(Protocol):
    """Runs the filters of the cycle on hypothetical worlds."""

    @property
    def only_amounts(self) -> bool:
        """Whether pods on a row matter by what they ask for alone, and the less the better."""

    def codes(self, view: DeltaView) -> Sequence[PluginCodes]:
        """Every filter's codes, in Filter order. A plugin that fails gives codes too; their words say so."""

    def codes_of_moving(self, view: DeltaView, counted: bool = True) -> Sequence[PluginCodes]:
        """Codes of those filters only that pods on the row can change."""

    def count_tried(self, worlds: int, fit: int) -> None:
        """Notes worlds that were not counted one by one, and how many of them the pod fitted."""

    def nominated(self) -> Crowd:
        """Pods that were promised room and count for this pod: they must fit as well."""


class Cycle(Protocol):
    """The failed search: `profiles.diagnosis.Diagnosis`."""

    table: NodeTable
    state: CycleState
    pod: PodInfo
    total: int

    @property
    def trials(self) -> Trials: ...

    def potential(self) -> Ints:
        """Rows that were rejected as Unschedulable."""

    def status_of(self, row: int) -> Status:
        """What the search said of an existing node."""
