"""Answers kept per fragment: a plugin's codes or raw scores for all rows, brought up to date by changed rows only."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from skedge.framework.plugin import NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Status
from skedge.snapshot.arith import Ints
from skedge.snapshot.changes import OF_PODS, Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Row, Rows

ONE_BY_ONE: Final = 12
"""Up to so many changed rows are answered in plain numbers, one by one; more go through one array call."""

_REMEMBERED: Final = 512
"""So many answers are remembered by what a row has of resources, then they are forgotten."""

Rule = Callable[[CycleState, PodInfo, Any], Any]
Totals = Callable[[PodInfo], Hashable]


@lru_cache(2)
def _zeros(number: int) -> Ints:
    """Shared by all answers without a difference, so not to be written to."""
    zeros = np.zeros(number, np.int64)
    zeros.flags.writeable = False
    return zeros


class Kept:
    """One plugin's answers under one fragment. `answers[row]` is current once `sync` returned.

    `generation` counts how often all were made. If the plugin has `totals` they say what of the whole cluster answers
    rest on besides the row; `by_resources`: rows with the same resources have the same answer, which is worked out for
    one of them.
    """

    __slots__ = (
        "_by_resources",
        "_clean",
        "_known_totals",
        "_pod",
        "_position",
        "_rule",
        "_state",
        "_table",
        "_totals",
        "answers",
        "generation",
        "reads",
        "users",
    )

    def __init__(self, table: NodeTable, plugin: Any, state: CycleState, pod: PodInfo, what: str) -> None:
        """`what`: the plugin's method that answers."""
        self._table = table
        self._rule: Rule = getattr(plugin, what)
        self.reads: int = plugin.reads | Aspect.NODE
        self._state = state
        self._pod = pod
        self._position = -1
        self._totals: Totals | None = getattr(plugin, "totals", None)
        self._known_totals: Hashable = None
        self._clean: bool | None = None
        self._by_resources: dict[Hashable, int] | None = {} if getattr(plugin, "by_resources", False) else None
        self.generation = 0
        self.users = 0  # standings that rest on it
        self.answers: Ints = _zeros(0)

    @property
    def remembered_bytes(self) -> int:
        """What is remembered by resources takes about this."""
        return 300 * len(self._by_resources or ())

    @property
    def clean(self) -> bool:
        """Whether all answers are 0."""
        if self._clean is None:
            answers = self.answers
            self._clean = not (len(answers) and answers.item(0)) and not np.count_nonzero(answers)
        return self._clean

    def follow(self, view: Row, position: int) -> int | None:
        """Brings answers that were current up to date where nothing but the view's row changed since; by how much the
        row's answer grew. None if it is not that simple: then nothing was done."""
        table, answers = self._table, self.answers
        if self._position == position or self._totals is not None or len(answers) != table.capacity or table.wide:
            return None
        known = self._by_resources
        if known is None:
            answer = self._rule(self._state, self._pod, view)
        else:
            resources = view.resources
            answer = known.get(resources)
            if answer is None:
                answer = self._rule(self._state, self._pod, view)
                if len(known) >= _REMEMBERED:
                    known.clear()
                known[resources] = answer
        self._position = position
        row = view.row
        grown: int = answer - answers.item(row)
        if grown:
            self._to_write()[row] = answer
            self._clean = None
        return grown

    def sync(self) -> None:
        """Brings the answers up to date. An error of the rule leaves them as they were, and passes."""
        table = self._table
        position, before = table.log.position, self._position
        if before == position:
            return
        if before >= table.log.nodes_position and not self.reads & OF_PODS and len(self.answers) == table.capacity:
            self._position = position  # pods alone came and went
            return
        rows = None
        if self._position >= 0 and len(self.answers) == table.capacity:
            rows = table.log.since(self._position, self.reads)
        if rows and self._totals is not None and self._totals(self._pod) != self._known_totals:
            rows = None
        if rows is None:
            self._answer_all()
        elif rows:
            self._answer(rows)
        self._position = position

    def _answer_all(self) -> None:
        self._clean = None
        table = self._table
        found = self._rule(self._state, self._pod, Rows(table))
        if isinstance(found, int) and found == 0:
            self._clean = True
            self.answers = _zeros(table.capacity)
        else:
            self.answers = np.empty(table.capacity, np.int64)
            self.answers[: table.size] = found
            self.answers[table.size :] = 0
        self.generation += 1
        if self._totals is not None:
            self._known_totals = self._totals(self._pod)

    def _to_write(self) -> Ints:
        if not self.answers.flags.writeable:
            self.answers = self.answers.copy()
        return self.answers

    def _answer(self, rows: set[int]) -> None:
        self._clean = None
        answers = self._to_write()
        table = self._table
        if len(rows) > ONE_BY_ONE or table.wide:
            index = np.fromiter(rows, np.int64, len(rows))
            answers[index] = self._rule(self._state, self._pod, Rows(table, index))
            return
        view = Row(table)
        for row in rows:
            view.row = row
            answers[row] = self._rule(self._state, self._pod, view)


class Prepared:
    """What a plugin with kept answers makes of a fragment: what PreFilter and PreScore say and write, and its answers.

    All of it is the same for all pods with the fragment.
    """

    __slots__ = ("_size", "answers", "pre_filter", "pre_score", "state")

    def __init__(self, table: NodeTable, plugin: Any, pod: PodInfo, pre_filters: bool, pre_scores: bool) -> None:
        self.state = state = CycleState()
        self.pre_filter: tuple[NodeNames | None, Status] = (None, SUCCESS)
        self.pre_score = SUCCESS
        if pre_filters:
            self.pre_filter = plugin.pre_filter(state, pod, Rows(table))
        if pre_scores:
            self.pre_score = plugin.pre_score(state, pod, Rows(table))
        self.answers = {
            what: Kept(table, plugin, state, pod, what) for what in ("filter", "score") if hasattr(plugin, what)
        }
        """Those of `filter` and of `score`, as far as the plugin has them."""
        self._size = table.capacity * 8 * len(self.answers)

    @property
    def nbytes(self) -> int:
        """What the answers take, or will once they are made."""
        return self._size + sum([kept.remembered_bytes for kept in self.answers.values()])
