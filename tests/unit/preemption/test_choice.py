"""Which candidate is taken; rows of upstream's `TestSelectBestCandidate` by priority and start time."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import pytest

from skedge.preemption.choice import Candidate, measure

NEGATIVE, LOW, MID, HIGH = -100, 0, 100, 1000


class Victim(NamedTuple):
    priority: int
    start_time: float = 0.0


def candidates(*lists: list[Any], broken: tuple[int, ...] = ()) -> list[Candidate]:
    made = []
    for i, victims in enumerate(lists):
        pods: Any = sorted(
            (Victim(*v) if isinstance(v, tuple) else Victim(v) for v in victims), key=lambda v: -v.priority
        )
        made.append(Candidate(f"n{i + 1}", pods, broken[i] if broken else 0))
    return made


@pytest.mark.parametrize(
    ("lists", "best"),
    [
        ([[MID], [MID]], ["n1", "n2"]),
        ([[MID, MID], [MID, LOW], [LOW, LOW]], ["n3"]),
        ([[MID, MID], [MID, LOW], [MID, MID]], ["n2"]),
        ([[MID, MID, NEGATIVE, NEGATIVE], [MID, NEGATIVE], [MID, NEGATIVE, LOW]], ["n2"]),
        ([[MID, NEGATIVE, NEGATIVE], [MID, NEGATIVE], [MID, NEGATIVE, LOW]], ["n2"]),
        ([[MID, LOW, LOW], [HIGH], [MID, LOW, LOW, LOW], [MID, MID, MID, NEGATIVE]], ["n1"]),
        ([[(MID, 2.0), (MID, 2.0)], [(MID, 3.0), (MID, 3.0)], [(MID, 1.0), (MID, 1.0)]], ["n2"]),
        ([[(MID, 4.0), (MID, 2.0)], [(MID, 5.0), (MID, 1.0)], [(MID, 3.0), (MID, 6.0)]], ["n3"]),
        ([[(LOW, 4.0), (MID, 2.0)], [(MID, 6.0), (LOW, 1.0)], [(LOW, 3.0), (MID, 5.0)]], ["n2"]),
        ([[(MID, inf)], [(MID, 9.0)]], ["n1"]),  # one that has not started counts as started now
        ([[MID]], ["n1"]),
    ],
)
def test_best(lists: list[list[Any]], best: list[str]) -> None:
    found = candidates(*lists)
    assert [found[i].node for i in measure(found).best()] == best


def test_pitfall_114_fewer_broken_budgets_go_before_lower_priority() -> None:
    found = candidates([100], [1], broken=(0, 1))
    assert [found[i].node for i in measure(found).best()] == ["n1"]


def test_pitfall_115_one_victim_is_better_than_two_of_negative_priority() -> None:
    found = candidates([NEGATIVE, NEGATIVE], [NEGATIVE])
    assert [found[i].node for i in measure(found).best()] == ["n2"]
