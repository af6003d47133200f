"""Rules over interned values: the rule runs once a distinct value, rows look the answer up by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from skedge.snapshot.arith import Ints
from skedge.snapshot.interning import Interner


class Lookup:
    """Answers of `rule(value | None)` for every id of an interner; id -1 (absent) finds `rule(None)` at the end.

    Built on first use, rebuilt when the interner gave an id a new meaning, extended when it grew.
    """

    __slots__ = ("_answers", "_generation", "_interner", "rule")

    def __init__(self, rule: Callable[[Any], int]) -> None:
        self.rule = rule
        self._interner: Interner[Any] | None = None
        self._generation = -1
        self._answers: Ints = np.empty(0, np.int64)

    def answers(self, interner: Interner[Any]) -> Ints:
        """Shape (number of ids + 1,), int64. Index it with ids; -1 is the answer for absence."""
        known = len(self._answers) - 1
        size = len(interner)
        if self._interner is interner and self._generation == interner.generation and known == size:
            return self._answers
        answers = np.empty(size + 1, np.int64)
        start = 0
        if self._interner is interner and self._generation == interner.generation and known > 0:
            answers[:known] = self._answers[:known]
            start = known
        self._fill(answers, interner, start)
        answers[size] = self.rule(None)
        self._interner, self._generation, self._answers = interner, interner.generation, answers
        return answers

    def _fill(self, answers: Ints, interner: Interner[Any], start: int) -> None:
        rule, values = self.rule, interner.values
        for ident in range(start, len(values)):
            value = values[ident]
            answers[ident] = 0 if value is None else rule(value)


class Membership(Lookup):
    """`Lookup` of "is the value one of these" (or, negated, "is it none of these"), without a call a value."""

    __slots__ = ("_inside", "_outside", "_wanted")

    def __init__(self, wanted: Iterable[Any], inside: int, outside: int, absent: int) -> None:
        self._wanted = frozenset(wanted)
        self._inside, self._outside = inside, outside

        def rule(value: Any) -> int:
            if value is None:
                return absent
            return inside if value in self._wanted else outside

        super().__init__(rule)

    def _fill(self, answers: Ints, interner: Interner[Any], start: int) -> None:
        answers[start : len(interner)] = self._outside
        for value in self._wanted:
            ident = interner.get(value)
            if ident >= 0:
                answers[ident] = self._inside


class ByValue(Lookup):
    """`Lookup` in a mapping, without a call a value; `other` for all values that are not in it, and for absence."""

    __slots__ = ("_known", "_other")

    def __init__(self, known: Mapping[Any, int], other: int) -> None:
        self._known = known
        self._other = other
        super().__init__(lambda value: known.get(value, other))

    def _fill(self, answers: Ints, interner: Interner[Any], start: int) -> None:
        answers[start : len(interner)] = self._other
        for value, answer in self._known.items():
            ident = interner.get(value)
            if ident >= 0:
                answers[ident] = answer
