"""What trying a pod group came to, for each member and for the whole. Upstream: `schedule_one_podgroup.go`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from skedge.framework.status import Status
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.scheduler.scheduling_cycle import Choice, Failure


class Fate(Enum):
    """What trying came to for one member."""

    FITS = "feasible"
    PREEMPTS = "requires preemption"
    REJECTED = "infeasible"
    ERROR = "error"


class Trial(NamedTuple):
    """One member: its fate, the choice behind it, how it failed, and what Permit said."""

    queued: QueuedPodInfo
    fate: Fate
    choice: Choice | None
    failure: Failure | None
    permit: str = ""


class Verdict:
    """What trying came to for the whole group."""

    def __init__(self, status: Status, trials: Sequence[Trial] = (), *, waiting: bool = False) -> None:
        self.status = status
        self.trials = list(trials)
        self.waiting = waiting
        """Victims are on their way out; afterwards the group may fit."""

    @property
    def result(self) -> str:
        """The label of the metrics."""
        if self.status.ok:
            return "scheduled"
        if self.waiting:
            return "waiting_on_preemption"
        return "unschedulable" if self.status.rejected else "error"

    @property
    def usable(self) -> bool:
        return self.status.ok or self.waiting
