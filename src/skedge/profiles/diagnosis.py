"""Why no node fits: statuses per node, counted reasons, the message users read. Upstream: `FitError`, `Diagnosis`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.ma  # np.unique loads it when first called, and the loop would stand still for that

from skedge.framework.plugin import UNRESOLVABLE
from skedge.framework.state import CycleState
from skedge.framework.status import Code, Status, fit_message
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo

NO_ROWS: Final[Ints] = np.zeros(0, np.int64)
_ABSENT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class CycleError(Exception):
    """The attempt ended by an error, not by a verdict: reason SchedulerError, no preemption."""


class Codes(NamedTuple):
    """One filter plugin's codes for the rows of a search (`codes[i]` belongs to `rows[i]`)."""

    plugin: Any
    codes: Ints


class Group(NamedTuple):
    """Rows that were rejected for the same reasons by the same plugin, or by the same `plugins` where all are asked."""

    status: Status
    rows: Ints
    plugins: tuple[str, ...] = ()


class Diagnosis:
    """The result of a search that found nothing (or of one a plugin wants to look into)."""

    def __init__(self, table: NodeTable, state: CycleState, pod: PodInfo, total: int) -> None:
        self.table = table
        self.state = state
        self.pod = pod
        self.total = total  # nodes in the cluster
        self.pre_filter: Status | None = None  # PreFilter rejected the pod on all nodes
        self.absent = _ABSENT  # of nodes without a status of their own
        self.narrowing: frozenset[str] = frozenset()  # plugins that narrowed the search
        self.rows: Ints = NO_ROWS  # nodes that were looked at
        self.filters: list[Codes] = []
        self.every = False  # every plugin has its say about a node, not only the first that rejects it
        self.explicit: dict[int, Status] = {}  # statuses that are in no codes (extenders, a nominated node)
        self.crowded: tuple[Ints, list[Codes]] | None = None  # rows as if nominated pods were there: these come first
        self.post_filter_message = ""
        self.trials: Any = None  # while PostFilter runs: the search, for dry runs
        self._groups: list[Group] | None = None

    def start_anew(self, keep: bool) -> None:
        """Forgets what was said of the nominated node, which was looked at first; with `keep` only the codes: its
        status stays, where the search does not come by that node again."""
        if keep and self.filters:
            self.explicit |= {int(row): group.status for group in self._find_groups() for row in group.rows}
        self.filters, self.crowded = [], None

    def groups(self) -> list[Group]:
        """Rejected nodes, grouped by plugin and reasons; each node once, under the first plugin that rejected it.

        With `every` a node's group has the reasons of all plugins that rejected it, and the worst of their codes.
        """
        if self._groups is None:
            self._groups = list(self._find_groups())
        return self._groups

    def _find_groups(self) -> Iterator[Group]:
        open_ = np.ones(len(self.rows), bool)
        if self.explicit:
            open_ &= ~np.isin(self.rows, list(self.explicit))
            for row, status in self.explicit.items():
                yield Group(status, np.array([row], np.int64))
        if self.crowded is not None:
            rows, filters = self.crowded
            among = ~np.isin(rows, list(self.explicit)) if self.explicit else np.ones(len(rows), bool)
            yield from self._by_codes(rows, filters, among)
            open_ &= ~np.isin(self.rows, rows[~among])
        yield from self._by_codes(self.rows, self.filters, open_)

    def _by_codes(self, rows: Ints, filters: list[Codes], open_: Bools) -> Iterator[Group]:
        """Groups of the rows that are open; rejected ones are closed."""
        if self.every and filters:
            yield from self._by_all_codes(rows, filters, open_)
            return
        for plugin, codes in filters:
            rejected = open_ & (codes != 0)
            if not rejected.any():
                continue
            open_ &= ~rejected
            for code in np.unique(codes[rejected]).tolist():
                status = plugin.filter_status(self.state, self.pod, code).by(plugin.name)
                yield Group(status, rows[rejected & (codes == code)])

    def _by_all_codes(self, rows: Ints, filters: list[Codes], open_: Bools) -> Iterator[Group]:
        table = np.stack([codes for _, codes in filters])
        rejected = open_ & (table != 0).any(axis=0)
        if not rejected.any():
            return
        open_ &= ~rejected
        combinations, which = np.unique(table[:, rejected], axis=1, return_inverse=True)
        for i, column in enumerate(combinations.T.tolist()):
            statuses = [
                plugin.filter_status(self.state, self.pod, code).by(plugin.name)
                for (plugin, _), code in zip(filters, column, strict=True)
                if code
            ]
            group = rows[rejected][which.reshape(-1) == i]
            yield Group(merged(statuses), group, tuple(status.plugin for status in statuses))

    def node_statuses(self) -> dict[str, Status]:
        """Status of each node that was looked at and rejected, by name."""
        return {self.table.names[row]: g.status for g in self.groups() for row in g.rows.tolist()}

    def potential(self) -> Ints:
        """Rows where preemption may help: rejected as Unschedulable, by code alone."""
        if self.pre_filter is not None:
            some = self.pre_filter.code is Code.UNSCHEDULABLE
            return np.flatnonzero(self.table.exists) if some else np.zeros(0, np.int64)
        found = [g.rows for g in self.groups() if g.status.code is Code.UNSCHEDULABLE]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def status_of(self, row: int) -> Status:
        """What was said of an existing node."""
        if self.pre_filter is not None:
            return self.pre_filter
        return next((g.status for g in self.groups() if row in g.rows), self.absent)

    @property
    def unschedulable_plugins(self) -> set[str]:
        plugins = set(self.narrowing) | {name for g in self.groups() for name in g.plugins or (g.status.plugin,)}
        if self.pre_filter is not None:
            plugins.add(self.pre_filter.plugin)
        plugins.discard("")
        return plugins

    @property
    def pending_plugins(self) -> set[str]:
        found = {g.status.plugin for g in self.groups() if g.status.code is Code.PENDING}
        if self.pre_filter is not None and self.pre_filter.code is Code.PENDING:
            found.add(self.pre_filter.plugin)
        return found

    def message(self, post_filter: bool = True) -> str:
        """`0/N nodes are available: ...`, with what PostFilter said at the end."""
        if self.pre_filter is None:
            text = fit_message(self.total, ((g.status, len(g.rows)) for g in self.groups()), self.absent)
        else:
            text = f"0/{self.total} nodes are available:"
            if self.pre_filter.message:
                text += f" {self.pre_filter.message}."
        if post_filter and self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text


class FitError(Exception):
    """No node fits. The text is made when it is read."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__()
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        return self.diagnosis.message()


_BY_WEIGHT: Final = (Code.UNSCHEDULABLE, Code.PENDING, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR)


def merged(statuses: Sequence[Status]) -> Status:
    """One status for what several plugins said of a node: the worst code, all reasons, the first plugin's name."""
    worst = max((status.code for status in statuses), key=_BY_WEIGHT.index)
    reasons = (reason for status in statuses for reason in status.all_reasons())
    return Status(worst, *reasons, plugin=statuses[0].plugin)


def unresolvable(codes: Ints) -> Bools:
    """Which codes say that preemption on the node can not help."""
    result: Bools = (codes & UNRESOLVABLE) != 0
    return result
