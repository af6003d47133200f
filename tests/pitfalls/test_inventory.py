"""Each of the 137 things people get wrong has a test that names its number; the list of gaps may only shrink."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NUMBERS = range(1, 138)

GAPS: dict[int, str] = {}
"""Number -> why nothing tests it yet."""

_LIST = r"(\d+(?:(?:, | and |_and_|_)\d+)*)"
_EVERYWHERE = re.compile(rf"pitfalls?[_ ]{_LIST}\b|pitfalls?[_ ]{_LIST}_")
_NUMBERED = re.compile(rf'@case\((\d+),|id="(\d+)-|"""{_LIST}:|; (\d+): |^        \((\d+), \[', re.MULTILINE)
"""How cases are numbered in the modules below, whose cases are all of this list."""
_MODULES = (
    "unit/queue/test_pitfalls.py",
    "unit/preemption/test_evaluator.py",
    "unit/profiles/test_sampling.py",
    "unit/scheduler/test_extenders.py",
    "unit/scheduler/test_pod_groups.py",
    "unit/client/test_extender_client.py",
)


def named() -> set[int]:
    found: set[int] = set()
    for path in TESTS.rglob("*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text("utf-8")
        patterns = [_EVERYWHERE]
        if path.relative_to(TESTS).as_posix() in _MODULES:
            patterns.append(_NUMBERED)
        for pattern in patterns:
            for match in pattern.finditer(text):
                found.update(int(number) for group in match.groups() if group for number in re.findall(r"\d+", group))
    return found


def test_every_number_has_a_test() -> None:
    missing = set(NUMBERS) - named()
    assert missing <= GAPS.keys(), f"no test names {sorted(missing - GAPS.keys())}"


def test_gaps_that_were_closed_leave_the_list() -> None:
    assert not GAPS.keys() & named()
