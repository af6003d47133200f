"""Answers kept per fragment: a plugin's codes or raw scores for all rows, brought up to date by changed rows only."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from skedge.framework.state import CycleState
from skedge.snapshot.arith import Ints
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Row, Rows

ONE_BY_ONE: Final = 12
"""Up to so many changed rows are answered in plain numbers, one by one; more go through one array call."""

Rule = Callable[[CycleState, PodInfo, Any], Any]
Totals = Callable[[PodInfo], Hashable]


class Kept:
    """One plugin's answers under one fragment. `answers[row]` is current once `sync` returned.

    `totals` says what of the whole cluster they rest on besides the row; `generation` counts how often all were made.
    """

    __slots__ = (
        "_clean",
        "_known_totals",
        "_pod",
        "_position",
        "_reads",
        "_rule",
        "_state",
        "_table",
        "_totals",
        "answers",
        "generation",
        "users",
    )

    def __init__(
        self, table: NodeTable, rule: Rule, reads: int, state: CycleState, pod: PodInfo, totals: Totals | None = None
    ) -> None:
        self._table = table
        self._rule = rule
        self._reads = reads | Aspect.NODE
        self._state = state
        self._pod = pod
        self._position = -1
        self._totals = totals
        self._known_totals: Hashable = None
        self._clean: bool | None = None
        self.generation = 0
        self.users = 0  # standings that rest on it
        self.answers: Ints = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """What the answers take, or will once they are made."""
        return self._table.capacity * self.answers.itemsize

    @property
    def clean(self) -> bool:
        """Whether all answers are 0."""
        if self._clean is None:
            self._clean = not self.answers.any()
        return self._clean

    def passes(self, before: int, position: int, changed: int) -> bool:
        """Whether nothing that is read changed from `before` to `position`; if so the answers are current."""
        if self._position == before and not changed & self._reads:
            self._position = position
        return self._position == position

    def follow(self, view: Row, before: int, position: int) -> bool:
        """Brings the answers up to date where nothing but the view's row changed after `before`. False if it is not
        that simple."""
        table = self._table
        if self._position != before or self._totals is not None or len(self.answers) != table.capacity or table.wide:
            return False
        self.answers[view.row] = self._rule(self._state, self._pod, view)
        self._clean = None
        self._position = position
        return True

    def sync(self) -> None:
        """Brings the answers up to date. An error of the rule leaves them as they were, and passes."""
        table = self._table
        position = table.log.position
        if self._position == position:
            return
        rows = None
        if self._position >= 0 and len(self.answers) == table.capacity:
            rows = table.log.since(self._position, self._reads)
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
        answers = np.zeros(table.capacity, np.int64)
        answers[: table.size] = self._rule(self._state, self._pod, Rows(table))
        self.answers = answers
        self.generation += 1
        if self._totals is not None:
            self._known_totals = self._totals(self._pod)

    def _answer(self, rows: set[int]) -> None:
        self._clean = None
        table = self._table
        if len(rows) > ONE_BY_ONE or table.wide:
            index = np.fromiter(rows, np.int64, len(rows))
            self.answers[index] = self._rule(self._state, self._pod, Rows(table, index))
            return
        view = Row(table)
        for row in rows:
            view.row = row
            self.answers[row] = self._rule(self._state, self._pod, view)
